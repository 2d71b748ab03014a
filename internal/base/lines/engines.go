package lines

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// Matcher returns what tells whether a line matches, by Go's expressions. It is for one goroutine.
func (p *Pattern) Matcher() func(line []byte) bool {
	var wide []byte
	return func(line []byte) bool {
		if isASCII(line) {
			return p.lines.Match(line)
		}
		wide = appendWide(wide[:0], line)
		return p.lines.Match(wide)
	}
}

// errNoBytes says that an expression is about characters that are no bytes.
var errNoBytes = errors.New("the pattern has a part that no byte can match")

// wideEscape is how a private character is printed in an expression.
var wideEscape = regexp.MustCompile(`\\x\{e0([0-9a-f]{2})\}`)

// Latin1 is the expression that selects lines for an engine with RE2's syntax whose characters are bytes. An error
// says that there is none.
func (p *Pattern) Latin1() (string, error) {
	tree, err := latin1(p.tree)
	if err != nil {
		return "", fmt.Errorf("%w: %s", errNoBytes, narrow(p.tree.String()))
	}
	return wideEscape.ReplaceAllString(tree.String(), `\x$1`), nil
}

// latin1 copies an expression without characters that are no bytes. Those above 127 stay private: they have no case.
func latin1(re *syntax.Regexp) (*syntax.Regexp, error) {
	c := *re
	c.Rune, c.Sub, c.Sub0 = nil, nil, [1]*syntax.Regexp{}
	switch re.Op {
	case syntax.OpLiteral:
		return latin1Literal(re)
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			for _, of := range [][2]rune{{0, utf8.RuneSelf - 1}, {wideBase + utf8.RuneSelf, wideBase + 0xFF}} {
				if from, to := max(re.Rune[i], of[0]), min(re.Rune[i+1], of[1]); from <= to {
					c.Rune = append(c.Rune, from, to)
				}
			}
		}
		if len(c.Rune) == 0 {
			return nil, errNoBytes
		}
		return &c, nil
	case syntax.OpNoMatch:
		return nil, errNoBytes
	}
	for _, sub := range re.Sub {
		one, err := latin1(sub)
		if err != nil {
			return nil, err
		}
		c.Sub = append(c.Sub, one)
	}
	return &c, nil
}

// latin1Literal divides a literal in parts that have letters with case, and bytes that have none.
func latin1Literal(re *syntax.Regexp) (*syntax.Regexp, error) {
	all := &syntax.Regexp{Op: syntax.OpConcat, Flags: re.Flags}
	for i := 0; i < len(re.Rune); {
		high := re.Rune[i] >= utf8.RuneSelf
		end := i
		for end < len(re.Rune) && (re.Rune[end] >= utf8.RuneSelf) == high {
			if r := re.Rune[end]; high && (r < wideBase+utf8.RuneSelf || r > wideBase+0xFF) {
				return nil, errNoBytes
			}
			end++
		}
		part := &syntax.Regexp{Op: syntax.OpLiteral, Flags: re.Flags, Rune: re.Rune[i:end]}
		if high {
			part.Flags &^= syntax.FoldCase
		}
		all.Sub = append(all.Sub, part)
		i = end
	}
	if len(all.Sub) == 1 {
		return all.Sub[0], nil
	}
	return all, nil
}
