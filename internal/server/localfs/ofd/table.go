//go:build linux

package ofd

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/vfs"
)

// One in kept of the descriptions is kept for shares (vfs.Owner.Share) that have less
// than one in few. Beyond that a share has no more than twice what is free beside those:
// one alone has half. Locks are held for long. If each share left only as much as it took,
// the seventh that takes what it can would find hardly any. As it is, some have three
// quarters between them, and the next sixteen one in few each.
const (
	kept = 4
	few  = 64
)

// Table has the locks of all owners, file by file. Its methods may be called concurrently.
type Table struct {
	// Most bounds the descriptions. At the bound, and at a share's, Lock is vfs.ErrBusy
	// for an owner that has no lock on the file yet. It is set before the first call.
	Most int
	// Closed, if not nil, is called for each description that was closed.
	Closed func()

	mu     sync.Mutex
	files  map[vfs.Handle]*file
	open   int            // descriptions of owners, of all files
	shares map[string]int // of them, by vfs.Owner.Share
}

// file is a file on which there are locks, or on which a call looks for some.
type file struct {
	calls int // guarded by Table.mu

	// mu is held while the kernel is asked, so that the kernel and the table know the
	// same.
	mu     sync.Mutex
	owners map[vfs.Owner]*owner
}

// Lock takes the lock s on the file x for o, or changes what o holds of that range. It is
// vfs.ErrLocked if another owner or program is in the way, and vfs.ErrAccess for an
// exclusive lock by a description that cannot write. open opens the description if o has
// none of x: for reading and writing, or for reading.
func (t *Table) Lock(x vfs.Handle, o vfs.Owner, s byterange.Span, open func() (fd int, err error)) error {
	f := t.pin(x)
	defer t.unpin(x, f)
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.owners[o]
	if w == nil {
		if !t.room(o.Share) {
			return fmt.Errorf("localfs: locks may hold %d files open, and the client has its share of them: %w", t.Most, vfs.ErrBusy)
		}
		fd, err := open()
		if err != nil {
			t.left(o.Share)
			return err
		}
		w = &owner{fd: fd}
		f.owners[o] = w
	}
	err := w.lock(s)
	t.drop(f, o, w)
	return err
}

// Unlock frees what o holds of the range s of x. known is false if the table has no locks
// on x at all.
func (t *Table) Unlock(x vfs.Handle, o vfs.Owner, s byterange.Span) (known bool, err error) {
	f := t.find(x)
	if f == nil {
		return false, nil
	}
	defer t.unpin(x, f)
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.owners[o]
	if w == nil {
		return true, nil
	}
	err = w.unlock(s)
	t.drop(f, o, w)
	return true, err
}

// Test looks for a lock in the way of s, as o would take it. If free is false, holder is
// one; its Owner is zero if that is a program of this host. other gives any descriptor of
// the file, for an o that has none, and done gives it back.
func (t *Table) Test(x vfs.Handle, o vfs.Owner, s byterange.Span, other func() (fd int, done func(), err error)) (holder vfs.Lock, free bool, err error) {
	f := t.pin(x)
	defer t.unpin(x, f)
	f.mu.Lock()
	defer f.mu.Unlock()
	// The table's owners first: the kernel does not tell which of them it is.
	for owner, w := range f.owners {
		if held, found := w.set.Conflict(s); found && owner != o {
			return lockOf(owner, held), false, nil
		}
	}
	var fd int
	if w := f.owners[o]; w != nil {
		fd = w.fd // whose own locks are in nobody's way
	} else {
		n, done, err := other()
		if err != nil {
			return holder, false, err
		}
		defer done()
		fd = n
	}
	held, free, err := ask(fd, s)
	return lockOf(vfs.Owner{}, held), free, err
}

func lockOf(o vfs.Owner, s byterange.Span) vfs.Lock {
	return vfs.Lock{Owner: o, Exclusive: s.Exclusive, Off: s.First, Len: s.Len()}
}

// Release frees all locks of the owners that whom names. whom must not call back.
func (t *Table) Release(whom func(*vfs.Owner) bool) {
	for x, f := range t.pinAll() {
		f.mu.Lock()
		for o, w := range f.owners {
			if !whom(&o) {
				continue
			}
			// Should it fail, the locks go with the description. Closing alone is not
			// enough: a process that is being started has a copy of it for a moment.
			_ = w.unlock(byterange.Span{Last: byterange.Max})
			w.set = nil
			t.drop(f, o, w)
		}
		f.mu.Unlock()
		t.unpin(x, f)
	}
}

// Held is how many descriptions there are, and of how many files.
func (t *Table) Held() (descriptions, files int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open, len(t.files)
}

// drop closes w if it holds no lock. f.mu is held.
func (t *Table) drop(f *file, o vfs.Owner, w *owner) {
	if len(w.set) > 0 {
		return
	}
	delete(f.owners, o)
	_ = unix.Close(w.fd) // nothing was written through it
	if t.Closed != nil {
		t.Closed()
	}
	t.left(o.Share)
}

// pin returns the file x, for unpin to give back.
func (t *Table) pin(x vfs.Handle) *file {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[x]
	if f == nil {
		f = &file{owners: make(map[vfs.Owner]*owner)}
		if t.files == nil {
			t.files = make(map[vfs.Handle]*file)
		}
		t.files[x] = f
	}
	f.calls++
	return f
}

// find is pin for a file that is known already; else it returns nil.
func (t *Table) find(x vfs.Handle) *file {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[x]
	if f != nil {
		f.calls++
	}
	return f
}

// pinAll is find for all files.
func (t *Table) pinAll() map[vfs.Handle]*file {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[vfs.Handle]*file, len(t.files))
	for x, f := range t.files {
		f.calls++
		all[x] = f
	}
	return all
}

// unpin gives back what the others returned. A file without locks is forgotten with its
// last call.
func (t *Table) unpin(x vfs.Handle, f *file) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.calls--
	if f.calls == 0 && len(f.owners) == 0 {
		delete(t.files, x)
	}
}

// room takes the place of one more description for share, if share has not as many as it
// may: see kept. A first one it has as long as there is any. "" is nobody's, and has no
// bound but Most.
func (t *Table) room(share string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	held, free := t.shares[share], t.Most-t.open
	own := max(1, t.Most/few, 2*(free-t.Most/kept))
	if free <= 0 || share != "" && held >= own {
		return false
	}
	if t.shares == nil {
		t.shares = make(map[string]int)
	}
	t.shares[share]++
	t.open++
	return true
}

// left gives back what room took.
func (t *Table) left(share string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	if t.shares[share]--; t.shares[share] == 0 {
		delete(t.shares, share)
	}
}
