package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

const (
	// DefaultRounds is how often each target is measured.
	DefaultRounds = 7

	// MaxRounds bounds that.
	MaxRounds = 1000

	// compareTag begins the tags of a comparison's own datasets.
	compareTag = "compare"

	// compareBytes is how much of such a tag is random, in bytes: no comparison
	// finds, or removes, the files of another run.
	compareBytes = 4
)

// CompareOptions say what to compare. A and B have the same verb.
type CompareOptions struct {
	A, B   Options
	Rounds int // 0: DefaultRounds
	// Each, if set, is called behind each run, by the goroutine of Compare.
	Each func(*Round)
}

// Round is one run of a comparison.
type Round struct {
	Round int    `json:"round"` // from 1
	Side  string `json:"side"`  // "a" or "b"
	*Result
}

// Comparison is what came of all rounds.
type Comparison struct {
	Verb        string   `json:"verb"`
	Concurrency int      `json:"concurrency"`
	Size        int      `json:"size"`
	Rounds      int      `json:"rounds"`   // of both targets
	Complete    bool     `json:"complete"` // as many as were asked for
	A           Side     `json:"a"`
	B           Side     `json:"b"`
	Figures     []Figure `json:"figures"`
	// Runs are all that were made, in their order.
	Runs []*Round `json:"-"`
}

// Side is one target of a comparison: the sums of its rounds.
type Side struct {
	URL    string  `json:"url"`
	Ops    uint64  `json:"ops"`
	Errors uint64  `json:"errors"`
	Faults []Fault `json:"faults"`
	// FailedRounds are those in which operations have failed. They are among the
	// figures: what is quick to fail, or slow, is in them.
	FailedRounds int `json:"failed_rounds"`
	// CountsMatch is Result.CountsMatch of all rounds; nil if that is not known of
	// all, and of none that it is false.
	CountsMatch *bool `json:"counts_match,omitempty"`
}

// Failures says what has failed; nil if nothing has.
func (c *Comparison) Failures() error {
	return errors.Join(asError(c.A.Faults), asError(c.B.Faults))
}

// Compare measures two targets in turns, A B B A A B and so on, so that what
// changes with time changes both alike. It leaves nothing behind, as the files of
// verbs that work on a dataset are its own: those that they need are made before,
// and uploads find an empty directory each time.
//
// If a run fails as such, or the context ends, the Comparison has the rounds that
// are whole; it is nil if there is none.
func Compare(ctx context.Context, o CompareOptions) (*Comparison, error) {
	o.Rounds = cmp.Or(o.Rounds, DefaultRounds)
	switch {
	case o.Rounds < 1 || o.Rounds > MaxRounds:
		return nil, usage("%d rounds; 1 to %d are possible", o.Rounds, MaxRounds)
	case o.A.Verb != o.B.Verb:
		return nil, usage("%s and %s are two verbs", o.A.Verb, o.B.Verb)
	case o.A.Verb == cleanVerb.name:
		return nil, usage("clean cannot be repeated")
	}
	var sides [2]contender
	for i, side := range [...]*Options{&o.A, &o.B} {
		x, err := newContender(side, [...]string{"a", "b"}[i])
		if err != nil {
			return nil, err
		}
		sides[i] = *x
	}
	runs, err := rounds(ctx, &o, &sides)
	for i := range sides {
		err = errors.Join(err, sides[i].end(ctx))
	}
	return compared(&o, runs), err
}

// rounds makes all runs, or as many as can be made.
func rounds(ctx context.Context, o *CompareOptions, sides *[2]contender) (runs []*Round, err error) {
	for n := range 2 * o.Rounds {
		round, x := n/2+1, &sides[(n+n/2)%2]
		res, err := x.run(ctx)
		if err != nil {
			return runs, fmt.Errorf("round %d of %s: %w", round, redacted(x.o.URL), err)
		}
		r := &Round{Round: round, Side: x.side, Result: res}
		runs = append(runs, r)
		if o.Each != nil {
			o.Each(r)
		}
	}
	return runs, nil
}

// contender is one side of a comparison.
type contender struct {
	o    Options
	v    *verb
	side string
	made bool // there may be files of its dataset
}

func newContender(o *Options, side string) (*contender, error) {
	v, err := verbOf(o.Verb)
	if err != nil {
		return nil, err
	}
	x := &contender{o: *o, v: v, side: side}
	if v.files {
		x.o.Tag = cmp.Or(o.Tag, compareTag) + "-" + side + "-" + o.random(compareBytes)
	}
	check := x.o
	return x, check.complete(v)
}

func (x *contender) run(ctx context.Context) (*Result, error) {
	switch {
	case x.v == &uploadVerb:
		if err := x.clean(ctx); err != nil {
			return nil, err
		}
	case x.v.files && (x.v.once || !x.made):
		if err := x.upload(ctx); err != nil {
			return nil, err
		}
	}
	x.made = x.v.files
	return Run(ctx, x.o)
}

// plain is what a run that is not measured takes over.
func (x *contender) plain(v *verb) Options {
	return Options{
		Verb: v.name, URL: x.o.URL, Dial: x.o.Dial, API: x.o.API, LocalIO: x.o.LocalIO, Concurrency: x.o.Concurrency,
		Tag: x.o.Tag, Rand: x.o.Rand, WarmUp: -1,
	}
}

// upload makes the files that the verb works on.
func (x *contender) upload(ctx context.Context) error {
	o := x.plain(&uploadVerb)
	x.o.count(x.v)
	o.Count, o.Size, o.Seed = x.o.Files, cmp.Or(x.o.Size, DefaultFileSize), x.o.Seed
	x.made = true
	res, err := Run(ctx, o)
	if err != nil {
		return err
	}
	return res.Failures()
}

func (x *contender) clean(ctx context.Context) error {
	if !x.made {
		return nil
	}
	res, err := Run(ctx, x.plain(&cleanVerb))
	if err != nil {
		return err
	}
	return res.Failures()
}

// end leaves nothing behind, also if ctx has ended, but then its time is bounded.
func (x *contender) end(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
	}
	return x.clean(ctx)
}

// compared is what the runs say, as far as rounds are whole; nil if none is.
func compared(o *CompareOptions, runs []*Round) *Comparison {
	a, b := sorted(runs)
	whole := min(len(a), len(b))
	if whole == 0 {
		return nil
	}
	c := &Comparison{
		Verb: o.A.Verb, Concurrency: a[0].Concurrency, Size: a[0].Size, Rounds: whole, Complete: whole == o.Rounds,
		A: side(a[:whole]), B: side(b[:whole]), Runs: runs,
	}
	for _, f := range figures {
		if x, ok := f.compare(a[:whole], b[:whole]); ok {
			c.Figures = append(c.Figures, x)
		}
	}
	return c
}

func sorted(runs []*Round) (a, b []*Result) {
	for _, r := range runs {
		if r.Side == "a" {
			a = append(a, r.Result)
		} else {
			b = append(b, r.Result)
		}
	}
	return a, b
}

// side adds up the runs of one.
func side(runs []*Result) Side {
	s := Side{URL: redacted(runs[0].URL), Faults: []Fault{}, CountsMatch: allMatch(runs)}
	for _, r := range runs {
		s.Ops += r.Ops
		s.Errors += r.Errors
		if r.Errors != 0 {
			s.FailedRounds++
		}
		for _, f := range r.Faults {
			i := slices.IndexFunc(s.Faults, func(x Fault) bool { return x.Kind == f.Kind })
			if i < 0 {
				s.Faults = append(s.Faults, f)
			} else {
				s.Faults[i].Count += f.Count
			}
		}
	}
	return s
}

// allMatch reports whether the server has counted all runs as they were; nil if that
// is not known.
func allMatch(runs []*Result) *bool {
	known, match := true, true
	for _, r := range runs {
		known = known && r.CountsMatch != nil
		match = match && (r.CountsMatch == nil || *r.CountsMatch)
	}
	if known || !match {
		return &match
	}
	return nil
}

// Warnings say what is not right with n rounds of the side that is called name.
func (s *Side) Warnings(name string, n int) (lines []string) {
	if s.CountsMatch != nil && !*s.CountsMatch {
		lines = append(lines, name+": the server has counted something else: others use it, or these figures are wrong.")
	}
	if s.FailedRounds != 0 {
		lines = append(lines, fmt.Sprintf("%s: operations have failed in %d of %d rounds, which are among these figures.", name, s.FailedRounds, n))
	}
	return lines
}
