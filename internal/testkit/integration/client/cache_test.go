package client

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// cacheDir makes a directory for a cache.
func cacheDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // A directory.
		t.Fatal(err)
	}
	return dir
}

// TestSuiteCache runs the suite over the whole way, with a cache.
func TestSuiteCache(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		Callers: true,
		New: func(t *testing.T) vfs.FS {
			s := start(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o755})})
			return dial(t, "nfs://"+s.addr+"/?fsc", nfsbox.WithCache(cacheDir(t))).FS()
		},
	})
}

// past is a clock that is behind: what is made by it has long been there.
func past() time.Time { return time.Now().Add(-time.Hour) }

// putCached writes a file of the server's.
func putCached(t *testing.T, fs vfs.FS, name string, mode uint32, data []byte) vfs.Handle {
	t.Helper()
	root, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, o, err := fs.Open(t.Context(), vfs.At{Dir: root, Name: name}, &vfs.OpenHow{Access: vfs.ShareWrite, Create: &vfs.CreateHow{
		Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(t.Context(), f, data, 0, vfs.FileSync, &w); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o.H
}

// getCached reads a file through a client, as a caller.
func getCached(t *testing.T, fs vfs.FS, name string, size int) ([]byte, error) {
	t.Helper()
	root, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := fs.Open(t.Context(), vfs.At{Dir: root, Name: name}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return nil, err
	}
	p := make([]byte, size+1)
	n, eof, err := vfs.ReadFull(t.Context(), f, p, 0)
	if err == nil && !eof {
		t.Errorf("%s: no end after %d bytes", name, n)
	}
	return p[:n], errors.Join(err, f.Close(t.Context()))
}

// readsOf are the READs that a client has sent.
func readsOf(c *nfsbox.Client) (n uint64) {
	s := c.Stats()
	for i := range s.Procs {
		if s.Procs[i].Name == "READ" {
			n += s.Procs[i].Calls
		}
	}
	return n
}

// TestCacheSurvives: what one client has read, the next one reads without a READ. One that comes while the
// first is there goes without, and says so.
func TestCacheSurvives(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o755, Now: past})
	want := bytes.Repeat([]byte("content "), 300_000)
	putCached(t, mem, "f", 0o644, want)
	s := start(t, export.Export{Path: "/", FS: mem})
	dir := cacheDir(t)
	open := func(opts ...nfsbox.Option) *nfsbox.Client {
		t.Helper()
		opts = append([]nfsbox.Option{nfsbox.WithCaller(vfs.Caller{}), nfsbox.WithLocalIO(nfsbox.LocalIOOff)}, opts...)
		c, err := nfsbox.Dial(t.Context(), "nfs://"+s.addr+"/?cache="+dir, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for run := range 3 {
		c := open()
		if got, err := getCached(t, c.FS(), "f", len(want)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("run %d: %d bytes, %v", run, len(got), err)
		}
		if n := readsOf(c); n == 0 != (run > 0) {
			t.Errorf("run %d: %d READs", run, n)
		}
		if st := c.Stats().Cache; st.State != "on" || st.Entries != 1 || run > 0 && st.Hits == 0 {
			t.Errorf("run %d: %+v", run, st)
		}
		var notes []string
		other := open(nfsbox.WithCacheNotes(func(n string) { notes = append(notes, n) }))
		if got, err := getCached(t, other.FS(), "f", len(want)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("without the cache: %d bytes, %v", len(got), err)
		}
		if len(notes) != 1 || !strings.Contains(notes[0], "in use by another process") || other.Stats().Cache.State != "off" {
			t.Errorf("notes %q, %+v", notes, other.Stats().Cache)
		}
		if err := errors.Join(other.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCacheRights: what one user has read, another one gets only if the server lets it.
func TestCacheRights(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o755, Now: past})
	data := []byte("for ann alone")
	h := putCached(t, mem, "f", 0o600, data)
	if _, err := mem.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskUID, UID: 1000}, nil); err != nil {
		t.Fatal(err)
	}
	s := start(t, export.Export{Path: "/", FS: mem})
	c := dial(t, "nfs://"+s.addr+"/", nfsbox.WithCache(cacheDir(t)))
	ann, ben := c.FS().As(&vfs.Caller{UID: 1000, GID: 1000}), c.FS().As(&vfs.Caller{UID: 1001, GID: 1001})
	for range 2 {
		if got, err := getCached(t, ann, "f", 100); err != nil || !bytes.Equal(got, data) {
			t.Errorf("its owner: %q, %v", got, err)
		}
		if got, err := getCached(t, ben, "f", 100); !errors.Is(err, vfs.ErrAccess) || len(got) != 0 {
			t.Errorf("another user: %q, %v", got, err)
		}
	}
	if st := c.Stats().Cache; st.Hits == 0 {
		t.Errorf("%+v: nothing came from the cache", st)
	}
	if _, err := mem.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := getCached(t, ben, "f", 100); err != nil || !bytes.Equal(got, data) {
		t.Errorf("another user, who may: %q, %v", got, err)
	}
}

// TestCacheRefused: a directory that will not do is an error of Dial, in words, before any server is asked.
func TestCacheRefused(t *testing.T) {
	open := cacheDir(t)
	if err := os.Chmod(open, 0o777); err != nil { //nolint:gosec // That is what is refused.
		t.Fatal(err)
	}
	config := cacheDir(t) + "/conf"
	if err := os.WriteFile(config, []byte("dir /c\nbrun 5%\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		opt  nfsbox.Option
		want string
	}{
		{nfsbox.WithCache(open + "/gone"), "gone: it does not exist; make it"},
		{nfsbox.WithCache(open), "others may write to it"},
		{nfsbox.WithCacheConfig(config), config + ":2: bstop"},
		{nfsbox.WithCache("relative"), "an absolute path"},
		{nfsbox.WithCacheMark(strings.Repeat("x", 65)), "up to 64 bytes"},
	} {
		_, err := nfsbox.Dial(t.Context(), "nfs://192.0.2.1/?fsc", tt.opt)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// TestCacheHits: small reads that come a second time cost no READ, and each of them counts as a hit, in a file that
// others may have read ahead of.
func TestCacheHits(t *testing.T) {
	const step, n = 4 << 10, 64
	mem := memfs.New(memfs.Options{Mode: 0o755, Now: past})
	want := bytes.Repeat([]byte("content!"), n*step/8)
	putCached(t, mem, "f", 0o644, want)
	s := start(t, export.Export{Path: "/", FS: mem})
	c := dial(t, "nfs://"+s.addr+"/?readahead=0", nfsbox.WithCache(cacheDir(t)))
	read := func() {
		t.Helper()
		f, _, err := c.FS().Open(t.Context(), vfs.At{Dir: rootOf(t, c.FS()), Name: "f"}, &vfs.OpenHow{Access: vfs.ShareRead})
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, step)
		for i := range n {
			got, _, err := f.ReadAt(t.Context(), p, uint64(i*step), nil)
			if err != nil || !bytes.Equal(p[:got], want[i*step:(i+1)*step]) {
				t.Fatalf("at %d: %d bytes, %v", i*step, got, err)
			}
		}
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read()
	reads, before := readsOf(c), c.Stats().Cache
	read()
	if more := readsOf(c) - reads; more != 0 {
		t.Errorf("the second time took %d READs", more)
	}
	st := c.Stats().Cache
	if hits, misses := st.Hits-before.Hits, st.Misses-before.Misses; hits != n || misses != 0 || st.BytesHit-before.BytesHit != n*step {
		t.Errorf("of %d reads %d hits, %d misses: %+v", n, hits, misses, st)
	}
}

// TestLockReadsAnew: with a lock its holder reads what was unlocked before, also by a file that was opened for reading alone, past
// what is cached of it and what was read ahead.
func TestLockReadsAnew(t *testing.T) {
	const size = 2 << 20
	old, fresh := bytes.Repeat([]byte("before, "), size/8), bytes.Repeat([]byte("and now "), size/8)
	for name, cached := range map[string]bool{"cached": true, "read ahead": false} {
		t.Run(name, func(t *testing.T) {
			var opts []nfsbox.Option
			until := size / 2 // in sequence, so that more is read ahead
			if cached {
				until, opts = size, []nfsbox.Option{nfsbox.WithCache(cacheDir(t))}
			}
			mem := memfs.New(memfs.Options{Mode: 0o755, Now: past})
			putCached(t, mem, "f", 0o644, old)
			s := start(t, export.Export{Path: "/", FS: mem})
			fs, other := dial(t, "nfs://"+s.addr+"/?actimeo=600", opts...).FS(), dial(t, "nfs://"+s.addr+"/").FS()
			f, o, err := fs.Open(t.Context(), vfs.At{Dir: rootOf(t, fs), Name: "f"}, &vfs.OpenHow{Access: vfs.ShareRead})
			if err != nil {
				t.Fatal(err)
			}
			p := make([]byte, 64<<10)
			for off := 0; off < until; off += len(p) {
				if n, _, err := f.ReadAt(t.Context(), p, uint64(off), nil); err != nil || !bytes.Equal(p[:n], old[off:off+n]) {
					t.Fatalf("at %d: %d bytes, %v", off, n, err)
				}
			}
			putCached(t, other, "f", 0o644, fresh)
			l := &vfs.Lock{Owner: vfs.Owner{Client: "reader"}}
			if err := vfs.LockerOf(fs).Lock(t.Context(), o.H, l); err != nil {
				t.Fatal(err)
			}
			for off := size / 2; off < size; off += len(p) { // where the reader was
				if n, _, err := f.ReadAt(t.Context(), p, uint64(off), nil); err != nil || !bytes.Equal(p[:n], fresh[off:off+n]) {
					t.Fatalf("at %d: %d bytes that are not those of before the lock, %v", off, n, err)
				}
			}
			all := make([]byte, size)
			if n, _, err := vfs.ReadFull(t.Context(), f, all, 0); err != nil || !bytes.Equal(all[:n], fresh) {
				t.Errorf("under the lock there are %d bytes that are not those of before it, %v", n, err)
			}
			if a, err := fs.GetAttr(t.Context(), o.H, vfs.MaskSize); err != nil || a.Size != uint64(len(fresh)) {
				t.Errorf("size %d, %v", a.Size, err)
			}
			if err := errors.Join(vfs.LockerOf(fs).Unlock(t.Context(), o.H, l), f.Close(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
}
