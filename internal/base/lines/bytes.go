package lines

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Go's expressions know characters, in UTF-8. Here each byte is one. Those of ASCII are themselves. The others
// become characters of Unicode's private use area, which have no case and are no letters.

const wideBase = 0xE000 // the character of byte b is wideBase+b

// isASCII reports whether line has no byte above 127.
func isASCII(line []byte) bool {
	for len(line) >= 8 {
		if binary.NativeEndian.Uint64(line)&0x8080808080808080 != 0 {
			return false
		}
		line = line[8:]
	}
	for _, c := range line {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendWide appends line as expressions see it: three bytes for each that is not ASCII.
func appendWide(to, line []byte) []byte {
	for _, c := range line {
		if c < utf8.RuneSelf {
			to = append(to, c)
		} else {
			to = utf8.AppendRune(to, wideBase+rune(c))
		}
	}
	return to
}

// wideLead is the first byte of each private character, and stands nowhere else in a widened line.
const wideLead = 0xEE

func widenText(s string) string { return string(appendWide(nil, []byte(s))) }

// narrow is the reverse of widenText.
func narrow(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > wideBase && r <= wideBase+0xFF {
			b = append(b, byte(r-wideBase))
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

// widenPattern widens an expression: its bytes, and escapes of bytes such as \xff, \x{ff} and \377. What GNU grep has
// and Go has not is rewritten.
func widenPattern(s string) string {
	var b strings.Builder
	quoted := false // between \Q and \E
	within := 0     // the length of what is left of a class in brackets
	for i := 0; i < len(s); {
		n := 1
		inClass := i < within
		if !quoted && !inClass && s[i] == '[' {
			within = i + classLength(s[i:])
		}
		switch {
		case s[i] >= utf8.RuneSelf:
			b.WriteRune(wideBase + rune(s[i]))
			i++
			continue
		case inClass && s[i] != '\\':
		case quoted:
			quoted = !strings.HasPrefix(s[i:], `\E`)
		case !inClass && strings.HasPrefix(s[i:], `\Q`):
			quoted = true
		case !inClass && gnuOnly(s[i:]) != "":
			b.WriteString(gnuOnly(s[i:]))
			i += 2
			continue
		case s[i] == '\\':
			if c, length := byteEscape(s[i:]); length > 0 {
				b.WriteRune(wideBase + rune(c))
				i += length
				continue
			}
			if i+1 < len(s) && s[i+1] < utf8.RuneSelf {
				n = 2
			}
		}
		b.WriteString(s[i : i+n])
		i += n
	}
	return b.String()
}

// gnuOnly is what stands for the two bytes at the beginning of s, if GNU grep has them and Go has not: \< and \>,
// \` and \', and {, of {,n}.
func gnuOnly(s string) string {
	switch {
	case strings.HasPrefix(s, `\<`):
		return fmt.Sprintf("(?:%c%c)", rune(markBegin), rune(markTail))
	case strings.HasPrefix(s, `\>`):
		return fmt.Sprintf("(?:%c%c)", rune(markEnd), rune(markTail))
	case strings.HasPrefix(s, "\\`"):
		return `\A`
	case strings.HasPrefix(s, `\'`):
		return `\z`
	case strings.HasPrefix(s, "{,"):
		if rest := strings.TrimLeft(s[2:], "0123456789"); strings.HasPrefix(rest, "}") {
			return "{0,"
		}
	}
	return ""
}

// classLength is how long the class in brackets is with which s begins.
func classLength(s string) int {
	i := 1
	if strings.HasPrefix(s[i:], "^") {
		i++
	}
	for first := true; i < len(s); first = false {
		switch {
		case s[i] == ']' && !first:
			return i + 1
		case strings.HasPrefix(s[i:], "[:"):
			if end := strings.Index(s[i+2:], ":]"); end >= 0 {
				i += 2 + end + 1
			}
		case s[i] == '\\':
			i++
		}
		i++
	}
	return len(s)
}

// byteEscape reads the escape at the beginning of s, if it is that of a byte that is not ASCII.
func byteEscape(s string) (c byte, length int) {
	digits, base := "", 8
	switch {
	case strings.HasPrefix(s, `\x{`):
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return 0, 0
		}
		digits, base, length = s[3:end], 16, end+1
	case strings.HasPrefix(s, `\x`) && len(s) >= 4:
		digits, base, length = s[2:4], 16, 4
	case len(s) >= 4:
		digits, length = s[1:4], 4
	}
	n, err := strconv.ParseUint(digits, base, 8)
	if err != nil || n < utf8.RuneSelf {
		return 0, 0
	}
	return byte(n), length
}
