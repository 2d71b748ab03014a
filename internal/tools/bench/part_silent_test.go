package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// scripted is a caller each of whose operations takes a time, and may fail.
type scripted struct {
	plain
	op1 func(n int) (time.Duration, error)
	n   int
}

func (c *scripted) op(ctx context.Context) (moved, error) {
	c.n++
	took, err := c.op1(c.n)
	if took == 0 {
		return moved{}, err
	}
	select {
	case <-ctx.Done():
		return moved{}, ctx.Err()
	case <-time.After(took):
		return moved{}, err
	}
}

var errSilent = errors.New("no reply in time")

// diesAfter is a server that is gone from the n-th operation on, and a client that
// waits for it for so long.
func diesAfter(n int, patience time.Duration) func(int) (time.Duration, error) {
	return func(i int) (time.Duration, error) {
		if i < n {
			return time.Millisecond, nil
		}
		return patience, errSilent
	}
}

// TestSilence ends a run whose server has died, when each caller's patience has ended
// once; but not for one operation among others that succeed.
func TestSilence(t *testing.T) {
	healthy := func(int) (time.Duration, error) { return time.Second, nil }
	for name, tc := range map[string]struct {
		callers []func(int) (time.Duration, error)
		least   time.Duration // that the part takes
		most    time.Duration
		faults  uint64
		say     string
	}{
		"alone":   {[]func(int) (time.Duration, error){diesAfter(5, 3*time.Minute)}, 3 * time.Minute, 181 * time.Second, 1, "no operation has succeeded for 3m0s"},
		"many":    {[]func(int) (time.Duration, error){diesAfter(5, 3*time.Minute), diesAfter(1, 3*time.Minute), diesAfter(9, 182*time.Second)}, 182 * time.Second, 183 * time.Second, 3, "no operation has succeeded for 3m2s"},
		"one":     {[]func(int) (time.Duration, error){diesAfter(5, 3*time.Minute), healthy, healthy}, time.Hour, time.Hour + 3*time.Minute, 20, ""},
		"hasty":   {[]func(int) (time.Duration, error){diesAfter(5, 5*time.Second)}, 80 * time.Second, 81 * time.Second, 16, "16 failures in a row"},
		"at once": {[]func(int) (time.Duration, error){diesAfter(5, 0)}, 0, time.Second, 16, "16 failures in a row"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var callers []caller
				for _, op := range tc.callers {
					callers = append(callers, &scripted{op1: op})
				}
				p := newPart(&Options{Clock: func() time.Duration { return time.Since(start) }}, callers)
				p.until = time.Hour
				p.run(t.Context(), nil)
				if p.took < tc.least || p.took > tc.most {
					t.Errorf("took %v, want %v", p.took, tc.least)
				}
				err := p.ended(t.Context())
				if (err != nil) != (tc.say != "") || err != nil && !strings.Contains(err.Error(), tc.say) {
					t.Errorf("%v, want %q", err, tc.say)
				}
				if n := p.faults.total(); n != tc.faults {
					t.Errorf("%d failures, want %d", n, tc.faults)
				}
			})
		})
	}
}
