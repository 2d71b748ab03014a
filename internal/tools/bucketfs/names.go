package bucketfs

import (
	"strings"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/vfs"
)

// linkSuffix ends the keys of symbolic links, as rclone's --links has them.
const linkSuffix = ".rclonelink"

// maxSegment is the longest segment of a name, in bytes. A longer one is foreign, and not looked at.
const maxSegment = 3 * vfs.MaxName

// kind is what a key stands for.
type kind uint8

const (
	isFile kind = iota
	isLink      // linkSuffix ends the key
	isDir       // a slash ends the key; that of the root is empty
)

// kindOf is what a key below the root stands for: the key itself says it.
func kindOf(key string) kind {
	switch {
	case key == "" || strings.HasSuffix(key, "/"):
		return isDir
	case strings.HasSuffix(key, linkSuffix):
		return isLink
	}
	return isFile
}

// keyOf is the key of a name in the directory of the key dir.
func keyOf(dir, name string, k kind) string {
	key := dir + segment(name)
	switch k {
	case isLink:
		key += linkSuffix
	case isDir:
		key += "/"
	}
	return key
}

// segment is a name as a part of a key. Each name has one segment, and each segment without bad bytes one name.
//
// Most names are their own segments. One with bad bytes has these as %XX, and each "%" as "%25". So has one that is the segment of
// another name: what looks like an escape, and is none, stays as it is. The suffix of links is bad, so that no file becomes one.
func segment(name string) string {
	if escapes(name) {
		return escape(name)
	}
	return name
}

// escapes reports whether a name is not its own segment: it has bad bytes, or is the segment of another name, which escapes then. Such names
// may stand behind each other, as in "%252525": then each "%" has as many "25" behind it at least, and without these the escape of a
// bad byte is left.
func escapes(name string) bool {
	if hasBad(name) {
		return true
	}
	parts := strings.Split(name, "%")
	depth := len(name)
	for _, part := range parts[1:] {
		n := 0
		for strings.HasPrefix(part[n:], "25") {
			n += 2
		}
		depth = min(depth, n)
	}
	for i := range parts[1:] {
		parts[i+1] = parts[i+1][depth:]
	}
	last := strings.Join(parts, "%")
	plain := unescape(last)
	return hasBad(plain) && escape(plain) == last
}

// escape is a name with its bad bytes, and each "%", as %XX.
func escape(name string) string {
	b := make([]byte, 0, 3*len(name))
	for i := 0; i < len(name); {
		n := good(name[i:])
		if n == 0 || name[i] == '%' || name[i:] == linkSuffix {
			b = append(b, '%', digits[name[i]>>4], digits[name[i]&15])
			i++
			continue
		}
		b = append(b, name[i:i+n]...)
		i += n
	}
	return string(b)
}

// good is how many bytes the character takes that s begins with; 0 if it is one that S3, XML or a terminal makes trouble with: no
// UTF-8, a control character, or one that XML cannot have.
func good(s string) int {
	if s[0] < 0x80 {
		if s[0] < ' ' || s[0] == 0x7f {
			return 0
		}
		return 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n <= 1 || r == 0xfffe || r == 0xffff {
		return 0
	}
	return n
}

func hasBad(name string) bool {
	for i := 0; i < len(name); {
		n := good(name[i:])
		if n == 0 {
			return true
		}
		i += n
	}
	return strings.HasSuffix(name, linkSuffix)
}

// unescape is s with each %XX, in capitals, as the byte that it stands for.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := digit(s[i+1]), digit(s[i+2]); hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

const digits = "0123456789ABCDEF"

func digit(c byte) int { return strings.IndexByte(digits, c) }

// segmentOf is the segment that a key ends with in the directory of the key dir, which it begins with.
func segmentOf(dir, key string) string {
	s := strings.TrimPrefix(key, dir)
	switch kindOf(key) {
	case isDir:
		s = strings.TrimSuffix(s, "/")
	case isLink:
		s = strings.TrimSuffix(s, linkSuffix)
	}
	return s
}

// nameOf is the name that a key stands for in the directory of the key dir, which it begins with. ok is false if it stands for none:
// the key is foreign. Then name may be what it would be.
func nameOf(dir, key string) (name string, ok bool) {
	s := segmentOf(dir, key)
	if len(s) > maxSegment {
		return "", false
	}
	for _, name := range [...]string{unescape(s), s} {
		if segment(name) == s {
			return name, vfs.CheckName(name) == nil
		}
	}
	return "", false
}
