package mountd

import (
	"slices"
	"sync"
)

// maxMounts bounds the entries of DUMP. Nothing depends on them, as section 5.2.2 says:
// clients may go without UMNT. At the bound the oldest entry is forgotten.
const maxMounts = 1024

// mount is a path that a client has mounted: an address, or a user at it.
type mount struct{ client, user, path string }

// mounts is what DUMP answers, oldest first.
type mounts struct {
	mu   sync.Mutex
	held []mount
}

func (l *mounts) add(m mount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.held, m) {
		return
	}
	if len(l.held) >= maxMounts {
		l.held = slices.Delete(l.held, 0, 1)
	}
	l.held = append(l.held, m)
}

func (l *mounts) remove(gone func(mount) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = slices.DeleteFunc(l.held, gone)
}

func (l *mounts) list() []mount {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.held)
}
