package iofs

import (
	"strings"
	"unicode/utf8"
)

// quoteMark introduces a byte that is not UTF-8, written in hexadecimal, and
// stands for itself if doubled.
const quoteMark = '\u201b'

// quote turns a name of any bytes into valid UTF-8. Different names stay different, and
// unquote is the inverse.
func quote(name string) string {
	if utf8.ValidString(name) && !strings.ContainsRune(name, quoteMark) {
		return name
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for len(name) > 0 {
		r, size := utf8.DecodeRuneInString(name)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteRune(quoteMark)
			b.WriteByte(digits[name[0]>>4])
			b.WriteByte(digits[name[0]&15])
		case r == quoteMark:
			b.WriteRune(quoteMark)
			b.WriteRune(quoteMark)
		default:
			b.WriteString(name[:size])
		}
		name = name[size:]
	}
	return b.String()
}

// unquote returns the name from which quote has made shown. A mark that quote would not
// have written is left as it is.
func unquote(shown string) string {
	const mark = string(quoteMark)
	before, rest, ok := strings.Cut(shown, mark)
	if !ok {
		return shown
	}
	var b strings.Builder
	for ok {
		b.WriteString(before)
		if c, isByte := highByte(rest); isByte {
			b.WriteByte(c)
			rest = rest[2:]
		} else {
			b.WriteString(mark)
			rest = strings.TrimPrefix(rest, mark)
		}
		before, rest, ok = strings.Cut(rest, mark)
	}
	b.WriteString(before)
	return b.String()
}

// highByte reads the two hexadecimal digits of a byte. An ASCII byte is refused, since
// quote never writes one.
func highByte(s string) (byte, bool) {
	if len(s) < 2 || s[0] < '8' {
		return 0, false
	}
	hi, ok := digit(s[0])
	lo, ok2 := digit(s[1])
	return hi<<4 | lo, ok && ok2
}

func digit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
