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
	// maxWatches bounds the watches of one file system, by all views together,
	// each of some 300 bytes. At the bound Watch is vfs.ErrBusy.
	maxWatches = 128 << 10
	// watchShards is into how many parts the watched handles are divided, and
	// nameStripes the directories, each with a lock of its own.
	watchShards = 64
	nameStripes = 64
)

// Watch implements vfs.Watcher. It tells of what is changed through any view of
// the table, whatever export of the file system that goes by, and of what the
// file system tells itself, if it is a Watcher:
//
//   - ChangeGone: Remove has taken a name of the object, or Rename has put
//     another object in its place. An object that is renamed stays what it was,
//     and is not told of.
//   - ChangeRights: its mode, owner, group or access control list was set, or
//     Replace has changed or taken away the export that it was watched through.
//     Of that it is told before Replace returns. A watch of a file system that is
//     not exported any more has nothing more to tell, and has ended.
//
// A name service that changes its mind about a client is not told of: what it
// said holds for a client that was given something by it until that asks for more.
//
// # Watch first, then open
//
// Code that grants something on the ground of what an object is (a descriptor:
// [View.OpenHost]) watches the object, looks at it and grants, in this order, and
// takes the grant back if changed was called since, if only in between. Then no
// grant outlives its ground. A change is made in the file system, then the
// watches are looked at, then the change is answered. If it was made before the
// look, the look has seen it. If it was made after the look, it was made after
// the watch was there, and so the watches were looked at when it was: changed
// has been called before the answer. With Replace it is the same, the table's
// state being what is changed.
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

// watches are those of one file system, by all views. A call that changes something looks
// at n, and while that is 0 at nothing else.
type watches struct {
	n      atomic.Int64
	seed   maphash.Seed
	shards [watchShards]watchShard
	names  [nameStripes]sync.RWMutex // of directories: see naming
}

// watchShard is a part of the watches. Those who watch are told with mu held, so
// that nobody is told any more when stop, which takes it too, has returned.
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

// tell tells those who watch h.
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

// replaced tells those whose export is another in next.
func (a *watches) replaced(next *state) {
	if a.n.Load() == 0 {
		return
	}
	same := make(map[*entry]bool) // an export has as many watches as it has rules
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

// end ends all watches of a file system that is exported no more.
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

// judgesAs reports whether e gives every caller what o gives.
func (e *entry) judgesAs(o *entry) bool {
	return e.FS == o.FS && e.ReadOnly == o.ReadOnly && e.Remote == o.Remote && reflect.DeepEqual(e.Clients, o.Clients)
}
