package bench_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
	"github.com/nfsbox/nfsbox/vfs"
)

// round makes up a run of a comparison.
func round(side string, ops, p99 float64, threads int) *bench.Round {
	r := &bench.Round{Side: side, Result: &bench.Result{
		URL: "nfs://" + side + "/", OpsPerSecond: ops, Latency: bench.Latency{P99: p99}, Ops: 10, Errors: 1,
		Faults: []bench.Fault{{Kind: "NOSPC", Count: 1, Example: side}},
	}}
	if threads != 0 {
		r.ServerThreads = &threads
	}
	return r
}

// TestStatistics compares figures that were made up.
func TestStatistics(t *testing.T) {
	runs := []*bench.Round{
		round("a", 100, 10, 5), round("b", 200, 40, 5), // 2, 4
		round("b", 300, 10, 5), round("a", 100, 20, 5), // 3, 0.5
		round("a", 400, 30, 5), round("b", 100, 30, 0), // 0.25, 1; B's threads were not seen
		round("b", 150, 60, 5), round("a", 300, 10, 5), // 0.5, 6
		round("a", 1e9, 1, 1), // the other half is missing
	}
	c := bench.Compared(bench.CompareOptions{Rounds: 5, A: bench.Options{Verb: "null"}}, runs)
	want := []bench.Figure{
		{Name: "ops_per_second", Better: "more", A: 200, B: 175, Ratio: bench.Spread{Median: 1.25, Min: 0.25, Max: 3}},
		{Name: "p99_us", Better: "less", A: 15, B: 35, Ratio: bench.Spread{Median: 2.5, Min: 0.5, Max: 6}},
	}
	if !slices.Equal(c.Figures, want) || c.Rounds != 4 || c.Complete || c.Verb != "null" {
		t.Errorf("%+v", c)
	}
	if c.A.Ops != 40 || c.B.Errors != 4 || len(c.A.Faults) != 1 || c.A.Faults[0].Count != 4 || c.B.Faults[0].Example != "b" || c.A.URL != "nfs://a/" {
		t.Errorf("%+v, %+v", c.A, c.B)
	}
	if err := c.Failures(); err == nil || strings.Count(err.Error(), "4 times NOSPC") != 2 {
		t.Errorf("%v", err)
	}
	odd := bench.Compared(bench.CompareOptions{Rounds: 1}, []*bench.Round{round("a", 2, 0, 0), round("b", 1, math.NaN(), 0)})
	if !odd.Complete || len(odd.Figures) != 1 || odd.Figures[0].Ratio != (bench.Spread{Median: 0.5, Min: 0.5, Max: 0.5}) {
		t.Errorf("%+v", odd)
	}
	if c := bench.Compared(bench.CompareOptions{Rounds: 1}, runs[:1]); c != nil {
		t.Errorf("of half a round: %+v", c)
	}
}

// TestCompare takes turns, and leaves nothing behind, whatever the verb needs.
func TestCompare(t *testing.T) {
	s := serve(t, memfs.Options{})
	s.put("mine", 10)
	url, _ := s.api()
	for _, verb := range []string{"upload", "download", "exist", "delete", "echo"} {
		var order []string
		a, b := s.options(verb, ""), s.options(verb, "")
		b.URL = url + "?encoding=json"
		for _, o := range []*bench.Options{&a, &b} {
			o.Count, o.Concurrency = 20, 3
		}
		c, err := bench.Compare(t.Context(), bench.CompareOptions{A: a, B: b, Rounds: 3, Each: func(r *bench.Round) {
			order = append(order, r.Side)
			if r.Ops != 20 || r.Errors != 0 || r.Round != (len(order)+1)/2 {
				t.Errorf("%s: %+v", verb, r)
			}
		}})
		if err != nil || c.Failures() != nil {
			t.Fatal(verb, err, c.Failures())
		}
		if strings.Join(order, "") != "abbaab" || !c.Complete || c.Rounds != 3 || c.A.Ops != 60 || c.B.Ops != 60 {
			t.Errorf("%s: %q, %+v", verb, order, c)
		}
		i := slices.IndexFunc(c.Figures, func(f bench.Figure) bool { return f.Name == "ops_per_second" })
		if i < 0 || c.Figures[i].A <= 0 || c.Figures[i].Ratio.Min <= 0 || c.Figures[i].Ratio.Min > c.Figures[i].Ratio.Max {
			t.Errorf("%s: %+v", verb, c.Figures)
		}
		if got := s.names(); !slices.Equal(got, []string{"mine"}) {
			t.Errorf("%s: left behind: %q", verb, got)
		}
	}
}

// TestCompareCancelled has the rounds that are whole, and leaves nothing behind.
func TestCompareCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writes atomic.Uint64
	s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "write" && writes.Add(1) == 50 {
			cancel()
		}
		return nil
	}})
	o := s.options("upload", "")
	o.Count = 10
	c, err := bench.Compare(ctx, bench.CompareOptions{A: o, B: o})
	if !errors.Is(err, context.Canceled) || c == nil || c.Complete || c.Rounds != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	if got := s.names(); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

// TestCompareRefused says what makes no sense.
func TestCompareRefused(t *testing.T) {
	s := serve(t, memfs.Options{})
	for name, set := range map[string]func(o *bench.CompareOptions){
		"clean":     func(o *bench.CompareOptions) { o.A.Verb, o.B.Verb = "clean", "clean" },
		"two verbs": func(o *bench.CompareOptions) { o.B.Verb = "getattr" },
		"no verb":   func(o *bench.CompareOptions) { o.A.Verb, o.B.Verb = "x", "x" },
		"rounds":    func(o *bench.CompareOptions) { o.Rounds = -1 },
		"many":      func(o *bench.CompareOptions) { o.Rounds = bench.MaxRounds + 1 },
		"URL":       func(o *bench.CompareOptions) { o.B.URL = "x" },
		"tag":       func(o *bench.CompareOptions) { o.A.Verb, o.B.Verb, o.B.Tag = "upload", "upload", "a/b" },
	} {
		o := bench.CompareOptions{A: s.options("null", ""), B: s.options("null", "")}
		set(&o)
		if c, err := bench.Compare(t.Context(), o); c != nil || !errors.Is(err, bench.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCompareApart has files of its own, whatever there is: other datasets, also
// those of a comparison that was killed, and those of one that is under way.
func TestCompareApart(t *testing.T) {
	s := serve(t, memfs.Options{})
	for _, tag := range []string{"compare-a", "x-a"} {
		o := s.options("upload", "")
		o.Count, o.Tag, o.Seed = 10, tag, 7
		run(t, o)
	}
	before := s.tree()
	var all sync.WaitGroup
	for _, tag := range []string{"", "x", "x"} {
		for _, verb := range []string{"upload", "delete"} {
			all.Go(func() {
				o := s.options(verb, "")
				o.Count, o.Tag = 20, tag
				c, err := bench.Compare(t.Context(), bench.CompareOptions{A: o, B: o, Rounds: 2})
				if err != nil || c.Failures() != nil || c.A.Ops != 40 || c.B.Ops != 40 {
					t.Errorf("%s %q: %v, %+v", verb, tag, err, c)
				}
			})
		}
	}
	all.Wait()
	if after := s.tree(); !slices.Equal(after, before) {
		t.Errorf("left are %q of %q", after, before)
	}
}

// TestCompareSays what is not right with its rounds.
func TestCompareSays(t *testing.T) {
	yes, no := true, false
	well := func(side string, match *bool) *bench.Round {
		r := round(side, 1, 1, 0)
		r.Errors, r.Faults, r.CountsMatch = 0, nil, match
		return r
	}
	c := bench.Compared(bench.CompareOptions{Rounds: 2}, []*bench.Round{well("a", &yes), well("b", &yes), round("b", 1, 1, 0), well("a", &no)})
	if c.A.FailedRounds != 0 || c.B.FailedRounds != 1 || c.A.CountsMatch == nil || *c.A.CountsMatch || c.B.CountsMatch != nil {
		t.Errorf("%+v, %+v", c.A, c.B)
	}
	c = bench.Compared(bench.CompareOptions{Rounds: 1}, []*bench.Round{well("a", &yes), well("b", nil)})
	if c.A.CountsMatch == nil || !*c.A.CountsMatch || c.B.CountsMatch != nil {
		t.Errorf("%+v, %+v", c.A, c.B)
	}
	var page strings.Builder
	if err := bench.Compared(bench.CompareOptions{Rounds: 1}, []*bench.Round{well("a", &no), round("b", 1, 1, 0)}).WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A: the server has counted something else", "B: operations have failed in 1 of 1 rounds"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestMeaningless refuses options that the verb has no use for, instead of measuring
// something else than was asked for.
func TestMeaningless(t *testing.T) {
	s := serve(t, memfs.Options{})
	s.put("file", 100)
	for name, tc := range map[string]struct {
		set   func(o *bench.Options)
		verbs []string // that have it
	}{
		"random":    {func(o *bench.Options) { o.Random = true }, []string{"read"}},
		"stable":    {func(o *bench.Options) { o.Stable = true }, []string{"write"}},
		"no commit": {func(o *bench.Options) { o.NoCommit = true }, []string{"write"}},
		"names":     {func(o *bench.Options) { o.Names = true }, []string{"list"}},
		"through":   {func(o *bench.Options) { o.Through = true }, []string{"read", "write"}},
		"file size": {func(o *bench.Options) { o.FileSize = 1 << 20 }, []string{"read", "write"}},
		"size":      {func(o *bench.Options) { o.Size = 1000 }, []string{"read", "write", "list", "upload", "download", "exist", "delete"}},
	} {
		for _, verb := range bench.Verbs() {
			o := s.options(verb, "")
			tc.set(&o)
			if !slices.Contains(tc.verbs, verb) {
				if res, err := bench.Run(t.Context(), o); res != nil || !errors.Is(err, bench.ErrUsage) {
					t.Errorf("%s with %s: %v", verb, name, err)
				}
				continue
			}
			o.URL += "nowhere"
			if _, err := bench.Run(t.Context(), o); errors.Is(err, bench.ErrUsage) {
				t.Errorf("%s with %s: %v", verb, name, err)
			}
		}
	}
}
