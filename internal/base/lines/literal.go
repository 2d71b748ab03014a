package lines

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"
)

// literal is a text that each match contains. The zero literal is that of nothing.
type literal struct {
	text []byte // in lower case if fold
	fold bool
}

// required finds the longest literal that each match of an expression contains. sole: it is all there is to match.
func required(re *syntax.Regexp) (best literal, sole bool) {
	switch re.Op {
	case syntax.OpLiteral:
		lit := literalOf(re)
		return lit, len(lit.text) > 0
	case syntax.OpCapture:
		return required(re.Sub[0])
	case syntax.OpPlus:
		best, _ = required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			best, _ = required(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if lit, _ := required(sub); len(lit.text) > len(best.text) {
				best = lit
			}
		}
	}
	return best, false
}

// literalOf is the literal of an OpLiteral, in bytes. It is empty if no line can contain it: the expression then
// says so.
func literalOf(re *syntax.Regexp) literal {
	var lit literal
	for _, r := range re.Rune {
		switch {
		case r == '\n':
			return literal{}
		case r < utf8.RuneSelf:
			lit.text = append(lit.text, byte(r))
		case r >= wideBase+utf8.RuneSelf && r <= wideBase+0xFF:
			lit.text = append(lit.text, byte(r-wideBase))
		default:
			return literal{}
		}
	}
	if re.Flags&syntax.FoldCase != 0 {
		low := appendLower(nil, lit.text)
		lit.fold = !bytes.Equal(low, appendUpper(nil, lit.text))
		lit.text = low
	}
	return lit
}

// appendLower appends text with the letters of ASCII in lower case.
func appendLower(to, text []byte) []byte {
	for _, c := range text {
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		to = append(to, c)
	}
	return to
}

func appendUpper(to, text []byte) []byte {
	for _, c := range text {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		to = append(to, c)
	}
	return to
}
