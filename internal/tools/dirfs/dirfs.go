package dirfs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/base/syncfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// MaxIO is the size of the largest read or write, in bytes.
const MaxIO = 1 << 20

// Options of New. The zero Options are usable.
type Options struct {
	// OneFileSystem shows directories as empty if something is mounted on them.
	OneFileSystem bool
	// Descriptors bounds the descriptors that the FS has open; 0: half of what the
	// process may still open, so that two FS fit.
	Descriptors int
}

// FS is a file system over a directory. It implements vfs.FS, vfs.Syncer,
// vfs.Forgetter and vfs.Closer and, on Linux, vfs.ACLer and vfs.Xattrer.
type FS struct {
	o       Options
	slots   slots
	moved   moved
	long    longNames
	gone    gone
	rounds  syncfs.Rounds
	whole   whole
	order   order
	listing listing
	listers sync.Pool     // of *lister
	files   chan struct{} // has an element for each open File
	calls   chan struct{} // has an element for each call at work
	lists   chan struct{} // has an element for each listing that keeps its descriptor
	verf    atomic.Uint64
	mounts  atomic.Int64
	closed  atomic.Bool
}

var (
	_ vfs.FS        = (*FS)(nil)
	_ vfs.Syncer    = (*FS)(nil)
	_ vfs.Forgetter = (*FS)(nil)
	_ vfs.Closer    = (*FS)(nil)
)

// New returns an FS over the directory at path. The caller closes it.
func New(path string, o Options) (*FS, error) {
	top, err := openTop(path)
	if err != nil {
		return nil, fmt.Errorf("dirfs: open %s: %w", path, fail("open", err))
	}
	f := &FS{o: o, order: newOrder()}
	var st stat
	if err := top.self(&st); err != nil {
		top.close()
		return nil, fmt.Errorf("dirfs: %s: %w", path, fail("stat", err))
	}
	b := divide(o.Descriptors)
	f.files, f.calls, f.lists = make(chan struct{}, b.files), make(chan struct{}, b.calls), make(chan struct{}, b.lists)
	f.slots.start(top, st.id(), b.idle)
	f.whole.start(top, st.FSID[0])
	f.verf.Store(1)
	return f, nil
}

// Close closes the directories that the FS has open. Open files stay open.
func (f *FS) Close() error {
	if !f.closed.Swap(true) {
		f.slots.end()
		f.whole.end()
	}
	return nil
}

// As implements vfs.FS: there is one view, that of the process.
func (f *FS) As(*vfs.Caller) vfs.FS { return f }

// Mounts is how many directories Options.OneFileSystem has shown as empty so far.
func (f *FS) Mounts() int { return int(f.mounts.Load()) }

// begin starts a call that touches the disk, and waits at maxCalls. end finishes it.
func (f *FS) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.closed.Load() {
		return fmt.Errorf("dirfs: closed: %w", vfs.ErrStale)
	}
	select {
	case f.calls <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *FS) end() { <-f.calls }

// Root implements vfs.FS.
func (f *FS) Root(ctx context.Context) (h vfs.Handle, a vfs.Attr, err error) {
	if err := f.begin(ctx); err != nil {
		return h, a, err
	}
	defer f.end()
	r := ref{kind: vfs.TypeDir, id: f.slots.root.id}
	h = r.handle()
	var st stat
	if err := f.slots.root.dir.self(&st); err != nil {
		return h, a, fail("stat", err)
	}
	return h, st.Attr, nil
}

// Forget implements vfs.Forgetter.
func (f *FS) Forget(dir vfs.Handle) {
	if r, err := parse(dir); err == nil && r.kind == vfs.TypeDir {
		f.slots.forget(r.id)
	}
}

// verifier is the verifier of writes and commits. It changes when the disk has failed to
// store written data.
func (f *FS) verifier() (v vfs.Verifier) {
	n := f.verf.Load()
	for i := range v {
		v[i] = byte(n >> (8 * i))
	}
	return v
}
