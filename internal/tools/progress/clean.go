package progress

import (
	"unicode"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/base/fault"
)

// Clean is [fault.Clean]: a name as a terminal may show it.
func Clean(name string) string { return fault.Clean(name) }

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

const hex = "0123456789abcdef"

// appendUnit appends a UTF-16 unit as JSON escapes it.
func appendUnit(out []byte, u rune) []byte {
	return append(out, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}
