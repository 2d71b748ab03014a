//go:build linux

package fdcache

import (
	"sync"
	"sync/atomic"
)

// DirtyList has the descriptors through which something was written that has not been
// synced since, the oldest first.
type DirtyList struct {
	n  atomic.Int64
	mu sync.Mutex

	oldest, newest *Desc
}

// Count is how many descriptors are in the list.
func (l *DirtyList) Count() int { return int(l.n.Load()) }

// Add says that d, which the caller has pinned, was written to. If it is dirty already, a
// call that cleans it from now on syncs these bytes as well.
func (l *DirtyList) Add(d *Desc) {
	if d.Dirty.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.Dirty.Swap(true) {
		return
	}
	l.n.Add(1)
	d.older = l.newest
	if l.newest != nil {
		l.newest.newer = d
	} else {
		l.oldest = d
	}
	l.newest = d
}

// Clean says that d is about to be synced, or does not matter any more.
func (l *DirtyList) Clean(d *Desc) {
	if !d.Dirty.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !d.Dirty.Swap(false) {
		return
	}
	l.n.Add(-1)
	if d.older != nil {
		d.older.newer = d.newer
	} else {
		l.oldest = d.newer
	}
	if d.newer != nil {
		d.newer.older = d.older
	} else {
		l.newest = d.older
	}
	d.newer, d.older = nil, nil
}

// PinOldest returns the descriptor that has been dirty for longest, pinned, or nil. It
// becomes the newest, so that concurrent calls clean different ones.
func (l *DirtyList) PinOldest() *Desc {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := l.oldest; d != nil; d = d.newer {
		if d.pinAgain() {
			l.toBack(d)
			return d
		}
	}
	return nil
}

// toBack makes d, which is in the list, the newest. mu is held.
func (l *DirtyList) toBack(d *Desc) {
	if d == l.newest {
		return
	}
	if d.older != nil {
		d.older.newer = d.newer
	} else {
		l.oldest = d.newer
	}
	d.newer.older = d.older
	d.older, d.newer = l.newest, nil
	l.newest.newer = d
	l.newest = d
}

// PinAged is PinOldest among those that were idle for IdleDirty looks.
func (l *DirtyList) PinAged() *Desc {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := l.oldest; d != nil; d = d.newer {
		if d.idle.Load() >= IdleDirty && d.pinAgain() {
			l.toBack(d)
			return d
		}
	}
	return nil
}
