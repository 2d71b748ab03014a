// Package ledger writes lines of a log about clients, of which a stranger can cause as many
// as it likes: few about what one client repeats, and few about many clients. What is left
// out is counted, and the next line has the count.
package ledger

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// Pause is the least time between two lines of one message about a client and a
	// subject. What happens meanwhile is counted, and the next line has the count.
	Pause = 10 * time.Second

	// maxLogged bounds the clients and subjects with a recent line, and maxLoggedOf the
	// subjects of one client. At the bounds further subjects count as one more subject, and
	// further clients as one more client.
	maxLogged   = 256
	maxLoggedOf = 8
)

// Ledger writes to Log. Its methods may be called concurrently.
type Ledger struct {
	Log *slog.Logger
	// Most bounds the lines of all clients in one Pause; 0: what each may have is the
	// bound. Beyond it a line is counted as left out.
	Most int

	mu     sync.Mutex
	logged map[entry]*told
	of     map[string]int // subjects of each client in logged
	since  time.Time      // when this Pause began
	lines  int            // in it
	beyond int            // lines beyond Most, since the last one
}

// entry is what lines are counted by. An empty client, or subject, stands for all that are
// beyond the bound.
type entry struct{ message, client, about string }

type told struct {
	at   time.Time
	more int // lines since that were left out
}

// Tell writes a line about what a client has done, unless it has written of the same
// recently. about is the subject by which lines are counted, and is in none by itself.
func (l *Ledger) Tell(level slog.Level, message, client, about string, attrs ...slog.Attr) {
	more, due := l.due(entry{message, client, about}, time.Now())
	if !due {
		return
	}
	attrs = append([]slog.Attr{slog.String("client", client)}, attrs...)
	if more > 0 {
		attrs = append(attrs, slog.Int("left_out", more))
	}
	l.Log.LogAttrs(context.Background(), level, message, attrs...)
}

// due reports whether a line is to be written, and how many were left out before it.
func (l *Ledger) due(e entry, now time.Time) (more int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, fresh := l.find(e, now)
	if !fresh && now.Sub(t.at) < Pause {
		t.more++
		return 0, false
	}
	t.at = now
	if !l.room(now) {
		l.beyond++
		return 0, false
	}
	more, t.more = t.more+l.beyond, 0
	l.beyond = 0
	return more, true
}

// room reports whether this Pause has room for one more line. l.mu is held.
func (l *Ledger) room(now time.Time) bool {
	if l.Most == 0 {
		return true
	}
	if now.Sub(l.since) >= Pause {
		l.since, l.lines = now, 0
	}
	l.lines++
	return l.lines <= l.Most
}

// find is what was told of e, or of those beyond a bound together. l.mu is held.
func (l *Ledger) find(e entry, now time.Time) (t *told, fresh bool) {
	t = l.logged[e]
	if t == nil && (len(l.logged) >= maxLogged || l.of[e.client] >= maxLoggedOf) {
		l.tidy(now)
	}
	if t == nil && l.of[e.client] >= maxLoggedOf {
		e.about = ""
		t = l.logged[e]
	}
	if t == nil && len(l.logged) >= maxLogged {
		e.client, e.about = "", ""
		t = l.logged[e]
	}
	if t != nil {
		return t, false
	}
	if l.logged == nil {
		l.logged, l.of = make(map[entry]*told), make(map[string]int)
	}
	t = new(told)
	l.logged[e] = t
	l.of[e.client]++
	return t, true
}

// tidy forgets entries that are due anyway and have no lines left out. l.mu is held.
func (l *Ledger) tidy(now time.Time) {
	for e, t := range l.logged {
		if now.Sub(t.at) >= Pause && t.more == 0 {
			delete(l.logged, e)
			if l.of[e.client]--; l.of[e.client] == 0 {
				delete(l.of, e.client)
			}
		}
	}
}
