package client

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/export/exporttest"
	"github.com/nfsbox/nfsbox/internal/server/upstream"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// standIn is a server that stands for another one.
type standIn struct {
	*server
	up   atomic.Pointer[nfsbox.Client] // its client of the other
	kept *upstream.FS
}

// clientFS is the file system of a client, which ends with it.
type clientFS struct {
	vfs.FS
	c *nfsbox.Client
}

func (x *clientFS) Unwrap() any  { return x.FS }
func (x *clientFS) Close() error { return x.c.Close() }

// standInFor makes a server that stands for the one at addr; cache is a directory, or "". rule is that of its export.
func standInFor(t *testing.T, addr, cache string, p nfsbox.Proxy, rules ...export.Rule) *standIn {
	t.Helper()
	r := &standIn{}
	o := []nfsbox.Option{nfsbox.WithCaller(vfs.Caller{UID: export.Nobody, GID: export.Nobody}), nfsbox.WithLocalIO(nfsbox.LocalIOOff), nfsbox.WithProxy(p)}
	if cache != "" {
		o = append(o, nfsbox.WithCache(cache))
	}
	r.kept = upstream.New(upstream.Options{
		Name: "nfs://" + addr + "/", Probe: upstream.NewProbe(func(p []byte) { clear(p) }), MaxHandle: export.MaxInner, Keep: cache != "", FSID: 7,
		Dial: func(ctx context.Context) (vfs.FS, error) {
			c, err := nfsbox.Dial(ctx, "nfs://"+addr+"/", o...)
			if err != nil {
				return nil, err
			}
			r.up.Store(c)
			return &clientFS{c.Direct(), c}, nil
		},
	})
	if err := r.kept.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.kept.Close(); err != nil {
			t.Error(err)
		}
	})
	r.server = start(t, export.Export{Path: "/", FS: r.kept, Clients: rules})
	return r
}

// TestProxySuite runs the suite over a client of a proxy, without and with a cache: what a second server on the way could
// spoil, and with NFSBOX_SOAK all of it.
func TestProxySuite(t *testing.T) {
	need.Time(t, "the suite through two servers")
	for name, groups := range map[string][]string{
		"plain": {
			"getattr", "setattr", "access", "lookup", "readlink", "create", "mkdir", "symlink", "mknod", "link", "remove", "rename",
			"write", "commit", "info", "handle", "names", "identity", "lock",
		},
		"cached": {"read", "open", "truncate", "commit"},
	} {
		if os.Getenv("NFSBOX_SOAK") != "" {
			groups = nil
		}
		t.Run(name, func(t *testing.T) {
			vfstest.Run(t, vfstest.Config{
				Callers: true, Groups: groups,
				New: func(t *testing.T) vfs.FS {
					s := start(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o755})})
					dir := ""
					if name == "cached" {
						dir = cacheDir(t)
					}
					r := standInFor(t, s.addr, dir, nfsbox.Proxy{Answer: time.Minute})
					return dial(t, "nfs://"+r.addr+"/").FS()
				},
			})
		})
	}
}

// TestProxyRights is the matrix of rights through a proxy, by whose rule callers are squashed, with and without a cache.
func TestProxyRights(t *testing.T) {
	for name, cached := range map[string]bool{"plain": false, "cached": true} {
		t.Run(name, func(t *testing.T) {
			exporttest.Rights(t, exporttest.Config{Override: true, Every: 307, New: func(t *testing.T, rule export.Rule) exporttest.Place {
				mem := memfs.New(memfs.Options{Mode: 0o755})
				s := start(t, export.Export{Path: "/", FS: mem})
				dir := ""
				if cached {
					dir = cacheDir(t)
				}
				c := dial(t, "nfs://"+standInFor(t, s.addr, dir, nfsbox.Proxy{Answer: time.Minute}, rule).addr+"/")
				return exporttest.Place{Below: mem, As: func(who *vfs.Caller) vfs.FS {
					return openingThrough{c.FS().As(who), rule.ReadOnly}
				}}
			}})
		})
	}
}

// openingThrough refuses to open for both reading and writing what is read-only, as the
// matrix expects it: NFSv3 opens nothing, and tells at the first write.
type openingThrough struct {
	vfs.FS
	readOnly bool
}

func (o openingThrough) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if o.readOnly && how.Access == vfs.ShareRead|vfs.ShareWrite {
		return nil, vfs.Opened{}, vfs.ErrROFS
	}
	return o.FS.Open(ctx, at, how)
}

// TestProxyCaches: what one client has read costs the other server no READ, each user is judged there, and what another
// client of the other server has closed is read by the next that opens it.
func TestProxyCaches(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o755, Now: past})
	want := bytes.Repeat([]byte("content "), 100_000)
	h := putCached(t, mem, "f", 0o600, want)
	if _, err := mem.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskUID, UID: 1000}, nil); err != nil {
		t.Fatal(err)
	}
	s := start(t, export.Export{Path: "/", FS: mem})
	r := standInFor(t, s.addr, cacheDir(t), nfsbox.Proxy{Answer: time.Minute})
	ann, ben := vfs.Caller{UID: 1000, GID: 1000}, vfs.Caller{UID: 1001, GID: 1001}
	for run := range 3 {
		c := dial(t, "nfs://"+r.addr+"/")
		before := readsOf(r.up.Load())
		if got, err := getCached(t, c.FS().As(&ann), "f", len(want)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("run %d: %d bytes, %v", run, len(got), err)
		}
		if n := readsOf(r.up.Load()) - before; n == 0 != (run > 0) {
			t.Errorf("run %d: %d READs", run, n)
		}
		if _, err := getCached(t, c.FS().As(&ben), "f", 100); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("another user: %v", err)
		}
	}
	fresh := bytes.Repeat([]byte("another "), 100_000)
	other := dial(t, "nfs://"+s.addr+"/")
	putCached(t, other.FS().As(&ann), "f", 0o600, fresh)
	if got, err := getCached(t, dial(t, "nfs://"+r.addr+"/").FS().As(&ann), "f", len(fresh)); err != nil || !bytes.Equal(got, fresh) {
		t.Errorf("what was closed before is not there: %d bytes, %v", len(got), err)
	}
}

// TestProxyOffline: while the other server is away a user reads on what the cache has, and others do not; nothing is
// written. When it is back all goes on, by the same handles.
func TestProxyOffline(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o755, Now: past})
	want := bytes.Repeat([]byte("content "), 50_000)
	putCached(t, mem, "f", 0o644, want)
	s := start(t, export.Export{Path: "/", FS: mem})
	r := standInFor(t, s.addr, cacheDir(t), nfsbox.Proxy{Offline: time.Hour})
	c := dial(t, "nfs://"+r.addr+"/")
	who, other := &vfs.Caller{UID: 1000, GID: 1000}, &vfs.Caller{UID: 1001, GID: 1001}
	reads := func(when string, as *vfs.Caller) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			got, err := getCached(t, c.FS().As(as), "f", len(want))
			if err == nil && bytes.Equal(got, want) {
				return
			}
			if err != nil && !errors.Is(err, vfs.ErrBusy) || time.Now().After(end) {
				t.Fatalf("%s: %d bytes, %v", when, len(got), err)
			}
		}
	}
	reads("at first", who)
	if err := s.srv.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-s.done; !errors.Is(err, nfsserver.ErrClosed) {
		t.Error(err)
	}
	reads("while it is away", who)
	// Straight from what the proxy exports: a client would come again and again.
	for what, err := range map[string]error{
		"another user": func() error { _, err := getCached(t, r.kept.As(other), "f", len(want)); return err }(),
		"a change":     func() error { return mkdirIn(t, r.kept.As(who), "d") }(),
	} {
		if !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.begin()
	reads("when it is back", other)
}

func mkdirIn(t *testing.T, fs vfs.FS, name string) error {
	t.Helper()
	root, _, err := fs.Root(t.Context())
	if err != nil {
		return err
	}
	_, _, _, err = fs.Create(t.Context(), root, name, &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}})
	return err
}

// TestProxyLocks: a lock that a client of the proxy has holds against other clients of the proxy, and against those of the
// other server.
func TestProxyLocks(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	putCached(t, mem, "f", 0o666, []byte("x"))
	s := start(t, export.Export{Path: "/", FS: mem})
	r := standInFor(t, s.addr, "", nfsbox.Proxy{Answer: time.Minute})
	locker := func(addr string) (vfs.Locker, vfs.Handle) {
		fs := dial(t, "nfs://"+addr+"/").FS()
		root, _, err := fs.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h, _, _, err := fs.Lookup(t.Context(), root, "f")
		if err != nil {
			t.Fatal(err)
		}
		return vfs.LockerOf(fs), h
	}
	a, ha := locker(r.addr)
	b, hb := locker(r.addr)
	far, hf := locker(s.addr)
	l := vfs.Lock{Owner: vfs.Owner{Client: "a"}, Exclusive: true, Off: 10, Len: 5}
	if err := a.Lock(t.Context(), ha, &l); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"another client of the proxy":     b.Lock(t.Context(), hb, &vfs.Lock{Owner: vfs.Owner{Client: "b"}, Exclusive: true}),
		"a client of the other server":    far.Lock(t.Context(), hf, &vfs.Lock{Owner: vfs.Owner{Client: "f"}}),
		"another range, by another owner": b.Lock(t.Context(), hb, &vfs.Lock{Owner: vfs.Owner{Client: "b"}, Exclusive: true, Off: 14, Len: 1}),
	} {
		if !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := a.Unlock(t.Context(), ha, &l); err != nil {
		t.Error(err)
	}
	if err := far.Lock(t.Context(), hf, &vfs.Lock{Owner: vfs.Owner{Client: "f"}, Exclusive: true}); err != nil {
		t.Errorf("what is unlocked: %v", err)
	}
	if err := b.Lock(t.Context(), hb, &vfs.Lock{Owner: vfs.Owner{Client: "b"}}); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("what the other server's client has: %v", err)
	}
	if err := far.Unlock(t.Context(), hf, &vfs.Lock{Owner: vfs.Owner{Client: "f"}}); err != nil {
		t.Error(err)
	}
}

// TestProxyLocksOverRestart: when the other server has restarted, the proxy has its clients' locks back, and they know nothing
// of it.
func TestProxyLocksOverRestart(t *testing.T) {
	t.Parallel() // it waits
	mem := memfs.New(memfs.Options{Mode: 0o777})
	putCached(t, mem, "f", 0o666, []byte("x"))
	s := &server{t: t, addr: "127.0.0.1:0"}
	s.export(export.Export{Path: "/", FS: mem})
	s.opt.Grace, s.opt.LockStateDir = time.Hour, t.TempDir()
	s.begin()
	t.Cleanup(s.end)
	r := standInFor(t, s.addr, "", nfsbox.Proxy{Answer: time.Minute})
	c := dial(t, "nfs://"+r.addr+"/")
	f := openFile(t, treeOf(t, c), "f")
	if err := f.Lock(); err != nil {
		t.Fatal(err)
	}
	s.end()
	s.begin()
	if n := s.srv.Stats().Locks.Locks; n != 0 {
		t.Fatalf("%d locks behind the restart", n)
	}
	root, _, err := r.kept.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, _, _, err := r.kept.Lookup(t.Context(), root, "f")
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); s.srv.Stats().Locks.Locks == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		// A call by which the broken connection is found sooner than by the proxy's own look.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, _, _ = vfs.LockerOf(r.kept).TestLock(ctx, h, &vfs.Lock{Exclusive: true}) // in a grace, and no more than a call
		cancel()
	}
	if st := s.srv.Stats().Locks; st.Locks != 1 || !st.Grace {
		t.Errorf("the server has %+v", st)
	}
	if err := errors.Join(f.Unlock(), f.Close()); err != nil {
		t.Error(err)
	}
	if st := r.up.Load().Stats().Locks; st.Reclaimed == 0 || st.Lost != 0 || st.Locks != 0 {
		t.Errorf("%+v", st)
	}
}

func treeOf(t *testing.T, c *nfsbox.Client) *iofs.FS {
	t.Helper()
	of, err := c.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// TestProxyACL: access control lists that are set through the proxy are the other server's, and rights go by them.
func TestProxyACL(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o755, Now: past})
	h := putCached(t, mem, "f", 0o600, []byte("content"))
	s := start(t, export.Export{Path: "/", FS: mem})
	r := standInFor(t, s.addr, cacheDir(t), nfsbox.Proxy{Answer: time.Minute})
	c := dial(t, "nfs://"+r.addr+"/")
	ann := c.FS().As(&vfs.Caller{UID: 1000, GID: 1000})
	near, _, _, err := c.FS().Lookup(t.Context(), rootOf(t, c.FS()), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := getCached(t, ann, "f", 100); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("before the list: %v", err)
	}
	power, ok := vfs.As[nfsbox.ACLer](c.FS())
	if !ok {
		t.Fatal("no power")
	}
	want := []nfsbox.ACLEntry{
		{Tag: nfsbox.ACLUserObj, Perm: 6}, {Tag: nfsbox.ACLUser, ID: 1000, Perm: 4}, {Tag: nfsbox.ACLGroupObj}, {Tag: nfsbox.ACLMask, Perm: 4}, {Tag: nfsbox.ACLOther},
	}
	if err := power.SetACL(t.Context(), near, nfsbox.ACL{Access: want}); err != nil {
		t.Fatal(err)
	}
	for where, ask := range map[string]func() (nfsbox.ACL, error){
		"at the server":     func() (nfsbox.ACL, error) { return mem.ACL(t.Context(), h) },
		"through the proxy": func() (nfsbox.ACL, error) { return power.ACL(t.Context(), near) },
	} {
		acl, err := ask()
		if err != nil {
			t.Error(where, err)
		}
		for _, e := range want {
			if !slices.Contains(acl.Access, e) {
				t.Errorf("%s: %+v is not among %+v", where, e, acl.Access)
			}
		}
	}
	if got, err := getCached(t, ann, "f", 100); err != nil || string(got) != "content" {
		t.Errorf("whom the list lets in: %q, %v", got, err)
	}
}
