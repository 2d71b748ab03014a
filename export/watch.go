package export

import (
	"context"
	"errors"
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Watcher = (*View)(nil)

const (
	// maxWatches bounds the watches of one file system, by all views together. Each
	// takes some 300 bytes. At the bound Watch is vfs.ErrBusy.
	maxWatches = 128 << 10
	// watchShards is how many locks the watched handles are divided among, and
	// nameStripes how many the directories are.
	watchShards = 64
	nameStripes = 64
)

// Watch implements vfs.Watcher. It tells of changes through any view of the table, by
// any export of the file system. If the file system is a Watcher itself, it also tells
// what that tells.
//
//   - ChangeGone: Remove has taken a name of the object, or Rename has put
//     another object in its place. That an object is renamed is not told: it stays
//     what it was.
//   - ChangeRights: its mode, owner, group or access control list was set, or
//     Replace has changed or removed the export that it was watched through. Replace
//     tells it before it returns. When the file system is no longer exported, the
//     watch has ended.
//
// A name service that gives another answer about a client is not told of: the old
// answer holds for what the client was granted, until it asks for more.
//
// # Watch first, then open
//
// Code may grant something because an object is what it is, such as a descriptor
// ([View.OpenHost]). It watches the object, then looks at it, then grants. If changed
// was called since the watch began, even before the grant, it takes the grant back.
// Then no grant outlives its reason: every change is made first, then watchers are
// told, then the change is answered. A change made before the look is seen by the
// look. A change made after the look finds the watch, so changed is called before the
// answer. The same holds for Replace, which changes the table's state.
func (v *View) Watch(h vfs.Handle, changed func(vfs.Change)) (stop func(), err error) {
	for range maxReloads {
		r, err := v.ref(context.Background(), &h)
		if err != nil {
			return nil, err
		}
		stop, err := r.watch(changed)
		inForce := v.t.state.Load() == r.st
		r.leave()
		if err != nil {
			return nil, err
		}
		if inForce {
			return stop, nil
		}
		// Replace may have looked at the watches before this was among them.
		stop()
	}
	return nil, vfs.ErrBusy
}

func (r *ref) watch(changed func(vfs.Change)) (stop func(), err error) {
	w := &watch{e: r.e, changed: changed, stopBelow: func() {}}
	if power, ok := vfs.As[vfs.Watcher](r.fs); ok {
		stop, err := power.Watch(r.h, changed)
		if err == nil {
			w.stopBelow = sync.OnceFunc(stop)
		} else if !errors.Is(err, vfs.ErrNotSupp) {
			return nil, err
		}
	}
	all, h := &r.e.users.watches, r.h
	if err := all.add(h, w); err != nil {
		w.stopBelow()
		return nil, err
	}
	return func() {
		all.remove(h, w)
		w.stopBelow()
	}, nil
}

// watches are those of one file system, by all views. While n is 0, changes look at
// nothing else.
type watches struct {
	n      atomic.Int64
	seed   maphash.Seed
	shards [watchShards]watchShard
	names  [nameStripes]sync.RWMutex // of directories: see naming
}

// watchShard is a part of the watches. Watchers are told with mu held. stop takes mu
// too, so after it has returned its watcher is told nothing more.
type watchShard struct {
	mu sync.Mutex
	of map[vfs.Handle]*watch // guarded by mu, as are the watches in it
}

// watch is one of the watches of a handle, which form a list.
type watch struct {
	e         *entry // whose rules hold
	changed   func(vfs.Change)
	stopBelow func() // ends the file system's own; may be called more than once
	next      *watch
}

func (a *watches) shard(h *vfs.Handle) *watchShard {
	return &a.shards[maphash.Bytes(a.seed, h.Bytes())%watchShards]
}

func (a *watches) add(h vfs.Handle, w *watch) error {
	if a.n.Add(1) > maxWatches {
		a.n.Add(-1)
		return vfs.ErrBusy
	}
	s := a.shard(&h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[vfs.Handle]*watch)
	}
	w.next = s.of[h]
	s.of[h] = w
	return nil
}

// remove ends w, unless it has ended already.
func (a *watches) remove(h vfs.Handle, w *watch) {
	s := a.shard(&h)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.of[h]
	for at := &first; *at != nil; at = &(*at).next {
		if *at != w {
			continue
		}
		*at = w.next
		a.n.Add(-1)
		break
	}
	if first != nil {
		s.of[h] = first
	} else {
		delete(s.of, h)
	}
}

// tell tells the watchers of h.
func (a *watches) tell(h *vfs.Handle, c vfs.Change) {
	if a.n.Load() == 0 {
		return
	}
	s := a.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := s.of[*h]; w != nil; w = w.next {
		w.changed(c)
	}
}

// each calls f for every watch. If f returns false, the watch ends.
func (a *watches) each(f func(*watch) bool) {
	for i := range a.shards {
		s := &a.shards[i]
		s.mu.Lock()
		for h, first := range s.of {
			var kept *watch
			for w := first; w != nil; {
				next := w.next
				if f(w) {
					w.next, kept = kept, w
				} else {
					a.n.Add(-1)
				}
				w = next
			}
			if kept == nil {
				delete(s.of, h)
			} else {
				s.of[h] = kept
			}
		}
		s.mu.Unlock()
	}
}

// replaced tells the watchers whose export has other rules in next, or is not in it.
func (a *watches) replaced(next *state) {
	if a.n.Load() == 0 {
		return
	}
	same := make(map[*entry]bool) // an export may have many rules, and many watches
	a.each(func(w *watch) bool {
		e := next.byID[w.e.ID]
		as, known := same[w.e]
		if !known {
			as = e != nil && e.judgesAs(w.e)
			same[w.e] = as
		}
		if !as {
			w.changed(vfs.ChangeRights)
		}
		if e != nil {
			w.e = e
		}
		return true
	})
}

// end ends all watches of a file system that is no longer exported.
func (a *watches) end() {
	var ended []*watch
	a.each(func(w *watch) bool {
		w.changed(vfs.ChangeRights)
		ended = append(ended, w)
		return false
	})
	for _, w := range ended {
		w.stopBelow()
	}
}

// judgesAs reports whether e gives every caller the same as o.
func (e *entry) judgesAs(o *entry) bool {
	return e.FS == o.FS && e.ReadOnly == o.ReadOnly && e.NoHostFiles == o.NoHostFiles && reflect.DeepEqual(e.Clients, o.Clients)
}
