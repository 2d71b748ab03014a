package ls

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// Entry is an object as it is shown.
type Entry struct {
	Name   string // or its path
	Handle vfs.Handle
	Attr   vfs.Attr
	Target string // of a symbolic link; "" if it is not known
	Err    error  // why the target is not known
}

// Key is what entries are sorted by.
type Key string

// The keys, by the names that users give them.
const (
	ByName Key = "name"
	ByTime Key = "time" // the newest first
	BySize Key = "size" // the largest first
	AsIs   Key = "none" // as they came
)

// Sort sorts entries, those with equal keys by name. reverse turns the whole order.
func Sort(entries []Entry, by Key, reverse bool) {
	if by != AsIs {
		slices.SortFunc(entries, func(a, b Entry) int {
			order := strings.Compare(a.Name, b.Name)
			switch by {
			case ByTime:
				order = cmp.Or(b.Attr.Mtime.Compare(a.Attr.Mtime), order)
			case BySize:
				order = cmp.Or(cmp.Compare(b.Attr.Size, a.Attr.Size), order)
			}
			return order
		})
	}
	if reverse {
		slices.Reverse(entries)
	}
}

// Hidden reports whether ls leaves out a name unless asked for all.
func Hidden(name string) bool { return strings.HasPrefix(name, ".") }

// Style says how entries are shown.
type Style struct {
	Human   bool     // sizes as 1.2K, and not in bytes
	Colours *Colours // nil: none
}

// Line is an entry in the long form, without the end of the line.
func (s *Style) Line(e *Entry) string {
	a := &e.Attr
	size := fmt.Sprint(a.Size)
	switch {
	case a.Type == vfs.TypeBlock || a.Type == vfs.TypeChar:
		size = fmt.Sprintf("%d, %d", a.Rdev>>32, uint32(a.Rdev))
	case s.Human:
		size = Size(a.Size)
	}
	line := fmt.Sprintf("%s %3d %5d %5d %*s %s %s", Mode(a), a.Nlink, a.UID, a.GID, s.sizeWidth(), size,
		a.Mtime.Format(time.DateTime), s.Name(e))
	if e.Target != "" {
		line += " -> " + progress.Clean(e.Target)
	}
	return line
}

// Name is an entry's name, with its colour.
func (s *Style) Name(e *Entry) string {
	return s.Colours.paint(progress.Clean(e.Name), e)
}

// sizeWidth is the width of the column of sizes.
func (s *Style) sizeWidth() int {
	if s.Human {
		return len("1023M")
	}
	return 12
}

// Total is the line above a long listing: the space that the entries use.
func (s *Style) Total(entries []Entry) string {
	var used uint64
	for i := range entries {
		used += entries[i].Attr.Used
	}
	if s.Human {
		return "total " + Size(used)
	}
	return fmt.Sprintf("total %d", (used+1023)/1024)
}

// units are those of sizes, each 1024 times the one before.
const units = "KMGTPE"

// Size shows a number of bytes in at most five characters, rounded up as ls -h does: "0", "1023",
// "1.1K", "12M".
func Size(n uint64) string {
	if n < 1024 {
		return fmt.Sprint(n)
	}
	unit := uint64(1)
	for i := range len(units) {
		unit <<= 10
		tenths := tenthsUp(n, unit)
		switch last := i == len(units)-1; {
		case tenths < 100:
			return fmt.Sprintf("%d.%d%c", tenths/10, tenths%10, units[i])
		case last || (n-1)/unit+1 < 1024:
			return fmt.Sprintf("%d%c", (n-1)/unit+1, units[i])
		}
	}
	return "" // not reached: the last unit holds every number
}

// tenthsUp is n in tenths of unit, rounded up.
func tenthsUp(n, unit uint64) uint64 {
	whole, rest := n/unit, n%unit
	// rest*10 overflows nowhere: a unit has at most 60 bits.
	return whole*10 + (rest*10+unit-1)/unit
}

// Mode is type and permissions: "drwxr-xr-x".
func Mode(a *vfs.Attr) string {
	const types = "?-dbclsp"
	b := []byte("?rwxrwxrwx")
	if int(a.Type) < len(types) {
		b[0] = types[a.Type]
	}
	for i := range 9 {
		if a.Mode&(1<<(8-i)) == 0 {
			b[i+1] = '-'
		}
	}
	for _, special := range []struct {
		bit      uint32
		at       int
		with, no byte
	}{{0o4000, 3, 's', 'S'}, {0o2000, 6, 's', 'S'}, {0o1000, 9, 't', 'T'}} {
		if a.Mode&special.bit == 0 {
			continue
		}
		if b[special.at] == 'x' {
			b[special.at] = special.with
		} else {
			b[special.at] = special.no
		}
	}
	return string(b)
}
