package lines

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// Go's expressions have \b, and neither \< nor \>, the beginning and the end of a word. But \b behind a byte of no word,
// or before one of a word, is \<; and the other way round it is \>. So an expression that has them is rewritten: what
// stands beside them is restricted to such bytes, and they become \b.

// The marks of \< and \> in an expression, as it is parsed. They are two characters, lest a parser make a class of
// one, and begin differently, lest it divide them.
const (
	markBegin = wideBase + 0x200 + iota
	markEnd
	markTail
)

func isMark(r rune) bool { return r == markBegin || r == markEnd }

// parts is an expression without marks, as alternatives, of which each may be nil: there is none.
type parts struct {
	plain *syntax.Regexp
	begin *syntax.Regexp // of no bytes, and only where a word begins
	end   *syntax.Regexp // of no bytes, and only where a word ends
}

// bounds rewrites an expression. span is what matches are; selects also matches where only a match of no bytes is,
// but then more than that. An expression without marks is both.
func bounds(re *syntax.Regexp, limit int) (selects, span *syntax.Regexp, err error) {
	if !marked(re) {
		return re, re, nil
	}
	b := bounder{limit: limit}
	p := b.parts(re)
	if b.limit < 0 {
		return nil, nil, ErrTooLarge
	}
	span = p.plain
	selects = or(span, or(then(p.begin, class(inWord())), then(class(inWord()), p.end)))
	never := &syntax.Regexp{Op: syntax.OpNoMatch}
	if span == nil {
		span = never
	}
	if selects == nil {
		selects = never
	}
	return selects, span, nil
}

// marked reports whether there are marks in an expression.
func marked(re *syntax.Regexp) bool {
	if re.Op == syntax.OpLiteral {
		return slices.ContainsFunc(re.Rune, isMark)
	}
	return slices.ContainsFunc(re.Sub, marked)
}

// bounder rewrites expressions. Below 0 limit says that they become too large, and that what comes of it is of no use.
type bounder struct{ limit int }

func (b *bounder) parts(re *syntax.Regexp) parts {
	if b.limit < 0 || !marked(re) {
		return parts{plain: re}
	}
	switch re.Op {
	case syntax.OpLiteral:
		return b.concat(split(re))
	case syntax.OpConcat:
		return b.concat(re.Sub)
	case syntax.OpAlternate:
		var all parts
		for _, sub := range re.Sub {
			p := b.parts(sub)
			all = parts{or(all.plain, p.plain), or(all.begin, p.begin), or(all.end, p.end)}
		}
		return all
	case syntax.OpStar: // matches of no bytes add nothing, here and below
		return parts{plain: repeated(syntax.OpStar, b.parts(re.Sub[0]).plain)}
	case syntax.OpQuest:
		return parts{plain: repeated(syntax.OpQuest, b.parts(re.Sub[0]).plain)}
	case syntax.OpPlus:
		p := b.parts(re.Sub[0])
		if p.plain != nil {
			p.plain = repeated(syntax.OpPlus, p.plain)
		}
		return p
	case syntax.OpRepeat:
		return b.parts(re.Simplify())
	}
	return b.parts(re.Sub[0]) // OpCapture
}

// split divides a literal into marks and what stands between them.
func split(re *syntax.Regexp) (all []*syntax.Regexp) {
	for rest := re.Rune; len(rest) > 0; {
		n := 2
		if !isMark(rest[0]) {
			if n = slices.IndexFunc(rest, isMark); n < 0 {
				n = len(rest)
			}
		}
		all = append(all, &syntax.Regexp{Op: syntax.OpLiteral, Flags: re.Flags, Rune: rest[:n]})
		rest = rest[n:]
	}
	return all
}

// concat is of one expression after the other.
func (b *bounder) concat(subs []*syntax.Regexp) parts {
	all := parts{plain: &syntax.Regexp{Op: syntax.OpEmptyMatch}}
	for _, sub := range subs {
		var next parts
		switch {
		case sub.Op == syntax.OpLiteral && isMark(sub.Rune[0]):
			next.begin = &syntax.Regexp{Op: syntax.OpWordBoundary}
			if sub.Rune[0] == markEnd {
				next.begin, next.end = nil, next.begin
			}
			if len(sub.Rune) > 2 {
				next = b.concat(split(sub))
			}
		default:
			next = b.parts(sub)
		}
		all = b.join(all, next)
		if b.limit -= sizeUpTo(all.plain, b.limit); b.limit < 0 {
			break
		}
	}
	return all
}

// join is x and then y.
func (b *bounder) join(x, y parts) parts {
	var all parts
	all.plain = or(then(x.plain, y.plain), or(
		or(then(x.begin, edge(y.plain, inWord(), first)), then(x.end, edge(y.plain, inNoWord(), first))),
		or(then(edge(x.plain, inNoWord(), last), y.begin), then(edge(x.plain, inWord(), last), y.end)),
	))
	nothing := func(x, y, emptyX, emptyY *syntax.Regexp) *syntax.Regexp {
		return or(then(x, y), or(then(x, emptyY), then(emptyX, y)))
	}
	ex, ey := empty(x.plain), empty(y.plain)
	all.begin = nothing(x.begin, y.begin, ex, ey)
	all.end = nothing(x.end, y.end, ex, ey)
	return all
}

// inWord are the bytes of words, as ranges.
func inWord() []rune { return []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'} }

// inNoWord are the others.
func inNoWord() []rune {
	return []rune{0, '0' - 1, '9' + 1, 'A' - 1, 'Z' + 1, '_' - 1, '_' + 1, 'a' - 1, 'z' + 1, utf8.RuneSelf - 1, wideBase + utf8.RuneSelf, wideBase + 0xFF}
}

func class(of []rune) *syntax.Regexp { return &syntax.Regexp{Op: syntax.OpCharClass, Rune: of} }

// common is of two classes.
func common(a, b []rune) *syntax.Regexp {
	var both []rune
	for i := 0; i < len(a); i += 2 {
		for j := 0; j < len(b); j += 2 {
			if from, to := max(a[i], b[j]), min(a[i+1], b[j+1]); from <= to {
				both = append(both, from, to)
			}
		}
	}
	if both == nil {
		return nil
	}
	return class(both)
}

// side is the end of matches at which they are restricted.
type side bool

const (
	first side = false
	last  side = true
)

// pair is an expression at the side, and what is further within.
func (s side) pair(outer, inner *syntax.Regexp) *syntax.Regexp {
	if s == last {
		return then(inner, outer)
	}
	return then(outer, inner)
}

// edge is an expression of the matches of re that have a byte of a class at their side; nil: there are none.
func edge(re *syntax.Regexp, of []rune, at side) *syntax.Regexp {
	if re == nil {
		return nil
	}
	switch re.Op {
	case syntax.OpLiteral:
		r := re.Rune[0]
		if at == last {
			r = re.Rune[len(re.Rune)-1]
		}
		if common([]rune{r, r}, of) == nil {
			return nil
		}
		return re
	case syntax.OpCharClass:
		return common(re.Rune, of)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return class(of)
	case syntax.OpCapture, syntax.OpQuest:
		return edge(re.Sub[0], of, at)
	case syntax.OpStar, syntax.OpPlus:
		return at.pair(edge(re.Sub[0], of, at), repeated(syntax.OpStar, re.Sub[0]))
	case syntax.OpRepeat:
		return edgeOfRepeat(re, of, at)
	case syntax.OpAlternate:
		var all *syntax.Regexp
		for _, sub := range re.Sub {
			all = or(all, edge(sub, of, at))
		}
		return all
	case syntax.OpConcat:
		return edgeOfConcat(re.Sub, of, at)
	}
	return nil // of no bytes
}

func edgeOfRepeat(re *syntax.Regexp, of []rune, at side) *syntax.Regexp {
	if e := empty(re.Sub[0]); re.Min > 1 && e != nil && e.Op != syntax.OpEmptyMatch || re.Max == 0 {
		return edge(re.Simplify(), of, at)
	}
	more := *re
	more.Min = max(re.Min-1, 0)
	if re.Max > 0 {
		more.Max--
	}
	inner := &more
	if more.Max == 0 {
		inner = &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	return at.pair(edge(re.Sub[0], of, at), inner)
}

func edgeOfConcat(subs []*syntax.Regexp, of []rune, at side) *syntax.Regexp {
	if len(subs) == 0 {
		return nil
	}
	outer, inner := subs[0], subs[1:]
	if at == last {
		outer, inner = subs[len(subs)-1], subs[:len(subs)-1]
	}
	all := edge(outer, of, at)
	if len(inner) > 0 {
		all = at.pair(all, &syntax.Regexp{Op: syntax.OpConcat, Sub: inner})
	}
	if e := empty(outer); e != nil {
		all = or(all, at.pair(e, edgeOfConcat(inner, of, at)))
	}
	return all
}

// empty is an expression of the matches of re that have no bytes; nil: there are none.
func empty(re *syntax.Regexp) *syntax.Regexp {
	if re == nil {
		return nil
	}
	var all *syntax.Regexp
	switch re.Op {
	case syntax.OpNoMatch, syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return nil
	case syntax.OpStar, syntax.OpQuest:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	case syntax.OpRepeat:
		if re.Min == 0 {
			return &syntax.Regexp{Op: syntax.OpEmptyMatch}
		}
		return empty(re.Sub[0])
	case syntax.OpPlus, syntax.OpCapture:
		return empty(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			all = or(all, empty(sub))
		}
		return all
	case syntax.OpConcat:
		all = &syntax.Regexp{Op: syntax.OpEmptyMatch}
		for _, sub := range re.Sub {
			all = then(all, empty(sub))
		}
		return all
	}
	return re
}

// or is of two alternatives, of which nil is none.
func or(x, y *syntax.Regexp) *syntax.Regexp {
	switch {
	case x == nil:
		return y
	case y == nil || x.Op == syntax.OpEmptyMatch && y.Op == syntax.OpEmptyMatch:
		return x
	}
	return &syntax.Regexp{Op: syntax.OpAlternate, Sub: []*syntax.Regexp{x, y}}
}

// then is x followed by y; nil if one is.
func then(x, y *syntax.Regexp) *syntax.Regexp {
	switch {
	case x == nil || y == nil:
		return nil
	case x.Op == syntax.OpEmptyMatch:
		return y
	case y.Op == syntax.OpEmptyMatch:
		return x
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{x, y}}
}

// repeated is an OpStar, OpPlus or OpQuest. Without what can be repeated it is of no bytes.
func repeated(op syntax.Op, re *syntax.Regexp) *syntax.Regexp {
	if re == nil {
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	return &syntax.Regexp{Op: op, Sub: []*syntax.Regexp{re}}
}

// sizeUpTo is the number of nodes of an expression; above most it may be any larger one.
func sizeUpTo(re *syntax.Regexp, most int) int {
	if re == nil {
		return 0
	}
	n := 1
	for _, sub := range re.Sub {
		if n > most {
			break
		}
		n += sizeUpTo(sub, most-n)
	}
	return n
}
