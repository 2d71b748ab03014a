package upstream_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/upstream"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

func probe() *upstream.Probe { return upstream.NewProbe(func(p []byte) { clear(p) }) }

// over makes a connected FS.
func over(t *testing.T, below vfs.FS, o upstream.Options) *upstream.FS {
	t.Helper()
	if o.Probe == nil {
		o.Probe = probe()
	}
	o.Name, o.Dial = "nfs://filer/export", func(context.Context) (vfs.FS, error) { return below, nil }
	f := upstream.New(o)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSuite runs the suite over it.
func TestSuite(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		New: func(t *testing.T) vfs.FS {
			return over(t, memfs.New(memfs.Options{}), upstream.Options{FSID: 7}).As(&vfs.Caller{})
		},
		Callers: true,
	})
}

// TestSuiteKept runs what is about open files where those are kept open.
func TestSuiteKept(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		New: func(t *testing.T) vfs.FS {
			return over(t, memfs.New(memfs.Options{}), upstream.Options{Keep: true}).As(&vfs.Caller{})
		},
		Callers: true,
		Groups:  []string{"open", "read", "write", "truncate", "identity", "setattr"},
	})
}

// TestNotYet: until the other server is there every call is ErrBusy; then all goes on.
func TestNotYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var there atomic.Bool
		f := upstream.New(upstream.Options{Name: "nfs://filer/export", Probe: probe(), Dial: func(context.Context) (vfs.FS, error) {
			if !there.Load() {
				return nil, vfs.ErrAccess // whatever it is
			}
			return memfs.New(memfs.Options{}), nil
		}})
		if err := f.Connect(t.Context()); !errors.Is(err, vfs.ErrAccess) || f.Connected() {
			t.Errorf("connected: %v", err)
		}
		f.Persist()
		view := f.As(&vfs.Caller{UID: 1})
		_, _, err := view.Root(t.Context())
		if !errors.Is(err, vfs.ErrBusy) || errors.Is(err, vfs.ErrAccess) || !strings.Contains(err.Error(), "nfs://filer/export has not been reached yet") {
			t.Errorf("before: %v", err)
		}
		if err := f.ReleaseLocks(t.Context(), func(*vfs.Owner) bool { return true }); err != nil {
			t.Errorf("there are no locks to be released: %v", err)
		}
		time.Sleep(time.Hour)
		there.Store(true)
		time.Sleep(time.Minute)
		if _, _, err := view.Root(t.Context()); err != nil || !f.Connected() {
			t.Errorf("when it is there: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseEndsTrying: the end does not wait for a server that is not there.
func TestCloseEndsTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := upstream.New(upstream.Options{Probe: probe(), Dial: func(ctx context.Context) (vfs.FS, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		f.Persist()
		time.Sleep(5 * time.Second) // a try is under way
		began := time.Now()
		if err := f.Close(); err != nil || time.Since(began) > 0 {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
	})
}

// longHandles has handles of 60 bytes below its root.
type longHandles struct{ vfs.FS }

func (l longHandles) ReadDir(context.Context, vfs.Handle, vfs.Pos, vfs.Mask, uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		h, _ := vfs.MakeHandle(make([]byte, 60))
		yield(&vfs.Entry{Name: []byte("f"), Handle: h}, nil)
	}
}

func (l longHandles) As(c *vfs.Caller) vfs.FS { return longHandles{l.FS.As(c)} }

// TestLongHandles: handles that leave no room are told when the connection is made, with what to do.
func TestLongHandles(t *testing.T) {
	below := longHandles{memfs.New(memfs.Options{})}
	for most, fits := range map[int]bool{51: false, 60: true, 64: true, 0: true} {
		f := upstream.New(upstream.Options{Name: "nfs://filer/export", Probe: probe(), MaxHandle: most, Longer: "say so",
			Dial: func(context.Context) (vfs.FS, error) { return below, nil }})
		err := f.Connect(t.Context())
		refused, _ := errors.AsType[*upstream.RefusedError](err)
		if (err == nil) != fits || !fits && (refused == nil || !strings.Contains(err.Error(), "have 60 bytes, and there is room for 51: say so")) {
			t.Errorf("room for %d: %v", most, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// around is another server that passes look-ups on to the first one.
type around struct {
	vfs.FS
	to vfs.FS
}

func (a around) As(c *vfs.Caller) vfs.FS { return around{a.FS.As(c), a.to} }
func (a around) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	return a.to.Lookup(ctx, dir, name)
}

// TestLoop: a server that leads back to one of our exports is refused, whichever it is.
func TestLoop(t *testing.T) {
	p := probe()
	first := over(t, memfs.New(memfs.Options{}), upstream.Options{Probe: p})
	var self *upstream.FS
	for name, to := range map[string]func() vfs.FS{
		"to another export": func() vfs.FS { return first },
		"to itself":         func() vfs.FS { return self },
	} {
		self = upstream.New(upstream.Options{Name: "nfs://b/", Probe: p, Dial: func(context.Context) (vfs.FS, error) {
			return around{memfs.New(memfs.Options{}), to()}, nil
		}})
		err := self.Connect(t.Context())
		if refused, ok := errors.AsType[*upstream.RefusedError](err); !ok || !strings.Contains(refused.Error(), "leads back to this server") {
			t.Errorf("%s: %v", name, err)
		}
		if err := self.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, _, err := first.Lookup(t.Context(), vfs.Handle{}, ".nfsbox-proxy-x"); errors.Is(err, vfs.ErrNoEnt) {
		t.Error("a name that others can make up is taken for ours")
	}
}

// asked notes as whom it is asked.
type asked struct {
	vfs.FS
	as *atomic.Pointer[vfs.Caller]
}

func (a asked) As(c *vfs.Caller) vfs.FS { return asked{&whoAsks{a.FS.As(c), c, a.as}, a.as} }

type whoAsks struct {
	vfs.FS
	c  *vfs.Caller
	as *atomic.Pointer[vfs.Caller]
}

func (w *whoAsks) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	w.as.Store(w.c)
	return w.FS.GetAttr(ctx, h, want)
}

// TestCallers: a caller is who it is, and the program itself is nobody.
func TestCallers(t *testing.T) {
	below := asked{memfs.New(memfs.Options{}), new(atomic.Pointer[vfs.Caller])}
	f := over(t, below, upstream.Options{})
	h, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ann := &vfs.Caller{UID: 1000, GID: 1001, Groups: []uint32{7}}
	for want, view := range map[*vfs.Caller]vfs.FS{ann: f.As(ann), {UID: 65534, GID: 65534}: f.As(nil), {UID: 65534, GID: 65534, Groups: nil}: f} {
		if _, err := view.GetAttr(t.Context(), h, vfs.MaskV3); err != nil || !below.as.Load().Equal(want) {
			t.Errorf("asked as %+v, want %+v (%v)", below.as.Load(), want, err)
		}
	}
}

// opens counts how often files are opened and closed.
type opens struct {
	vfs.FS
	opened, closed *atomic.Int32
}

func (o opens) As(c *vfs.Caller) vfs.FS { return opens{o.FS.As(c), o.opened, o.closed} }

func (o opens) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, opened, err := o.FS.Open(ctx, at, how)
	if err == nil {
		o.opened.Add(1)
		f = &counted{f, o.closed}
	}
	return f, opened, err
}

type counted struct {
	vfs.File
	closed *atomic.Int32
}

func (c *counted) Close(ctx context.Context) error {
	c.closed.Add(1)
	return c.File.Close(ctx)
}

// TestKept: READs share an open, until other attributes pass or a moment has gone by; each caller has its own.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := opens{memfs.New(memfs.Options{Mode: 0o777}), new(atomic.Int32), new(atomic.Int32)}
		f := upstream.New(upstream.Options{Probe: probe(), Keep: true, Dial: func(context.Context) (vfs.FS, error) { return below, nil }})
		if err := f.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		ann, ben := f.As(&vfs.Caller{UID: 1}), f.As(&vfs.Caller{UID: 2})
		dir, _, err := ann.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h, _, _, err := ann.Create(t.Context(), dir, "f", &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o666}})
		if err != nil {
			t.Fatal(err)
		}
		read := func(who vfs.FS) {
			t.Helper()
			file, _, err := who.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := file.ReadAt(t.Context(), make([]byte, 8), 0, nil); err != nil {
				t.Error(err)
			}
			if err := file.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := file.Close(t.Context()); !errors.Is(err, vfs.ErrInval) {
				t.Errorf("closed twice: %v", err)
			}
		}
		expect := func(opened, closed int32) {
			t.Helper()
			if o, c := below.opened.Load(), below.closed.Load(); o != opened || c != closed {
				t.Errorf("%d files opened, %d closed; want %d, %d", o, c, opened, closed)
			}
		}
		read(ann)
		read(ann)
		expect(1, 0)
		read(ben)
		expect(2, 0)
		if _, err := ann.GetAttr(t.Context(), h, vfs.MaskV3); err != nil { // the same as before
			t.Fatal(err)
		}
		read(ann)
		expect(2, 0)
		time.Sleep(time.Second)
		if _, err := below.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 3}, nil); err != nil { // by somebody else
			t.Fatal(err)
		}
		if _, err := ben.GetAttr(t.Context(), h, vfs.MaskV3); err != nil {
			t.Fatal(err)
		}
		expect(2, 2)
		read(ann)
		expect(3, 2)
		time.Sleep(time.Minute)
		expect(3, 3)
		read(ann)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		expect(4, 4)
	})
}

// TestFSIDs: two servers with the same number of a file system have two here, and one has the same in every reply.
func TestFSIDs(t *testing.T) {
	a, b := over(t, memfs.New(memfs.Options{Mode: 0o777}), upstream.Options{FSID: 1}), over(t, memfs.New(memfs.Options{}), upstream.Options{FSID: 2})
	h, of, err := a.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := b.Root(t.Context())
	if err != nil || of.FSID == other.FSID {
		t.Errorf("%v and %v, %v", of.FSID, other.FSID, err)
	}
	_, made, wcc, err := a.Create(t.Context(), h, "d", &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o777}})
	if err != nil || made.Has(vfs.MaskFSID) && made.FSID != of.FSID || wcc.After.Has(vfs.MaskFSID) && wcc.After.FSID != of.FSID {
		t.Errorf("%v, in %v, is made in %v: %v", made.FSID, wcc.After.FSID, of.FSID, err)
	}
	for e, err := range a.ReadDir(t.Context(), h, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil || e.Attr.FSID != of.FSID {
			t.Errorf("%s: %v, %v", e.Name, e.Attr.FSID, err)
		}
	}
}
