package iofs

import (
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxRemembered bounds how many directories are remembered, in each of two
	// generations, at some 400 bytes each. At the bound the older generation is
	// forgotten, and its directories are looked up again when they are needed.
	maxRemembered = 2048

	// trusted is how long an answer of the server is used without asking again: the
	// minimum for which Linux's client caches attributes (nfs(5), acregmin).
	trusted = 3 * time.Second
)

// memory is a cache of directories that were looked up recently, by the directory
// that holds them and the name there. All trees of one New share it: what one of
// them renames or removes, the others forget.
type memory struct {
	mu       sync.Mutex
	now, old map[entryKey]whereabouts // guarded by mu
}

type entryKey struct {
	dir  vfs.Handle
	name string
}

// whereabouts are the server's answer about a name, for which caller it is, and when
// it was asked. Another caller must not see it. Without a handle it says that the name
// was renamed or removed at that time.
type whereabouts struct {
	handle vfs.Handle
	who    identity
	at     time.Time
}

// note remembers that name in dir was the directory h when the server was asked, at
// the given time; unless the name was renamed or removed since.
func (m *memory) note(dir vfs.Handle, name string, h vfs.Handle, who identity, at time.Time) {
	k := entryKey{dir, name}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w, ok := m.get(k); ok && w.handle.IsZero() && !w.at.Before(at) {
		return
	}
	m.set(k, whereabouts{h, who, at})
}

// forget is called when the name may stand for something else from now on.
func (m *memory) forget(dir vfs.Handle, name string) {
	at := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(entryKey{dir, name}, whereabouts{at: at})
}

// recall returns what note was told for this caller, if that is not older than trusted.
func (m *memory) recall(dir vfs.Handle, name string, who identity) (h vfs.Handle, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.get(entryKey{dir, name})
	if !ok || w.handle.IsZero() || !w.who.equal(who) || time.Since(w.at) > trusted {
		return h, false
	}
	return w.handle, true
}

// get finds what is remembered, and keeps it from becoming old. mu is held.
func (m *memory) get(k entryKey) (w whereabouts, ok bool) {
	if w, ok = m.now[k]; ok {
		return w, true
	}
	if w, ok = m.old[k]; ok {
		m.set(k, w)
	}
	return w, ok
}

// set is called with mu held.
func (m *memory) set(k entryKey, w whereabouts) {
	if m.now == nil || len(m.now) >= maxRemembered {
		m.now, m.old = make(map[entryKey]whereabouts), m.now
	}
	m.now[k] = w
}
