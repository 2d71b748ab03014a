//go:build linux

package localfs

import (
	"sync"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/vfs"
)

// What locks may hold; one more is vfs.ErrBusy.
const (
	// lockShare is the part, one in so many, of Options.MaxOpen that may be
	// descriptions of owners of locks: a client that locks all that it finds must
	// not leave others without descriptors.
	lockShare = 2

	// One in lockKept of these is kept for each vfs.Owner.Share that has less than one in
	// lockFew. Beyond that a share has no more than twice what is free beside those: one
	// alone has half. Locks are held for long. If each share left only as much as it
	// took, the seventh that takes what it can would find hardly any. As it
	// is, some have three quarters between them, and the next sixteen one in lockFew each.
	lockKept = 4
	lockFew  = 64

	// maxLockRanges bounds the ranges of one file that one owner holds apart.
	maxLockRanges = 1024
)

// lockTable has the owners of locks, file by file. The zero table is empty.
type lockTable struct {
	mu     sync.Mutex
	files  map[vfs.Handle]*lockedFile
	open   int            // descriptions of owners, of all files
	shares map[string]int // of them, by vfs.Owner.Share
}

// lockedFile is a file on which there are locks, or on which a call looks for
// some.
type lockedFile struct {
	calls int // guarded by lockTable.mu

	// mu is held while the kernel is asked, so that what it knows and what is
	// noted here are the same.
	mu     sync.Mutex
	owners map[vfs.Owner]*lockOwner
}

// lockOwner is the locks of one owner on one file. It is guarded by
// lockedFile.mu.
type lockOwner struct {
	fd  int
	set byterange.Set // what the kernel holds for fd
}

// pin returns the file x, for unpin to give back.
func (t *lockTable) pin(x vfs.Handle) *lockedFile {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[x]
	if f == nil {
		f = &lockedFile{owners: make(map[vfs.Owner]*lockOwner)}
		if t.files == nil {
			t.files = make(map[vfs.Handle]*lockedFile)
		}
		t.files[x] = f
	}
	f.calls++
	return f
}

// find is pin for a file that is known already; else it returns nil.
func (t *lockTable) find(x vfs.Handle) *lockedFile {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[x]
	if f != nil {
		f.calls++
	}
	return f
}

// pinAll is find for all files.
func (t *lockTable) pinAll() map[vfs.Handle]*lockedFile {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[vfs.Handle]*lockedFile, len(t.files))
	for x, f := range t.files {
		f.calls++
		all[x] = f
	}
	return all
}

// unpin gives back what the others returned. A file without locks is forgotten
// with its last call.
func (t *lockTable) unpin(x vfs.Handle, f *lockedFile) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.calls--
	if f.calls == 0 && len(f.owners) == 0 {
		delete(t.files, x)
	}
}

// room takes the place of one more description for share, if there are fewer than
// most, and share has not as many as it may: see lockKept. A first one it has as long as
// there is any. "" is nobody's, and has no such bound.
func (t *lockTable) room(most int, share string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	held, free := t.shares[share], most-t.open
	own := max(1, most/lockFew, 2*(free-most/lockKept))
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
func (t *lockTable) left(share string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	if t.shares[share]--; t.shares[share] == 0 {
		delete(t.shares, share)
	}
}
