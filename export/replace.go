package export

import (
	"context"
	"fmt"
	"hash/maphash"
	"reflect"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// Replace puts other exports in the place of those there are, all at once, or is
// an error and changes nothing. Calls that have begun end as they would have;
// the next call of every view is judged by the new exports. Handles keep their
// meaning as long as an export has their ID. Files that are open go on if their
// export still has the file system, and the caller the right; else their next
// use is vfs.ErrStale, vfs.ErrAccess or vfs.ErrROFS. The watchers of an object
// through an export that judges otherwise now have been told when Replace returns.
//
// File systems that are exported no longer may still be in use: see Drain.
func (t *Table) Replace(exports ...Export) error {
	next, err := t.newState(exports)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	exported := make(map[vfs.FS]bool, len(next.entries))
	for i := range next.entries {
		e := &next.entries[i]
		exported[e.FS] = true
		u := t.users[e.FS]
		if u == nil {
			u = &users{fs: e.FS, watches: watches{seed: maphash.MakeSeed()}}
			t.users[e.FS] = u
		}
		u.stay()
		e.users = u
	}
	// From here on nobody comes to the file systems that are not in next, so
	// that their users can only become fewer.
	t.state.Store(next)
	for fs, u := range t.users {
		if exported[fs] {
			u.watches.replaced(next)
			continue
		}
		u.watches.end()
		u.leaving.Store(true)
		t.settle(u)
	}
	return nil
}

// checkFS is nil if fs can be a key of users.
func checkFS(path string, fs vfs.FS) error {
	if fs == nil {
		return fmt.Errorf("export: %q: there is no file system", path)
	}
	if !reflect.ValueOf(fs).Comparable() {
		return fmt.Errorf("export: %q: a file system of type %T cannot be compared; export a pointer to it", path, fs)
	}
	return nil
}

// Drain waits until no call and no open file uses fs, which has been taken out
// of the table, so that it can be closed. It is an error if fs is exported, or
// ctx's if that ends first.
func (t *Table) Drain(ctx context.Context, fs vfs.FS) error {
	t.mu.Lock()
	u := t.users[fs]
	if u == nil {
		t.mu.Unlock()
		return nil
	}
	if !u.leaving.Load() {
		t.mu.Unlock()
		return errExported
	}
	if u.gone == nil {
		u.gone = make(chan struct{})
	}
	gone := u.gone
	t.mu.Unlock()
	select {
	case <-gone:
	case <-ctx.Done():
		return ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users[fs] != nil {
		return errExported
	}
	return nil
}

var errExported = fmt.Errorf("export: a file system that is exported never drains: %w", vfs.ErrInval)

// settle forgets u, and wakes those who wait for it, if it was the last call
// that has left. The caller holds mu.
func (t *Table) settle(u *users) {
	if !u.leaving.Load() || u.busy() || t.users[u.fs] != u {
		return
	}
	delete(t.users, u.fs)
	u.wake()
}

// shards is into how many counters the users of a file system are divided, lest
// every call of every core write to the same place in memory.
const shards = 8

// users counts the uses of a file system: calls under way and open files.
//
// A user that comes counts itself first and then looks whether the state that it came
// by is still in force; the call that takes the file system out first stores the new state
// and then looks at the counters. So one of the two sees the other.
type users struct {
	fs      vfs.FS
	leaving atomic.Bool   // exported no more
	gone    chan struct{} // guarded by Table.mu; closed when the last has left, or the file system is back
	in      [shards]struct {
		n atomic.Int64
		_ [56]byte // a cache line each
	}
	watches watches // of its objects, by those who use it
}

// stay takes leaving back. The caller holds Table.mu.
func (u *users) stay() {
	u.leaving.Store(false)
	u.wake()
}

// wake tells those who wait in Drain to look again. The caller holds Table.mu.
func (u *users) wake() {
	if u.gone != nil {
		close(u.gone)
		u.gone = nil
	}
}

func (u *users) enter(shard uint32) { u.in[shard%shards].n.Add(1) }

// leave ends what enter began.
func (u *users) leave(t *Table, shard uint32) {
	if u.in[shard%shards].n.Add(-1) == 0 && u.leaving.Load() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.settle(u)
	}
}

// busy reports whether anybody is in. While leaving, a counter that has been
// seen at zero stays there, but for those who come by an old state and leave at
// once; so counters can be looked at one after another.
func (u *users) busy() bool {
	for i := range u.in {
		if u.in[i].n.Load() != 0 {
			return true
		}
	}
	return false
}
