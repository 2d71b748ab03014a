package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// maxMode is all permissions, with set-uid, set-gid and sticky.
const maxMode = 0o7777

func octalMode(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > maxMode {
		return 0, badMode(s)
	}
	return uint32(n), nil
}

func badMode(s string) error {
	return &exitError{status: exitUsage, err: fmt.Errorf("%q is no mode: give octal digits, as 640, or [ugoa][+-=][rwxXst], as u+rw,go-w", s)}
}

// clause is one change of a symbolic mode.
type clause struct {
	who  uint32 // the bits of u, g and o
	op   byte   // '+', '-', '='
	bits uint32 // as for all of them
	x    bool   // X
}

// parseMode reads a mode of chmod(1): octal, or symbolic clauses with commas between them.
func parseMode(s string) (func(*vfs.Attr) uint32, error) {
	if mode, err := octalMode(s); err == nil {
		return func(*vfs.Attr) uint32 { return mode }, nil
	}
	var clauses []clause
	for text := range strings.SplitSeq(s, ",") {
		c, ok := parseClause(text)
		if !ok {
			return nil, badMode(s)
		}
		clauses = append(clauses, c)
	}
	return func(a *vfs.Attr) uint32 {
		mode := a.Mode
		for _, c := range clauses {
			mode = c.apply(mode, a.Type == vfs.TypeDir)
		}
		return mode
	}, nil
}

func parseClause(text string) (c clause, ok bool) {
	at := strings.IndexAny(text, "+-=")
	if at < 0 {
		return c, false
	}
	for _, who := range text[:at] {
		bits, ok := map[rune]uint32{'u': 0o4700, 'g': 0o2070, 'o': 0o1007, 'a': maxMode}[who]
		if !ok {
			return c, false
		}
		c.who |= bits
	}
	if at == 0 {
		c.who = maxMode
	}
	c.op = text[at]
	for _, what := range text[at+1:] {
		bits, ok := map[rune]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111, 'X': 0, 's': 0o6000, 't': 0o1000}[what]
		if !ok {
			return c, false
		}
		c.bits |= bits
		c.x = c.x || what == 'X'
	}
	return c, c.op == '=' || at+1 < len(text)
}

// apply is mode after the change.
func (c *clause) apply(mode uint32, isDir bool) uint32 {
	bits := c.bits
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
		bits |= mode & 0o6000 // as chmod(1): only an explicit g-s takes them from a directory
	}
	return mode&^c.who | bits
}
