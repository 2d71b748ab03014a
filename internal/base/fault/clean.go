package fault

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
