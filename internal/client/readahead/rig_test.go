package readahead

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

const rw = vfs.ShareRead | vfs.ShareWrite

// rig is a wrapper over a memfs that a test can break, below the one that writers meet.
type rig struct {
	t     *testing.T
	fs    vfs.FS // the stack
	ahead *FS
	below *memfs.FS

	mu    sync.Mutex
	fault func(ctx context.Context, op string) error
}

func newRig(t *testing.T, mem memfs.Options, opt Options) *rig {
	t.Helper()
	r := &rig{t: t}
	mem.Fault = func(ctx context.Context, op string, _ vfs.Handle) error {
		r.mu.Lock()
		fault := r.fault
		r.mu.Unlock()
		if fault == nil {
			return nil
		}
		return fault(ctx, op)
	}
	r.below = memfs.New(mem)
	pool := new(bufpool.Pool)
	opt.Pool = pool
	r.ahead = New(r.below, opt)
	r.fs = writeback.New(r.ahead, writeback.Options{Pool: pool})
	t.Cleanup(func() {
		if n := pool.Outstanding(); n != 0 || r.ahead.Stats().Held != 0 {
			t.Errorf("%d buffers are left, and %d bytes read ahead", n, r.ahead.Stats().Held)
		}
		if n := r.below.OpenFiles(); n != 0 || len(r.ahead.s.nodes) != 0 {
			t.Errorf("%d files, %d nodes are left open", n, len(r.ahead.s.nodes))
		}
	})
	return r
}

// alone takes what gathers writes out of the stack.
func (r *rig) alone() { r.fs = r.ahead }

func (r *rig) setFault(f func(ctx context.Context, op string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = f
}

func (r *rig) open(name string, how vfs.OpenHow) (vfs.File, vfs.Handle) {
	r.t.Helper()
	root, _, err := r.fs.Root(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	how.Access |= rw
	how.Create = &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}}
	f, opened, err := r.fs.Open(r.t.Context(), vfs.At{Dir: root, Name: name}, &how)
	if err != nil {
		r.t.Fatal(err)
	}
	return f, opened.H
}

func (r *rig) write(f vfs.File, off uint64, p []byte) {
	r.t.Helper()
	var w vfs.Written
	if n, err := vfs.WriteFull(r.t.Context(), f, p, off, vfs.Unstable, &w); n != len(p) || err != nil {
		r.t.Fatalf("a write of %d bytes at %d: %d, %v", len(p), off, n, err)
	}
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) commit(f vfs.File) error {
	var w vfs.Written
	return f.Commit(r.t.Context(), 0, 0, &w)
}

// wantBelow restarts the server and compares what it still has.
func (r *rig) wantBelow(h vfs.Handle, want []byte) {
	r.t.Helper()
	r.setFault(nil)
	r.below.Restart()
	f, _, err := r.below.Open(r.t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	r.ok(err)
	got := make([]byte, len(want)+1)
	n, eof, err := vfs.ReadFull(r.t.Context(), f, got, 0)
	r.ok(err)
	if !eof || !bytes.Equal(got[:n], want) {
		r.t.Errorf("below are %d bytes, want %d (equal: %v)", n, len(want), bytes.Equal(got[:n], want))
	}
	r.ok(f.Close(r.t.Context()))
}

func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7 + i>>8)
	}
	return p
}
