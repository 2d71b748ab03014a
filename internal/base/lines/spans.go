package lines

import (
	"bytes"
	"fmt"
	"regexp"
)

// compileSpans compiles what Each needs.
func (p *Pattern) compileSpans(text string) (err error) {
	first, further := text, text
	if p.o.Word {
		end := "(" + text + ")(?:" + noWord + "|$)"
		first, further = "^"+end, noWord+end
	}
	if p.first, err = regexp.Compile(first); err == nil {
		p.further, err = regexp.Compile(further)
	}
	if err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	p.first.Longest()
	p.further.Longest()
	return nil
}

// Each calls do with where in a line the matches are, from left to right, each the longest that
// begins there; those of no bytes are left out. line is one that matches. Memory is a few times that of the line; of a
// pattern with ^, $ or \b it is 40 bytes a match more.
func (p *Pattern) Each(line []byte, do func(start, end int) error) error {
	if p.o.Whole {
		if len(line) == 0 {
			return nil
		}
		return do(0, len(line))
	}
	if isASCII(line) {
		return p.each(line, do)
	}
	wide := appendWide(make([]byte, 0, len(line)+len(line)/4), line)
	seen, less := 0, 0 // bytes of wide that were looked at, and how many more those are than in line
	at := func(i int) int {
		less += 2 * bytes.Count(wide[seen:i], []byte{wideLead})
		seen = i
		return i - less
	}
	return p.each(wide, func(start, end int) error {
		from := at(start)
		return do(from, at(end))
	})
}

func (p *Pattern) each(line []byte, do func(start, end int) error) error {
	switch {
	case p.o.Word:
		return p.eachWord(line, do)
	case p.asserts:
		for _, at := range p.first.FindAllIndex(line, -1) {
			if at[0] < at[1] {
				if err := do(at[0], at[1]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for from := 0; from < len(line); {
		at := p.first.FindIndex(line[from:])
		if at == nil {
			return nil
		}
		if at[0] < at[1] {
			if err := do(from+at[0], from+at[1]); err != nil {
				return err
			}
		}
		if from += at[1]; at[0] == at[1] {
			from += widthAt(line, from)
		}
	}
	return nil
}

// eachWord finds matches that are words: one at the beginning of the line, and those behind a byte of no word, which
// may be the last of the match before.
func (p *Pattern) eachWord(line []byte, do func(start, end int) error) error {
	for from := 0; from <= len(line); {
		before := max(from-1, 0)
		var at []int
		if from == 0 {
			at = p.first.FindSubmatchIndex(line)
		}
		if at == nil {
			at = p.further.FindSubmatchIndex(line[before:])
		}
		if at == nil {
			return nil
		}
		start, end := before+at[2], before+at[3]
		if start < end {
			if err := do(start, end); err != nil {
				return err
			}
		}
		from = max(end, start+1)
	}
	return nil
}

// widthAt is how many bytes the character at i has, of a widened line.
func widthAt(line []byte, i int) int {
	if i < len(line) && line[i] == wideLead {
		return 3
	}
	return 1
}
