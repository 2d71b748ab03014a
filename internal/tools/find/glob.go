package find

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Glob is a pattern of fnmatch(3) without flags, as find(1) uses it: * and ? match a slash and
// a leading dot, too. A byte that is not UTF-8 is a character of its own.
type Glob struct {
	parts []part
	fold  bool // upper and lower case are the same
}

// part matches one character, or with star any number of them.
type part struct {
	star bool
	any  bool
	char rune
	set  *set // nil: char alone
}

// set is a bracket expression.
type set struct {
	not    bool
	ranges [][2]rune
	is     []func(rune) bool // the classes
}

// notUTF8 is the character that a byte which is not UTF-8 counts as. It has no other meaning.
const notUTF8 = unicode.MaxRune + 1

// ParseGlob parses a pattern. fold says that upper and lower case are the same. A pattern that ends in
// a backslash, or has a class that there is not, is an error. As for find(1), a [ without its ] is a character.
func ParseGlob(pattern string, fold bool) (*Glob, error) {
	g := &Glob{fold: fold}
	for rest := pattern; rest != ""; {
		c, n := next(rest)
		rest = rest[n:]
		switch c {
		case '*':
			if len(g.parts) == 0 || !g.parts[len(g.parts)-1].star {
				g.parts = append(g.parts, part{star: true})
			}
		case '?':
			g.parts = append(g.parts, part{any: true})
		case '\\':
			if rest == "" {
				return nil, fmt.Errorf("pattern %q ends in a backslash", pattern)
			}
			c, n = next(rest)
			rest = rest[n:]
			g.parts = append(g.parts, part{char: g.folded(c)})
		case '[':
			s, length, err := parseSet(rest)
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", pattern, err)
			}
			rest = rest[length:]
			g.parts = append(g.parts, part{char: '[', set: s})
		default:
			g.parts = append(g.parts, part{char: g.folded(c)})
		}
	}
	return g, nil
}

// Literal reports whether the pattern has no character that stands for others.
func (g *Glob) Literal() bool {
	return !slices.ContainsFunc(g.parts, func(p part) bool { return p.star || p.any || p.set != nil })
}

// next is the first character of s, and its length.
func next(s string) (rune, int) {
	c, n := utf8.DecodeRuneInString(s)
	if c == utf8.RuneError && n == 1 {
		return notUTF8 + rune(s[0]), 1
	}
	return c, n
}

func (g *Glob) folded(c rune) rune {
	if g.fold && c <= unicode.MaxRune {
		return unicode.ToLower(c)
	}
	return c
}

// parseSet parses what follows a [; nil and 0 if there is no ].
func parseSet(text string) (*set, int, error) {
	s, at := new(set), 0
	if strings.HasPrefix(text, "!") || strings.HasPrefix(text, "^") {
		s.not, at = true, 1
	}
	for first := true; ; first = false {
		switch {
		case at >= len(text):
			return nil, 0, nil
		case text[at] == ']' && !first:
			return s, at + 1, nil
		case strings.HasPrefix(text[at:], "[:"):
			if name, _, ok := strings.Cut(text[at+len("[:"):], ":]"); ok {
				is := class(name)
				if is == nil {
					return nil, 0, fmt.Errorf("there is no class [:%s:]", name)
				}
				s.is = append(s.is, is)
				at += len("[:") + len(name) + len(":]")
				continue
			}
		}
		low, n := setChar(text[at:])
		at += n
		high := low
		if len(text) > at+1 && text[at] == '-' && text[at+1] != ']' {
			high, n = setChar(text[at+1:])
			at += 1 + n
		}
		s.ranges = append(s.ranges, [2]rune{low, high})
	}
}

// setChar is a character of a set, which a backslash may stand before.
func setChar(text string) (c rune, n int) {
	if text[0] == '\\' && len(text) > 1 {
		c, n = next(text[1:])
		return c, n + 1
	}
	return next(text)
}

// class is a class of characters by its name; nil: there is none.
func class(name string) func(rune) bool {
	switch name {
	case "alpha":
		return unicode.IsLetter
	case "digit":
		return func(c rune) bool { return '0' <= c && c <= '9' }
	case "alnum":
		return func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }
	case "upper":
		return unicode.IsUpper
	case "lower":
		return unicode.IsLower
	case "space":
		return unicode.IsSpace
	case "blank":
		return func(c rune) bool { return c == ' ' || c == '\t' }
	case "punct":
		return func(c rune) bool { return unicode.IsPunct(c) || unicode.IsSymbol(c) }
	case "cntrl":
		return unicode.IsControl
	case "print":
		return unicode.IsPrint
	case "graph":
		return func(c rune) bool { return unicode.IsPrint(c) && c != ' ' }
	case "xdigit":
		return func(c rune) bool { return unicode.Is(unicode.ASCII_Hex_Digit, c) }
	}
	return nil
}

// names reports whether c is one of the characters that the set names.
func (s *set) names(c rune) bool {
	for _, r := range s.ranges {
		if r[0] <= c && c <= r[1] {
			return true
		}
	}
	return c <= unicode.MaxRune && slices.ContainsFunc(s.is, func(is func(rune) bool) bool { return is(c) })
}

// one reports whether a part, which is no star, matches a character.
func (g *Glob) one(p *part, c rune) bool {
	switch {
	case p.any:
		return true
	case p.set == nil:
		return g.folded(c) == p.char
	}
	named := p.set.names(c)
	if g.fold && c <= unicode.MaxRune {
		named = named || p.set.names(unicode.ToLower(c)) || p.set.names(unicode.ToUpper(c))
	}
	return named != p.set.not
}

// Match reports whether the whole of name matches. It takes time in proportion to the product of both
// lengths at most: after a second star the first is never gone back to.
func (g *Glob) Match(name []byte) bool {
	at, star, again := 0, -1, 0 // again: where the name goes on if the star takes one character more
	for i := 0; i < len(name); {
		c, n := utf8.DecodeRune(name[i:])
		if c == utf8.RuneError && n == 1 {
			c = notUTF8 + rune(name[i])
		}
		switch {
		case at < len(g.parts) && g.parts[at].star:
			star, again = at, i
			at++
		case at < len(g.parts) && g.one(&g.parts[at], c):
			at++
			i += n
		case star >= 0:
			_, n = utf8.DecodeRune(name[again:])
			again += n
			at, i = star+1, again
		default:
			return false
		}
	}
	for at < len(g.parts) && g.parts[at].star {
		at++
	}
	return at == len(g.parts)
}
