package scan

import (
	"bytes"
	"hash/maphash"
	"strings"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/vfs"
)

// What is said of the bytes of a name.
const (
	upper   = 1 << iota // a capital letter of ASCII
	high                // no ASCII
	control             // a control character
	windows             // Windows has it in no name
	avoid               // Amazon's guide advises against it in keys of S3
	dotted              // a dot
)

// alphabet says of each byte what it is, and its lower case.
type alphabet struct{ class, lower [256]uint8 }

func newAlphabet() *alphabet {
	a := new(alphabet)
	for i := range 256 {
		b, c := byte(i), uint8(0)
		a.lower[i] = b
		switch {
		case 'A' <= b && b <= 'Z':
			c, a.lower[i] = upper, b|0x20
		case b >= 0x80:
			c = high
		case b < ' ' || b == 0x7f:
			c = control | windows | avoid
		case b == '.':
			c = dotted
		}
		if strings.IndexByte(`<>:"\|?*`, b) >= 0 {
			c |= windows
		}
		if strings.IndexByte("\\{}^%`[]\"<>~#|", b) >= 0 {
			c |= avoid
		}
		a.class[i] = c
	}
	a.class[0x7f] &^= windows
	return a
}

// spelling is what there is to know of a name.
type spelling struct {
	flags   uint8
	invalid bool // no UTF-8
	hash    uint64
	ext     int // where the last dot is; 0: none, or it begins the name
}

// read looks at the bytes of a name, of at most vfs.MaxName. buf gets the name in lower case.
func (a *alphabet) read(name []byte, seed maphash.Seed, buf *[vfs.MaxName]byte) (s spelling) {
	for i, b := range name {
		s.flags |= a.class[b]
		buf[i] = a.lower[b]
		if b == '.' {
			s.ext = i
		}
	}
	low := buf[:len(name)]
	if s.flags&high != 0 {
		if s.invalid = !utf8.Valid(name); !s.invalid {
			folded := strings.ToLower(string(name))
			if folded != string(name) {
				s.flags |= upper
			}
			s.hash = maphash.String(seed, folded)
			return s
		}
	}
	s.hash = maphash.Bytes(seed, low)
	return s
}

// windowsRefuses reports whether Windows has no such name. low is the name in lower case.
func windowsRefuses(low []byte, flags uint8) bool {
	if flags&windows != 0 {
		return true
	}
	if last := low[len(low)-1]; last == '.' || last == ' ' {
		return true
	}
	if c := low[0]; len(low) < 3 || c != 'c' && c != 'p' && c != 'a' && c != 'n' && c != 'l' {
		return false
	}
	base := low
	if flags&dotted != 0 {
		base, _, _ = bytes.Cut(low, []byte{'.'})
		base = bytes.TrimRight(base, " ")
	}
	switch string(base) {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (bytes.HasPrefix(base, []byte("com")) || bytes.HasPrefix(base, []byte("lpt"))) && '1' <= base[3] && base[3] <= '9'
}
