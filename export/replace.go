package export

import (
	"context"
	"fmt"
	"hash/maphash"
	"reflect"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// Replace replaces all exports at once, or returns an error and changes nothing. Calls
// that have begun finish by the old exports; the next call of every view is judged by
// the new ones. Handles keep their meaning as long as an export has their ID and tree.
// An open file goes on if its export still has the file system, and its caller the
// right. Else its next use is vfs.ErrStale, vfs.ErrAccess or vfs.ErrROFS. Before
// Replace returns, it tells the watchers of objects whose export now has other rules.
//
// File systems that are no longer exported may still be in use: see Drain.
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
	// From here on no call enters a file system that is not in next, so its users
	// can only become fewer.
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

// Drain waits until no call and no open file uses fs, so that it can be closed. It is
// an error that wraps vfs.ErrInval if fs is exported, or becomes so again meanwhile,
// and ctx's error if that ends first.
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

// settle forgets u and wakes Drain, if u is no longer exported and its last user has
// left. The caller holds mu.
func (t *Table) settle(u *users) {
	if !u.leaving.Load() || u.busy() || t.users[u.fs] != u {
		return
	}
	delete(t.users, u.fs)
	u.wake()
}

// shards is how many counters the users of a file system are divided among, so that
// cores do not contend for one cache line.
const shards = 8

// users counts the uses of a file system: calls under way and open files.
//
// A call counts itself first, and then checks that its state is still in force. Replace
// first stores the new state, and then reads the counters. So at least one of the two
// sees the other.
type users struct {
	fs      vfs.FS
	leaving atomic.Bool   // no longer exported
	gone    chan struct{} // guarded by Table.mu; closed when the last user has left, or fs is exported again
	in      [shards]struct {
		n atomic.Int64
		_ [56]byte // a cache line each
	}
	watches watches // of its objects
}

// stay says that the file system is exported, perhaps again. The caller holds Table.mu.
func (u *users) stay() {
	u.leaving.Store(false)
	u.wake()
}

// wake has the calls of Drain look again. The caller holds Table.mu.
func (u *users) wake() {
	if u.gone != nil {
		close(u.gone)
		u.gone = nil
	}
}

func (u *users) enter(shard uint32) { u.in[shard%shards].n.Add(1) }

// leave takes back what enter has counted.
func (u *users) leave(t *Table, shard uint32) {
	if u.in[shard%shards].n.Add(-1) == 0 && u.leaving.Load() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.settle(u)
	}
}

// busy reports whether the file system has users. The counters can be read one after
// another: while leaving is set, one that was zero stays zero, but for calls that find
// their state outdated and leave at once.
func (u *users) busy() bool {
	for i := range u.in {
		if u.in[i].n.Load() != 0 {
			return true
		}
	}
	return false
}
