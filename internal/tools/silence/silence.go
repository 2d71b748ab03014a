// Package silence reports servers, and stores of buckets, that do not answer, to people and in JSON.
//
// The client tells of each connection, and again and again; a bucket tells of each try. A reader is told once that a server is silent,
// when the first call gives up, and that it answers again. A command may have others by then, so that is not the end of its wait.
package silence

import (
	"fmt"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// Event says that a server does not answer, or answers again.
type Event struct {
	Type    string     `json:"-"` // "silent", "answers"
	Server  string     `json:"server"`
	Since   time.Time  `json:"since"`           // it has sent nothing since
	Until   *time.Time `json:"until,omitempty"` // when the first call gives up; nil: the calls wait for an answer
	Message string     `json:"message"`
}

// worthTelling is the shortest wait for a silent server that is reported.
const worthTelling = time.Second

// outages reports servers that do not answer: once for each outage, however many connections lead
// to the server, and once more if calls still wait after the time that was given.
type outages struct {
	show func(*Event) // called by one goroutine at a time

	mu     sync.Mutex
	silent map[string]time.Time // by server: until when, as it was reported
}

// Watch is what servers and buckets are given to tell of.
type Watch struct {
	Dial   nfsbox.Option
	Bucket func(bucket.Silence)
}

// Tell has show called with each event, by one goroutine at a time.
func Tell(show func(*Event)) Watch {
	o := &outages{show: show}
	return Watch{
		Dial: nfsbox.WithSilence(func(s nfsbox.Silence) {
			o.tell(bucket.Silence{Server: s.Server, Since: s.Since, Until: s.Until, Over: s.Over})
		}),
		Bucket: o.tell,
	}
}

func (o *outages) tell(s bucket.Silence) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	ends := !s.Until.IsZero() && s.Until.Sub(now) < worthTelling
	until, told := o.silent[s.Server]
	holds := told && (until.IsZero() || now.Before(until))
	switch {
	case ends, s.Over && !told, !s.Over && holds:
		return // another connection has reported it, or the error will
	case s.Over:
		delete(o.silent, s.Server)
	case o.silent == nil:
		o.silent = map[string]time.Time{s.Server: s.Until}
	default:
		o.silent[s.Server] = s.Until
	}
	o.show(newEvent(s, now))
}

func newEvent(s bucket.Silence, now time.Time) *Event {
	e := &Event{Type: "silent", Server: s.Server, Since: s.Since.UTC()}
	silent := fmt.Sprintf("%s has not answered since %s", s.Server, clock(s.Since, now))
	if s.Why != "" {
		silent = fmt.Sprintf("%s has served no request since %s (%s)", s.Server, clock(s.Since, now), s.Why)
	}
	switch {
	case s.Over:
		e.Type = "answers"
		e.Message = fmt.Sprintf("%s answers again, after %v", s.Server, now.Sub(s.Since).Round(time.Second))
	case s.Until.IsZero():
		e.Message = silent + "; waiting until it does"
	default:
		until := s.Until.UTC()
		e.Until = &until
		e.Message = silent + "; the first call gives up at " + clock(s.Until, now)
	}
	return e
}

// clock is a time of day, with its date if that is far from now.
func clock(t, now time.Time) string {
	if t.Sub(now).Abs() > 12*time.Hour {
		return t.Local().Format(time.DateTime)
	}
	return t.Local().Format(time.TimeOnly)
}

// Line is the event for people, cleaned for a terminal.
func (e *Event) Line() string { return "nfsbox: " + progress.Clean(e.Message) + "\n" }

// Track has a task report silent servers.
func Track(t *progress.Tracker) Watch {
	return Tell(func(e *Event) {
		x := progress.Event{Type: e.Type, Server: e.Server, Since: e.Since, Message: e.Message}
		if e.Until != nil {
			x.Until = *e.Until
		}
		t.Report(x)
	})
}
