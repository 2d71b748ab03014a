package backup

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// bed is a tree in memory, its clock, and a store.
type bed struct {
	t     testing.TB
	clock sync.Mutex // guards now where faults change it
	now   time.Time
	fs    *memfs.FS
	root  vfs.Handle
	store object.Store
	fault func(ctx context.Context, op string, h vfs.Handle) error
	calls map[string]*atomic.Int64
}

func newBed(t testing.TB) *bed {
	b := &bed{t: t, now: time.Unix(1_700_000_000, 0), store: object.NewMemory(object.MemoryOptions{}), calls: make(map[string]*atomic.Int64)}
	for _, op := range []string{"read", "lookup", "getattr", "readdir", "open", "acl", "xattrs", "readlink"} {
		b.calls[op] = new(atomic.Int64)
	}
	b.fs = memfs.New(memfs.Options{Now: b.time, Fault: func(ctx context.Context, op string, h vfs.Handle) error {
		if n := b.calls[op]; n != nil {
			n.Add(1)
		}
		if b.fault != nil {
			return b.fault(ctx, op, h)
		}
		return nil
	}})
	var err error
	if b.root, _, err = b.fs.Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// time says what time it is.
func (b *bed) time() time.Time { return b.after(0) }

// after lets a while pass. Faults, which are called at any time, change the clock by it.
func (b *bed) after(d time.Duration) time.Time {
	b.clock.Lock()
	defer b.clock.Unlock()
	b.now = b.now.Add(d)
	return b.now
}

func (b *bed) create(dir vfs.Handle, name string, how vfs.CreateHow) vfs.Handle {
	b.t.Helper()
	how.Set.Valid, how.Set.Mode = how.Set.Valid|vfs.MaskMode, 0o755
	h, _, _, err := b.fs.Create(b.t.Context(), dir, name, &how)
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

func (b *bed) file(dir vfs.Handle, name, content string) vfs.Handle {
	b.t.Helper()
	h := b.create(dir, name, vfs.CreateHow{Type: vfs.TypeReg})
	b.write(h, 0, content)
	return h
}

func (b *bed) write(h vfs.Handle, off uint64, content string) {
	b.t.Helper()
	f, _, err := b.fs.Open(b.t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		b.t.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(b.t.Context(), f, []byte(content), off, vfs.FileSync, &w); err != nil {
		b.t.Fatal(err)
	}
	if err := f.Close(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// options are those of a backup a minute later, on top of what there is.
func (b *bed) options() Options {
	b.t.Helper()
	b.now = b.now.Add(time.Minute)
	o := Options{FS: b.fs, Root: b.root, Store: b.store, Meta: snapshot.Meta{Name: "t"}, Now: b.time}
	var err error
	if o.Base, err = Latest(b.t.Context(), b.store, "t", nil); err == nil {
		o.Partial, err = Partial(b.t.Context(), b.store, "t", o.Base, nil)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return o
}

// backup takes a snapshot, and opens it.
func (b *bed) backup() (Summary, *snapshot.Snapshot) {
	b.t.Helper()
	return b.run(b.options())
}

// run takes a snapshot, and opens it.
func (b *bed) run(o Options) (Summary, *snapshot.Snapshot) {
	b.t.Helper()
	sum, err := Run(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	ref, err := snapshot.Find(b.t.Context(), b.store, sum.Snapshot)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := snapshot.Open(b.t.Context(), b.store, ref)
	if err != nil {
		b.t.Fatal(err)
	}
	return sum, s
}

// verify compares a snapshot with the tree, and says how much differs.
func (b *bed) verify(s *snapshot.Snapshot) (different uint64) {
	b.t.Helper()
	root, _, err := s.FS().Root(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	sum, err := job.Verify(b.t.Context(), job.VerifyOptions{
		Source: job.Place{FS: b.fs, Handle: b.root}, Dest: job.Place{FS: s.FS(), Handle: root},
		Pool: &bufpool.Pool{}, Now: time.Now, Owner: true, ACLs: true,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return sum.Differences + sum.Errors
}

func (b *bed) wantSame(s *snapshot.Snapshot) {
	b.t.Helper()
	if n := b.verify(s); n != 0 {
		b.t.Errorf("%d differences", n)
	}
}

// TestBackup takes snapshots of a tree that changes, and wants each to be what the tree was, and nothing to
// be read that has not changed.
func TestBackup(t *testing.T) {
	b := newBed(t)
	var files []vfs.Handle
	for i := range 5 {
		d := b.create(b.root, fmt.Sprintf("d%d", i), vfs.CreateHow{Type: vfs.TypeDir})
		for j := range 20 {
			files = append(files, b.file(d, fmt.Sprintf("f%d\xff", j), strings.Repeat(fmt.Sprint(i, j), 500)))
		}
		b.create(d, "link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "nowhere"})
		b.create(d, "fifo", vfs.CreateHow{Type: vfs.TypeFIFO})
	}
	sparse := b.file(b.root, "sparse", "begin")
	b.write(sparse, 10<<20, "end")
	if _, _, err := b.fs.Link(t.Context(), files[0], b.root, "second"); err != nil {
		t.Fatal(err)
	}
	first, s := b.backup()
	b.wantSame(s)
	if !first.Complete || first.Base != "" || first.Files != 102 || first.Dirs != 6 || first.Symlinks != 5 || first.Nodes != 5 ||
		first.Read != 101 || !maps.Equal(first.Why, map[string]uint64{"new": 102}) || first.ReadBytes > 400_000 {
		t.Errorf("%+v", first)
	}

	for _, n := range b.calls {
		n.Store(0)
	}
	second, s2 := b.backup()
	reads, looks, stored := b.calls["read"].Load()+b.calls["lookup"].Load(), b.calls["getattr"].Load(), second.Stored
	b.wantSame(s2)
	if second.Base != first.Snapshot || second.Read != 0 || reads != 0 || looks > 12 || stored > 20_000 || !second.Complete {
		t.Errorf("%+v, with %d reads and look-ups, %d GETATTR", second, reads, looks)
	}

	b.write(files[7], 3, "changed")
	if _, err := b.fs.SetAttr(t.Context(), files[8], &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.fs.Remove(t.Context(), b.root, "second", false); err != nil {
		t.Fatal(err)
	}
	b.file(b.root, "new", "new")
	third, s3 := b.backup()
	b.wantSame(s3)
	if want := map[string]uint64{"new": 1, "mtime": 1, "ctime": 2}; !maps.Equal(third.Why, want) || third.Read != 4 {
		t.Errorf("%+v", third)
	}
	if b.verify(s) == 0 {
		t.Error("the first snapshot is what the tree is now")
	}
}

// TestRecent wants a file to be read again whose times are those of the earlier backup.
func TestRecent(t *testing.T) {
	b := newBed(t)
	tick := b.now.Add(time.Minute)
	b.now = tick
	h := b.file(b.root, "f", "1")
	b.now = tick.Add(-time.Minute)
	b.backup() // begins at tick
	b.now = tick
	b.write(h, 0, "2") // leaves no trace in the times
	sum, s := b.backup()
	b.wantSame(s)
	if sum.Why["recent"] != 1 {
		t.Errorf("%+v", sum)
	}
}

// TestFuture wants a file of which the mtime was set to years ahead not to be read for ever: its ctime says that it has not changed. Where
// ctime does not count it is read, as the clock of a server may be ahead.
func TestFuture(t *testing.T) {
	b := newBed(t)
	h := b.file(b.root, "f", "content")
	ahead := b.now.AddDate(4, 0, 0)
	if _, err := b.fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: ahead}, nil); err != nil {
		t.Fatal(err)
	}
	b.backup()
	sum, s := b.backup()
	b.wantSame(s)
	if sum.Read != 0 || len(sum.Why) != 0 {
		t.Errorf("%+v", sum)
	}
	o := b.options()
	o.Change = Size | Mtime
	if sum, _ = b.run(o); sum.Why["recent"] != 1 {
		t.Errorf("without ctime: %+v", sum)
	}
	b.now = ahead
	b.write(h, 0, "another")
	b.now = b.now.AddDate(-4, 0, 1)
	sum, s = b.backup() // of a server whose clock is ahead
	b.wantSame(s)
	if sum, s = b.backup(); sum.Why["recent"] != 1 {
		t.Errorf("a clock that is ahead: %+v", sum)
	}
	b.wantSame(s)
}

// TestFailed wants an item that fails to make the snapshot incomplete, and never the base of the next.
func TestFailed(t *testing.T) {
	b := newBed(t)
	bad := b.file(b.root, "bad", "bad")
	b.file(b.root, "good", "good")
	gone := b.file(b.root, "gone", "gone")
	b.fault = func(_ context.Context, op string, h vfs.Handle) error {
		switch {
		case op == "read" && h == bad:
			return vfs.ErrIO
		case op == "read" && h == gone:
			return vfs.ErrStale
		}
		return nil
	}
	sum, s := b.backup()
	if sum.Complete || s.Ref().Complete || sum.Errors != 1 || sum.Vanished != 1 || sum.Files != 1 {
		t.Errorf("%+v", sum)
	}
	b.fault = nil
	sum, s = b.backup()
	b.wantSame(s)
	// The incomplete one is no base, but what it has read is not read again.
	if !sum.Complete || sum.Base != "" || sum.Read != 2 || sum.Resumed != 1 || sum.Partial {
		t.Errorf("%+v", sum)
	}
}

// TestChanging wants a file that changes whenever it is read to be kept and marked, and to be read again the
// next time, although nothing has changed since.
func TestChanging(t *testing.T) {
	b := newBed(t)
	h := b.file(b.root, "log", "0")
	n := uint64(0)
	var inside atomic.Bool
	b.fault = func(_ context.Context, op string, at vfs.Handle) error {
		if op == "read" && at == h && inside.CompareAndSwap(false, true) {
			n++
			b.write(h, n, "x")
			inside.Store(false)
		}
		return nil
	}
	sum, s := b.backup()
	b.fault = nil
	if sum.Changed != 1 || sum.Read != 2 || !sum.Complete {
		t.Errorf("%+v", sum)
	}
	e, err := s.Entry(t.Context(), lookup(t, s, "log"))
	if err != nil || !e.Changed {
		t.Errorf("%+v: %v", e, err)
	}
	sum, s = b.backup()
	b.wantSame(s)
	if sum.Changed != 0 || sum.Read != 1 {
		t.Errorf("%+v", sum)
	}
}

func lookup(t *testing.T, s *snapshot.Snapshot, name string) vfs.Handle {
	t.Helper()
	root, _, err := s.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, _, _, err := s.FS().Lookup(t.Context(), root, name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// blind hides what a file knows of its holes, as NFSv3 does.
type blind struct{ vfs.File }

// TestZeros wants blocks of zeros to be holes where nothing tells of them.
func TestZeros(t *testing.T) {
	b := newBed(t)
	h := b.file(b.root, "sparse", "begin")
	for _, off := range []uint64{zeroBlock * 3, readSize - 1, readSize * 2, readSize*3 - 5} {
		b.write(h, off, "data")
	}
	f, o, err := b.fs.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close(t.Context()) //nolint:errcheck // nothing was written
	a, err := b.fs.GetAttr(t.Context(), o.H, vfs.MaskV3)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, a.Size)
	if _, _, err := vfs.ReadFull(t.Context(), f, want, 0); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*stream{
		"zeros": {ctx: t.Context(), f: blind{f}, size: a.Size, zeros: true},
		"told":  {ctx: t.Context(), f: f, size: a.Size, seek: f.(vfs.HoleSeeker)},
	} {
		var data bytes.Buffer
		if _, err := data.ReadFrom(s); err != nil || s.end != a.Size {
			t.Fatalf("%s: %v, at %d", name, err, s.end)
		}
		if data.Len() > 6*zeroBlock || len(s.holes) < 4 {
			t.Errorf("%s: %d bytes of data, holes %v", name, data.Len(), s.holes)
		}
		got := make([]byte, 0, a.Size)
		for _, hole := range s.holes {
			got = append(got, data.Next(int(hole.Off)-len(got))...)
			got = append(got, make([]byte, hole.Len)...)
		}
		if got = append(got, data.Bytes()...); !bytes.Equal(got, want) {
			t.Errorf("%s: it is not the same", name)
		}
	}
}
