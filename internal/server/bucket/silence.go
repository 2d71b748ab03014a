package bucket

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Silence is a time in which a store has done nothing that it was asked for, although requests wait.
type Silence struct {
	Server string    // the host, and a port if one is known
	Since  time.Time // of the last request that it has answered, or of the one that waits
	Until  time.Time // when that one gives up, about
	Why    string    // what came instead of an answer, in a line; "" is nothing
	Over   bool      // it answers again
}

// silence tells of a store that answers no request.
type silence struct {
	tell func(Silence) // nil: nobody is told

	mu    sync.Mutex
	heard time.Time // of the last answer
	told  time.Time // since when, as it was told; zero if it answers
}

// waits is called while a request waits that was begun then: it is not sent again before pause is over, and given up after left at the
// latest.
func (s *silence) waits(server string, begun time.Time, pause, left time.Duration, why string) {
	if s.tell == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, since := time.Now(), begun
	if s.heard.After(since) {
		since = s.heard
	}
	if now.Add(pause).Sub(since) < silentTime {
		return
	}
	s.told = since
	s.tell(Silence{Server: server, Since: since, Until: now.Add(left), Why: why})
}

// answers is called when a request was answered, and not with a refusal for a while.
func (s *silence) answers(server string) {
	if s.tell == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = time.Now()
	if !s.told.IsZero() {
		s.tell(Silence{Server: server, Since: s.told, Over: true})
		s.told = time.Time{}
	}
}

// reason is why a try has failed, in a few words.
func (c *Client) reason(err error) string {
	if r, refused := errors.AsType[*Refusal](err); refused {
		return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", r.Status, r.Code))
	}
	return c.Show(err.Error())
}

// patience is how long a request waits at most after some tries: in pauses, and for tries as long as one.
func patience(tries, left int, one time.Duration) time.Duration {
	d := time.Duration(left) * one
	for i := range left {
		d += longest(tries + i)
	}
	return d
}
