package mountd

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// logPause is the least time between two lines of one message about a client and a
	// path. What happens meanwhile is counted, and the next line has the count.
	logPause = 10 * time.Second

	// maxLogged bounds the clients and paths with a recent line, and maxLoggedPaths
	// the paths of one client. At the bounds further paths count as one more path, and
	// further clients as one more client.
	maxLogged      = 256
	maxLoggedPaths = 8
)

// ledger is the log of mounts. A call is cheap for its sender, and a line takes space on
// the disk, so few lines are written about what a client repeats.
type ledger struct {
	log *slog.Logger

	mu     sync.Mutex
	logged map[entry]*told
	paths  map[string]int // of each client in logged
}

// entry is what lines are counted by. An empty client, or path, stands for all that are
// beyond the bound.
type entry struct{ message, client, path string }

type told struct {
	at   time.Time
	more int // lines since that were left out
}

func (l *ledger) tell(level slog.Level, message, client, path string, attrs ...slog.Attr) {
	more, due := l.due(entry{message, client, path}, time.Now())
	if !due {
		return
	}
	attrs = append([]slog.Attr{slog.String("client", client), slog.String("path", path)}, attrs...)
	if more > 0 {
		attrs = append(attrs, slog.Int("left_out", more))
	}
	l.log.LogAttrs(context.Background(), level, message, attrs...)
}

// due reports whether a line is to be written, and how many were left out before it.
func (l *ledger) due(e entry, now time.Time) (more int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.logged[e]
	if t == nil && (len(l.logged) >= maxLogged || l.paths[e.client] >= maxLoggedPaths) {
		l.tidy(now)
	}
	if t == nil && l.paths[e.client] >= maxLoggedPaths {
		e.path = ""
		t = l.logged[e]
	}
	if t == nil && len(l.logged) >= maxLogged {
		e.client, e.path = "", ""
		t = l.logged[e]
	}
	if t == nil {
		if l.logged == nil {
			l.logged, l.paths = make(map[entry]*told), make(map[string]int)
		}
		l.logged[e] = &told{at: now}
		l.paths[e.client]++
		return 0, true
	}
	if now.Sub(t.at) < logPause {
		t.more++
		return 0, false
	}
	more, t.more, t.at = t.more, 0, now
	return more, true
}

// tidy forgets entries that are due anyway and have no lines left out. l.mu is held.
func (l *ledger) tidy(now time.Time) {
	for e, t := range l.logged {
		if now.Sub(t.at) >= logPause && t.more == 0 {
			delete(l.logged, e)
			if l.paths[e.client]--; l.paths[e.client] == 0 {
				delete(l.paths, e.client)
			}
		}
	}
}
