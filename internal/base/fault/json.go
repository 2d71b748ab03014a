package fault

import (
	"unicode"
	"unicode/utf8"
)

// CleanJSON returns text, which is JSON without line feeds between its values, with what is not printable escaped, so
// that a terminal can show it: some take U+009B for the beginning of an escape sequence. JSON
// has such characters in strings only. Text that needs none of this is returned itself.
func CleanJSON(text []byte) []byte {
	from := 0
	var out []byte
	for i := 0; i < len(text); {
		if ' ' <= text[i] && text[i] <= '~' { // nearly all of it
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if !unicode.IsPrint(r) {
			out = append(out, text[from:i]...)
			if r > 0xffff {
				r -= 0x10000
				out = appendUnit(out, 0xd800+r>>10)
				r = 0xdc00 + r&0x3ff
			}
			out = appendUnit(out, r)
			from = i + size
		}
		i += size
	}
	if out == nil {
		return text
	}
	return append(out, text[from:]...)
}

// appendUnit appends a UTF-16 unit as JSON escapes it.
func appendUnit(out []byte, u rune) []byte {
	return append(out, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}
