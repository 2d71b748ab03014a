package progress

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Clean returns name in a form that is safe to show on a terminal. What is not printable
// (control characters, escape sequences, marks that change the direction of writing, bytes
// that are not UTF-8) is written as Go escapes it, and a backslash as two. Different names
// stay different. A name that needs none of this is returned unchanged.
func Clean(name string) string {
	for i, r := range name {
		if !plain(name, i, r) {
			return escape(name, i)
		}
	}
	return name
}

// plain reports whether the rune r, found at i, is shown as it is.
func plain(s string, i int, r rune) bool {
	if r == utf8.RuneError {
		// A replacement character of the name itself takes three bytes.
		_, size := utf8.DecodeRuneInString(s[i:])
		return size == 3
	}
	return r != '\\' && unicode.IsPrint(r)
}

// escape escapes s from the i'th byte on.
func escape(s string, i int) string {
	out := append(make([]byte, 0, len(s)+16), s[:i]...)
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case plain(s, i, r):
			out = append(out, s[i:i+size]...)
		case r == utf8.RuneError:
			out = append(out, `\x`...)
			out = append(out, hex[s[i]>>4], hex[s[i]&15])
		default:
			quoted := strconv.AppendQuoteRuneToASCII(nil, r)
			out = append(out, quoted[1:len(quoted)-1]...)
		}
		i += size
	}
	return string(out)
}

const hex = "0123456789abcdef"

// appendPrintable appends text, which is JSON, with what is not printable escaped, so that a terminal
// can show it: some take U+009B for the beginning of an escape sequence. JSON has such characters in
// strings only.
func appendPrintable(out, text []byte) []byte {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case unicode.IsPrint(r):
			out = append(out, text[i:i+size]...)
		case r > 0xffff:
			r -= 0x10000
			out = appendUnit(out, 0xd800+r>>10)
			out = appendUnit(out, 0xdc00+r&0x3ff)
		default:
			out = appendUnit(out, r)
		}
		i += size
	}
	return out
}

// appendUnit appends a UTF-16 unit as JSON escapes it.
func appendUnit(out []byte, u rune) []byte {
	return append(out, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}
