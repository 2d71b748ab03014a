package filter

import (
	"errors"
	"fmt"
	"strings"
)

var errSet = errors.New("the pattern has a [ without its ]")

// parseSet parses [...] at the beginning of text, and returns its length. A slash is in no set.
func (e *element) parseSet(text string) (int, error) {
	at, not := 1, false
	if at < len(text) && (text[at] == '!' || text[at] == '^') {
		at, not = at+1, true
	}
	low := -1 // what a range may begin with; -1: nothing may
	for first := true; ; first = false {
		switch {
		case at >= len(text):
			return 0, errSet
		case text[at] == ']' && !first:
			if not {
				for i := range e.set {
					e.set[i] = ^e.set[i]
				}
			}
			e.set[0] &= notSlash[0]
			return at + 1, nil
		case text[at] == '-' && low >= 0 && at+1 < len(text) && text[at+1] != ']':
			high, n, err := setChar(text[at+1:])
			if err != nil {
				return 0, err
			}
			for c := low; c <= int(high); c++ {
				e.add(byte(c))
			}
			at, low = at+1+n, -1
		case strings.HasPrefix(text[at:], "[:") && isClass(text[at+2:]):
			n, err := e.addClass(text[at+2:])
			if err != nil {
				return 0, err
			}
			at, low = at+2+n, -1
		default:
			c, n, err := setChar(text[at:])
			if err != nil {
				return 0, err
			}
			e.add(c)
			at, low = at+n, int(c)
		}
	}
}

// setChar is a character of a set, which a backslash may stand before.
func setChar(text string) (c byte, n int, err error) {
	if text[0] != '\\' {
		return text[0], 1, nil
	}
	if len(text) < 2 {
		return 0, 0, errSet
	}
	return text[1], 2, nil
}

// isClass reports whether a class goes on with text, behind "[:": the next ] has a colon before it.
func isClass(text string) bool {
	end := strings.IndexByte(text, ']')
	return end > 0 && text[end-1] == ':'
}

// addClass adds a class, such as "alpha:]", and returns the length of its text.
func (e *element) addClass(text string) (int, error) {
	end := strings.IndexByte(text, ']')
	in := class(text[:end-1])
	if in == nil {
		return 0, fmt.Errorf("there is no class [:%s]", text[:end])
	}
	for c := range byte(128) {
		if in(c) {
			e.add(c)
		}
	}
	return end + 1, nil
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return isLower(c) || isUpper(c) }
func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }
func isGraph(c byte) bool { return ' ' < c && c <= '~' }

// class is a class of ASCII characters by its name; nil: there is none.
func class(name string) func(byte) bool {
	switch name {
	case "alpha":
		return isAlpha
	case "digit":
		return isDigit
	case "alnum":
		return isAlnum
	case "upper":
		return isUpper
	case "lower":
		return isLower
	case "space":
		return func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
	case "blank":
		return func(c byte) bool { return c == ' ' || c == '\t' }
	case "punct":
		return func(c byte) bool { return isGraph(c) && !isAlnum(c) }
	case "cntrl":
		return func(c byte) bool { return c < ' ' || c == 0x7f }
	case "print":
		return func(c byte) bool { return ' ' <= c && c <= '~' }
	case "graph":
		return isGraph
	case "xdigit":
		return func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
	}
	return nil
}
