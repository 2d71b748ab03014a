package attrcache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/attrcache"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// rig is a server that counts what it is asked, and a client that keeps answers. Another client is server itself.
type rig struct {
	t      *testing.T
	server *memfs.FS
	fs     *attrcache.FS
	root   vfs.Handle

	mu    sync.Mutex
	calls map[string]int
	fault func(op string) error
}

func newRig(t *testing.T, o attrcache.Options) *rig {
	t.Helper()
	r := &rig{t: t, calls: make(map[string]int)}
	r.server = memfs.New(memfs.Options{Mode: 0o777, Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls[op]++
		if r.fault == nil {
			return nil
		}
		return r.fault(op)
	}})
	if o.Times == (attrcache.Times{}) {
		o.Times = attrcache.DefaultTimes()
	}
	r.fs = attrcache.New(doubtful{r.server}, o)
	var err error
	r.root, _, err = r.server.Root(t.Context())
	r.ok(err)
	return r
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// failing has calls fail from now on; nil: no more.
func (r *rig) failing(f func(op string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = f
}

// asks reports how many calls of some kinds f causes.
func (r *rig) asks(f func(), ops ...string) (n int) {
	count := func() (n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, op := range ops {
			n += r.calls[op]
		}
		return n
	}
	before := count()
	f()
	return count() - before
}

// put makes an object by way of fs.
func (r *rig) put(fs vfs.FS, dir vfs.Handle, name string, what vfs.Type) vfs.Handle {
	r.t.Helper()
	h, _, _, err := fs.Create(r.t.Context(), dir, name, &vfs.CreateHow{Type: what, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}})
	r.ok(err)
	return h
}

// chmod sets a mode by way of fs.
func (r *rig) chmod(fs vfs.FS, h vfs.Handle, mode uint32) {
	r.t.Helper()
	_, err := fs.SetAttr(r.t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}, nil)
	r.ok(err)
}

// mode is the mode that the client believes h to have.
func (r *rig) mode(h vfs.Handle) uint32 {
	r.t.Helper()
	a, err := r.fs.GetAttr(r.t.Context(), h, vfs.MaskMode)
	r.ok(err)
	return a.Mode
}

// find is what a view of the client finds.
func (r *rig) find(fs vfs.FS, dir vfs.Handle, name string) (vfs.Handle, bool) {
	r.t.Helper()
	h, _, _, err := fs.Lookup(r.t.Context(), dir, name)
	if errors.Is(err, vfs.ErrNoEnt) {
		return h, false
	}
	r.ok(err)
	return h, true
}

// open opens a file by its handle, and closes it when the test ends.
func (r *rig) open(h vfs.Handle) vfs.File {
	r.t.Helper()
	f, _, err := r.fs.Open(r.t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
	r.ok(err)
	r.t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			r.t.Error(err)
		}
	})
	return f
}

// want fails unless n questions were asked.
func (r *rig) want(what string, got, want int) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: %d questions, want %d", what, got, want)
	}
}

// seconds are times of attributes.
func seconds(fileMin, fileMax, dirMin, dirMax time.Duration) attrcache.Times {
	return attrcache.Times{FileMin: fileMin * time.Second, FileMax: fileMax * time.Second, DirMin: dirMin * time.Second, DirMax: dirMax * time.Second}
}
