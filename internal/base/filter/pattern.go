package filter

import (
	"errors"
	"fmt"
	"strings"
)

// pattern is a pattern as an automaton. Its states are the bits of a []uint64: bit i is set if what stands
// before character i of the pattern has matched. A star is no character: in the state before it, bytes are passed over.
type pattern struct {
	words int      // of a set of states
	takes []uint64 // for each byte, the states whose character it is: words of them
	any   []uint64 // states that pass over any byte: **
	name  []uint64 // states that pass over any byte but a slash: *
	end   int      // the state in which all has matched

	dirs  bool // it matches directories alone
	path  bool // it matches paths, and not only their last parts
	again bool // of a path: it may begin at each part
	open  bool // it begins with **: a slash is put before the path
	below bool // it ends in ***: a slash is put behind a directory
	never bool // it cannot match
}

// element is a character of a pattern, or a star.
type element struct {
	star int // 1: *; 2 or more: **
	set  [4]uint64
}

func (e *element) add(c byte)      { e.set[c>>6] |= 1 << (c & 63) }
func (e *element) has(c byte) bool { return e.set[c>>6]&(1<<(c&63)) != 0 }

// parsePattern parses a pattern of rsync.
func parsePattern(text string) (*pattern, error) {
	switch {
	case text == "":
		return nil, errors.New("a pattern is missing")
	case len(text) > maxPattern:
		return nil, fmt.Errorf("the pattern has %d bytes, and may have %d", len(text), maxPattern)
	case strings.IndexByte(text, 0) >= 0:
		return nil, errors.New("the pattern has a NUL byte")
	}
	p := new(pattern)
	if len(text) > 1 && strings.HasSuffix(text, "/") {
		p.dirs, text = true, text[:len(text)-1]
	}
	slashes := strings.Count(text, "/")
	deep := strings.Contains(text, "**")
	wild := strings.ContainsAny(text, "*[?")
	p.path = slashes > 0 || deep
	p.open = strings.HasPrefix(text, "**")
	p.below = deep && strings.HasSuffix(text, "***")
	text, anchored := strings.CutPrefix(text, "/")
	p.again = p.path && !anchored && !p.open
	if !wild {
		return p.build(literal(text))
	}
	all, inSets, err := elements(text)
	if err != nil {
		return nil, err
	}
	p.never = p.again && !deep && inSets > 0 // rsync compares as many parts as there are slashes, and a set has none
	return p.build(all)
}

// literal are the characters of a pattern without wildcards, where a backslash is one as any other.
func literal(text string) (all []element) {
	for i := range len(text) {
		var e element
		e.add(text[i])
		all = append(all, e)
	}
	return all
}

// elements parses a pattern with wildcards. inSets is how many slashes stand in sets.
func elements(text string) (all []element, inSets int, err error) {
	for i := 0; i < len(text); {
		var e element
		switch c := text[i]; c {
		case '*':
			for ; i < len(text) && text[i] == '*'; i++ {
				e.star++
			}
			all = append(all, e)
			continue
		case '?':
			e.set = notSlash
		case '[':
			n, err := e.parseSet(text[i:])
			if err != nil {
				return nil, 0, err
			}
			inSets += strings.Count(text[i:i+n], "/")
			i += n - 1
		case '\\':
			if i++; i == len(text) {
				return nil, 0, errors.New("the pattern ends in a backslash")
			}
			e.add(text[i])
		default:
			e.add(c)
		}
		i++
		all = append(all, e)
	}
	return all, inSets, nil
}

// notSlash are all bytes but the slash.
var notSlash = [4]uint64{^uint64(1 << '/'), ^uint64(0), ^uint64(0), ^uint64(0)}

// build makes the automaton.
func (p *pattern) build(all []element) (*pattern, error) {
	for i := range all {
		if all[i].star == 0 {
			p.end++
		}
	}
	p.words = p.end/64 + 1
	p.takes, p.any, p.name = make([]uint64, 256*p.words), make([]uint64, p.words), make([]uint64, p.words)
	at := 0
	for i := range all {
		e, word, bit := &all[i], at/64, uint64(1)<<(at%64)
		switch {
		case e.star >= 2:
			p.any[word] |= bit
		case e.star == 1:
			p.name[word] |= bit
		default:
			for c := range 256 {
				if e.has(byte(c)) {
					p.takes[c*p.words+word] |= bit
				}
			}
			at++
		}
	}
	return p, nil
}

// begin puts the states before a path, or the name, into s.
func (p *pattern) begin(s []uint64) {
	clear(s)
	s[0] = 1
	if p.open {
		p.step(s, '/')
	}
}

// step goes on by a byte. It reports whether the pattern can still match.
func (p *pattern) step(s []uint64, c byte) bool {
	takes := p.takes[int(c)*p.words:][:p.words]
	carry, alive := uint64(0), uint64(0)
	for i, now := range s {
		next := now & takes[i]
		stay := now & p.any[i]
		if c != '/' {
			stay |= now & p.name[i]
		}
		s[i] = next<<1 | carry | stay
		carry = next >> 63
		alive |= s[i]
	}
	return alive != 0
}

// matches goes on from s by a name, which it uses up, and reports whether the pattern matches then.
func (p *pattern) matches(s []uint64, name []byte, dir bool) bool {
	if p.never || p.dirs && !dir {
		return false
	}
	for _, c := range name {
		if !p.step(s, c) {
			return false
		}
	}
	if p.below && dir && !p.step(s, '/') {
		return false
	}
	return s[p.end/64]&(1<<(p.end%64)) != 0
}

// descend goes on from s by the name of a directory that a path goes through.
func (p *pattern) descend(s []uint64, name string) {
	for i := 0; i < len(name) && p.step(s, name[i]); i++ {
	}
	p.step(s, '/')
	if p.again {
		s[0] |= 1
	}
}
