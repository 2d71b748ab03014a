package lines

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// MaxSize bounds a compiled pattern if Options does not, in instructions, of about 50 bytes each. A larger one
// is [ErrTooLarge]. Go's own limit is 3.3 million.
const MaxSize = 100_000

// ErrTooLarge says that a pattern would be too large when compiled.
var ErrTooLarge = errors.New("the pattern is too large when its repetitions are written out")

// Options say what patterns mean.
type Options struct {
	Fixed   bool // they are texts, not expressions
	Fold    bool // ASCII letters match in either case
	Word    bool // a match has no letter, digit or underscore beside it
	Whole   bool // a match is a whole line
	MaxSize int  // most instructions; 0: MaxSize
}

// Pattern is a compiled pattern. It is for any number of goroutines.
type Pattern struct {
	o     Options
	tree  *syntax.Regexp // what selects a line, with what Word and Whole ask for
	lines *regexp.Regexp // the same, compiled
	size  int            // of lines, in instructions
	must  literal        // what each selected line contains
	sole  bool           // a line that contains it is selected

	first, further *regexp.Regexp // for Each
	asserts        bool           // it looks beside a match: ^, \b
}

// flags are those of Go's own regexp. \Q...\E and classes such as \d and [[:alpha:]] are among them.
const flags = syntax.Perl

// Compile compiles patterns, one of which has to match. A newline within one divides it in two. If there are none,
// no line matches.
func Compile(patterns []string, o Options) (*Pattern, error) {
	if o.MaxSize == 0 {
		o.MaxSize = MaxSize
	}
	tree, err := parse(patterns, &o)
	if err != nil {
		return nil, err
	}
	tree, span, err := bounds(tree, o.MaxSize)
	if err != nil {
		return nil, err
	}
	if o.Whole || o.Word {
		tree = span // where a match of no bytes is one of a word that begins or ends is none of these
	}
	p := &Pattern{o: o, asserts: asserts(tree)}
	text := tree.String()
	selects := text
	switch {
	case o.Whole:
		selects = "^(?:" + text + ")$"
	case o.Word:
		selects = "(?:^|" + noWord + ")(?:" + text + ")(?:" + noWord + "|$)"
	}
	if p.tree, err = syntax.Parse(selects, flags); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	if p.lines, err = regexp.Compile(selects); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	prog, err := syntax.Compile(p.tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	p.size = len(prog.Inst)
	p.must, p.sole = required(tree)
	p.sole = p.sole && !o.Whole && !o.Word
	return p, p.compileSpans(span.String())
}

// Size is what the expression that selects lines is compiled to, in instructions. To match a line takes at most about
// as much time as it has bytes, times 10 ns for each of them.
func (p *Pattern) Size() int { return p.size }

// noWord is a byte that belongs to no word.
const noWord = `[^0-9A-Za-z_]`

// parse reads the patterns. Their syntax tree is that of widened text.
func parse(patterns []string, o *Options) (*syntax.Regexp, error) {
	f := flags
	if o.Fixed {
		f = syntax.Literal
	}
	if o.Fold {
		f |= syntax.FoldCase
	}
	all := &syntax.Regexp{Op: syntax.OpAlternate, Flags: f}
	left := o.MaxSize
	for _, pattern := range patterns {
		for _, one := range strings.Split(pattern, "\n") {
			if len(one) > left {
				return nil, ErrTooLarge
			}
			wide := widenText(one)
			if !o.Fixed {
				wide = widenPattern(one)
			}
			tree, err := syntax.Parse(wide, f)
			if err != nil {
				return nil, patternError(err)
			}
			if left -= size(tree); left < 0 {
				return nil, ErrTooLarge
			}
			all.Sub = append(all.Sub, tree)
		}
	}
	switch len(all.Sub) {
	case 0:
		return &syntax.Regexp{Op: syntax.OpNoMatch}, nil
	case 1:
		return all.Sub[0], nil
	}
	return all, nil
}

// patternError says what is wrong with a pattern, as it was written.
func patternError(err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		var low, high int
		n, _ := fmt.Sscanf(e.Expr, "{%d,%d}", &low, &high) // what is none is not the wrong way round
		if e.Code == syntax.ErrLarge || e.Code == syntax.ErrInvalidRepeatSize && (n < 2 || low <= high) {
			return fmt.Errorf("%w: %s", ErrTooLarge, narrow(e.Expr))
		}
		return fmt.Errorf("pattern: %s: %s", e.Code, narrow(e.Expr))
	}
	return err
}

// size is about how many instructions an expression makes, before it is compiled: at most 2^40.
func size(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n += size(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n = 1 + len(re.Rune)/8
	case syntax.OpRepeat:
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<40)
}

// asserts reports whether an expression looks at what is beside a match.
func asserts(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, sub := range re.Sub {
		if asserts(sub) {
			return true
		}
	}
	return false
}
