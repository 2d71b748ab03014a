// Package chmod reads modes as chmod(1) of GNU has them: octal, or symbolic.
package chmod

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// maxMode is all permissions, with set-uid, set-gid and sticky.
const maxMode = 0o7777

// Octal reads a mode of octal digits.
func Octal(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > maxMode {
		return 0, badMode(s)
	}
	return uint32(n), nil
}

func badMode(s string) error {
	return fmt.Errorf("%q is no mode: give octal digits, as 640, or [ugoa][+-=][rwxXst] or [ugoa][+-=][ugo], as u+rw,g=u,o=", s)
}

// setIDs are the bits that a directory keeps unless they are named.
const setIDs = 0o6000

// Parse reads a mode: octal digits, or symbolic clauses with commas between them. What it returns says what mode an object
// with these attributes, of which type and mode count, gets.
func Parse(s string) (func(*vfs.Attr) uint32, error) {
	if mode, err := Octal(s); err == nil {
		return func(a *vfs.Attr) uint32 {
			if a.Type == vfs.TypeDir && len(s) < len("00755") { // as GNU chmod
				return mode | a.Mode&setIDs
			}
			return mode
		}, nil
	}
	var changes []change
	for text := range strings.SplitSeq(s, ",") {
		clause, ok := parseClause(text)
		if !ok {
			return nil, badMode(s)
		}
		changes = append(changes, clause...)
	}
	return func(a *vfs.Attr) uint32 {
		mode := a.Mode
		for i := range changes {
			mode = changes[i].apply(mode, a.Type == vfs.TypeDir)
		}
		return mode
	}, nil
}

// change is one change of a symbolic mode.
type change struct {
	who  uint32 // the bits of u, g and o
	op   byte   // '+', '-', '='
	bits uint32 // as for all of them
	x    bool   // X
	copy uint32 // the bits of one of u, g and o, of which all get what it has; 0: bits
}

// whoBits are the bits that belong to u, g, o or a.
func whoBits(letter byte) (bits uint32, ok bool) {
	bits, ok = map[byte]uint32{'u': 0o4700, 'g': 0o2070, 'o': 0o1007, 'a': maxMode}[letter]
	return bits, ok
}

// parseClause reads who, and one or more operators, each with what follows it.
func parseClause(text string) (changes []change, ok bool) {
	who, at := uint32(0), strings.IndexAny(text, "+-=")
	for i := range max(at, 0) {
		bits, ok := whoBits(text[i])
		if !ok {
			return nil, false
		}
		who |= bits
	}
	if at == 0 {
		who = maxMode
	}
	for at >= 0 {
		op, what := text[at], text[at+1:]
		if at = strings.IndexAny(what, "+-="); at >= 0 {
			what, text = what[:at], what
		}
		c := change{who: who, op: op}
		if ok = c.parse(what); !ok {
			return nil, false
		}
		changes = append(changes, c)
	}
	return changes, ok
}

// parse reads what an operator gives or takes.
func (c *change) parse(what string) bool {
	if len(what) == 1 && strings.Contains("ugo", what) {
		bits, ok := whoBits(what[0])
		c.copy = bits & 0o777
		return ok
	}
	for i := range len(what) {
		bits, ok := map[byte]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111, 'X': 0, 's': setIDs, 't': 0o1000}[what[i]]
		if !ok {
			return false
		}
		c.bits |= bits
		c.x = c.x || what[i] == 'X'
	}
	return c.op == '=' || what != ""
}

// apply is mode after the change.
func (c *change) apply(mode uint32, isDir bool) uint32 {
	bits := c.bits
	if c.copy != 0 {
		has := mode & c.copy
		for _, one := range []uint32{0o444, 0o222, 0o111} {
			if has&one != 0 {
				bits |= one
			}
		}
	}
	if c.x && (isDir || mode&0o111 != 0) {
		bits |= 0o111
	}
	bits &= c.who
	switch c.op {
	case '+':
		return mode | bits
	case '-':
		return mode &^ bits
	}
	if isDir {
		bits |= mode & setIDs // as chmod(1): only an explicit g-s takes them from a directory
	}
	return mode&^c.who | bits
}
