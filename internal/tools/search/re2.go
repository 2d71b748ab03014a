package search

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasilibs/go-re2/experimental"

	"github.com/nfsbox/nfsbox/internal/base/lines"
)

const (
	// DefaultMaxMem is RE2's own budget of memory, in bytes.
	DefaultMaxMem = 8 << 20
	// MinMaxMem is the least budget that may be asked for, in bytes.
	MinMaxMem = 64 << 10
	// MostMaxMem is the largest, in bytes.
	MostMaxMem = 1 << 30

	// sampleEach is of how many lines one is matched by Go's expressions as well, and both are timed.
	sampleEach = 64
	// samples is how many of them are a window, at whose end a worker judges. RE2 is given up if it has taken more than half as much
	// again as Go's expressions for three of four.
	samples = 64
	// warmUp is how many windows a worker judges nothing: RE2 makes the states then that it keeps.
	warmUp = 1
)

// RE2 tells whether lines match by RE2, one compiled expression for all workers. It does so as long as RE2
// can, and gains something. RE2 keeps the states that it has met, within a budget of memory. When that is full it throws
// all of them away, and does not say so. Its time shows it. From then on Go's expressions are used, which
// have no such states.
type RE2 struct {
	set *experimental.Set // nil: it could not be compiled
	p   *lines.Pattern
	now func() time.Time

	over  atomic.Bool
	mu    sync.Mutex
	why   string
	byRE2 atomic.Uint64 // lines
	byGo  atomic.Uint64
}

// NewRE2 compiles p for RE2, with a budget of memory in bytes. A pattern that RE2 cannot take within it is left to Go's
// expressions.
func NewRE2(p *lines.Pattern, maxMem int) *RE2 {
	r := &RE2{p: p, now: time.Now}
	text, err := p.Latin1()
	if err == nil {
		r.set, err = experimental.CompileSetWithOptions([]string{text}, experimental.CompileOptions{Latin1: true, MaxMem: maxMem})
	}
	if err != nil {
		r.giveUp(err.Error())
	}
	return r
}

// Used is how many lines RE2 has told of, and how many Go's expressions since it was given up; why is empty if it was not.
func (r *RE2) Used() (byRE2, byGo uint64, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byRE2.Load(), r.byGo.Load(), r.why
}

// giveUp leaves the rest to Go's expressions. The first reason stays.
func (r *RE2) giveUp(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == "" {
		r.why = why
	}
	r.over.Store(true)
}

// Match returns what tells a worker whether a line matches.
func (r *RE2) Match() func(line []byte) bool {
	w := &re2Worker{r: r, byGo: r.p.Matcher()}
	return w.match
}

// re2Worker is one worker's.
type re2Worker struct {
	r             *RE2
	byGo          func(line []byte) bool
	lines         uint64
	sampled, slow int
	windows       int // that are over, of warmUp
}

func (w *re2Worker) match(line []byte) bool {
	if w.r.over.Load() {
		w.r.byGo.Add(1)
		return w.byGo(line)
	}
	w.r.byRE2.Add(1)
	w.lines++
	if w.lines%sampleEach == 0 {
		return w.sample(line)
	}
	matched, err := w.byRE2(line)
	if err != nil {
		w.r.giveUp(err.Error())
		return w.byGo(line)
	}
	return matched
}

func (w *re2Worker) byRE2(line []byte) (bool, error) {
	found, err := w.r.set.FindAllWithError(line, 1)
	return len(found) > 0, err
}

// errDiffers says that the engines do not agree, which would be a fault of ours.
var errDiffers = errors.New("RE2 and Go's expressions do not agree")

// sample matches a line in both ways, and judges.
func (w *re2Worker) sample(line []byte) bool {
	began := w.r.now()
	fast, err := w.byRE2(line)
	then := w.r.now()
	matched := w.byGo(line)
	took, byGo := then.Sub(began), w.r.now().Sub(then)
	if err == nil && fast != matched {
		err = errDiffers
	}
	if err != nil {
		w.r.giveUp(err.Error())
		return matched
	}
	w.sampled++
	if took > byGo+byGo/2 {
		w.slow++
	}
	if w.sampled == samples {
		if w.windows < warmUp {
			w.windows++
		} else if w.slow > samples*3/4 {
			w.r.giveUp(fmt.Sprintf("for %d of %d lines it took more than half as much again", w.slow, samples))
		}
		w.sampled, w.slow = 0, 0
	}
	return matched
}
