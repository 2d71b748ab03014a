package progress

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/fault"
)

const (
	// shownAlike is how many failures with one cause are shown; more are counted.
	shownAlike = 3
	// maxCauses bounds the causes that are told apart. Failures with further ones are
	// counted as one cause.
	maxCauses = 64
)

// grouped shows the first failures of each cause.
type grouped struct {
	Renderer
	all    string
	causes map[string]*cause
}

// cause is what failures have in common.
type cause struct {
	why   string
	count int
}

// Grouped returns a Renderer for people: of failures that have one cause it has r show three,
// and in the end how many more there were, and that all says where all are. r shows all other events, but
// for an error of the whole.
func Grouped(r Renderer, all string) Renderer { return &grouped{r, all, make(map[string]*cause)} }

func (g *grouped) names() bool { return showsNames(g.Renderer) }

func (g *grouped) loads() bool { return showsLoads(g.Renderer) }

// Event passes e on, unless enough has been said of its cause.
func (g *grouped) Event(now time.Time, e *Event) error {
	if e.Type == "error" {
		if e.Whole {
			return nil
		}
		c := g.causeOf(e)
		if c.count++; c.count > shownAlike {
			return nil
		}
	}
	return g.Renderer.Event(now, e)
}

func (g *grouped) causeOf(e *Event) *cause {
	key, why := fault.Code(e.Err), e.Message
	if i := strings.LastIndex(why, ": "); i >= 0 {
		why = why[i+len(": "):]
	}
	if key == "" || key == fault.CodeOther {
		key = why
	}
	if g.causes[key] == nil && len(g.causes) >= maxCauses {
		key, why = "", "other causes"
	}
	c := g.causes[key]
	if c == nil {
		c = &cause{why: why}
		g.causes[key] = c
	}
	return c
}

// Summary says how many failures have not been shown, and then what r has to say.
func (g *grouped) Summary(s *Snapshot, v any) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(g.causes)) {
		c := g.causes[key]
		if more := c.count - shownAlike; more > 0 {
			e := &Event{Type: "error", Message: fmt.Sprintf("%s more like these: %s (%s)", Count(uint64(more)), c.why, g.all)}
			errs = append(errs, g.Renderer.Event(s.Time, e))
		}
	}
	return errors.Join(append(errs, g.Renderer.Summary(s, v))...)
}

// both shows everything in r, and the failures, all of them, in all.
type both struct {
	Renderer
	all Renderer
}

// Both returns a Renderer that is r, and has failures and differences, and the summary, written
// by all as well.
func Both(r, all Renderer) Renderer { return both{r, all} }

func (b both) names() bool { return showsNames(b.Renderer) }

func (b both) loads() bool { return showsLoads(b.Renderer) }

// Event passes e to both.
func (b both) Event(now time.Time, e *Event) error {
	err := b.Renderer.Event(now, e)
	if e.Type == "error" || e.Type == "difference" {
		err = errors.Join(err, b.all.Event(now, e))
	}
	return err
}

// Summary passes the end to both.
func (b both) Summary(s *Snapshot, v any) error {
	return errors.Join(b.Renderer.Summary(s, v), b.all.Summary(s, v))
}
