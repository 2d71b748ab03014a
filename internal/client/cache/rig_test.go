package cache_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/cache"
	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// chmod makes a directory the user's own: t.TempDir makes one by the umask.
func chmod(dir string) error { return os.Chmod(dir, 0o700) } //nolint:gosec // A directory.

// rig is a server, and clients with a cache.
type rig struct {
	t     testing.TB
	below *memfs.FS
	dir   string
	calls calls
	ahead atomic.Int64 // by how much the clients' clock is ahead of files' times
	fs    *cache.FS
	opt   store.Options

	mu    sync.Mutex
	fault func(ctx context.Context, op string) error
	notes []string
}

// calls count what comes to the server.
type calls struct{ read, access, getattr atomic.Int64 }

func newRig(t testing.TB, mem memfs.Options, opt store.Options) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), opt: opt}
	r.ok(chmod(r.dir))
	r.ahead.Store(int64(time.Hour))
	mem.Mode = 0o777
	mem.Fault = func(ctx context.Context, op string, _ vfs.Handle) error {
		switch op {
		case "read":
			r.calls.read.Add(1)
		case "access":
			r.calls.access.Add(1)
		case "getattr":
			r.calls.getattr.Add(1)
		}
		r.mu.Lock()
		fault := r.fault
		r.mu.Unlock()
		if fault == nil {
			return nil
		}
		return fault(ctx, op)
	}
	r.below = memfs.New(mem)
	r.start()
	t.Cleanup(r.stop)
	return r
}

// start opens the cache, as a client that begins.
func (r *rig) start() {
	r.t.Helper()
	o := r.opt
	o.Dir = r.dir
	o.Note = func(s string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.notes = append(r.notes, s)
	}
	if o.Space == nil {
		o.Space = roomy
	}
	st, err := store.Open(o)
	r.ok(err)
	r.fs = cache.New(noClose{r.below}, st, cache.Options{
		Server: "server", Now: func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) },
	})
}

// noClose is the server, which goes on when a client ends.
type noClose struct{ vfs.FS }

func (n noClose) As(c *vfs.Caller) vfs.FS { return noClose{n.FS.As(c)} }

// roomy is a disk that is nearly empty.
func roomy(string) (store.Space, error) {
	return store.Space{Bytes: 1 << 40, FreeBytes: 1 << 40, Files: 1 << 30, FreeFiles: 1 << 30}, nil
}

func (r *rig) stop() { r.ok(r.fs.Close()) }

func (r *rig) restart() { r.stop(); r.start() }

func (r *rig) setFault(f func(ctx context.Context, op string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = f
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// put makes a file on the server, past the cache.
func (r *rig) put(name string, data []byte) vfs.Handle {
	r.t.Helper()
	root, _, err := r.below.Root(r.t.Context())
	r.ok(err)
	how := &vfs.OpenHow{Access: vfs.ShareWrite, Trunc: true, Create: &vfs.CreateHow{
		Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644},
	}}
	f, o, err := r.below.Open(r.t.Context(), vfs.At{Dir: root, Name: name}, how)
	r.ok(err)
	var w vfs.Written
	if len(data) > 0 {
		_, err = vfs.WriteFull(r.t.Context(), f, data, 0, vfs.FileSync, &w)
		r.ok(err)
	}
	r.ok(f.Close(r.t.Context()))
	return o.H
}

// open opens a file by its name, as a view of fs.
func (r *rig) open(fs vfs.FS, name string) vfs.File {
	r.t.Helper()
	root, _, err := fs.Root(r.t.Context())
	r.ok(err)
	f, _, err := fs.Open(r.t.Context(), vfs.At{Dir: root, Name: name}, &vfs.OpenHow{Access: vfs.ShareRead})
	r.ok(err)
	return f
}

// want opens a file through the cache, reads it in steps, and compares.
func (r *rig) want(name string, want []byte, step int) {
	r.t.Helper()
	f := r.open(r.fs, name)
	defer func() { r.ok(f.Close(r.t.Context())) }()
	r.wantFile(f, want, step)
}

func (r *rig) wantFile(f vfs.File, want []byte, step int) {
	r.t.Helper()
	got := make([]byte, 0, len(want)+step)
	for {
		p := got[len(got):min(len(got)+step, cap(got))]
		if len(p) == 0 {
			r.t.Fatalf("more than the %d bytes of the file, and no end", len(want))
		}
		n, eof, err := f.ReadAt(r.t.Context(), p, uint64(len(got)), nil)
		r.ok(err)
		got = got[:len(got)+n]
		if eof {
			break
		}
		if n == 0 {
			r.t.Fatal("no bytes, and no end")
		}
	}
	if !bytes.Equal(got, want) {
		r.t.Fatalf("%d bytes that are not those of the file, which has %d", len(got), len(want))
	}
}

// reads are the READs that the server gets during f.
func (r *rig) reads(f func()) int64 {
	before := r.calls.read.Load()
	f()
	return r.calls.read.Load() - before
}

// content is data that differs everywhere.
func content(seed uint64, n int) []byte {
	p := make([]byte, n)
	rnd := rand.New(rand.NewPCG(seed, 1813))
	for i := 0; i+8 <= n; i += 8 {
		v := rnd.Uint64()
		for j := range 8 {
			p[i+j] = byte(v >> (8 * j))
		}
	}
	return p
}
