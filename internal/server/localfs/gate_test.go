//go:build linux

package localfs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/vfs"
)

// narrow is a gate with one place for each class, at which nobody loses
// patience: a call that waits for a place while it has one hangs there.
func narrow(t testing.TB) *iogate.Gate {
	t.Helper()
	return newGate(t, iogate.Options{Threads: iogate.MinThreads, Patience: time.Minute})
}

func newGate(t testing.TB, o iogate.Options) *iogate.Gate {
	t.Helper()
	g, err := iogate.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := g.Snapshot().Inside; n != 0 {
			t.Errorf("%d places of the gate were not given back", n)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// entered is how often each lane of the only export was entered.
func entered(g *iogate.Gate) (n [iogate.Classes]uint64) {
	for i, l := range g.Snapshot().Exports[0].Lanes {
		n[i] = l.Entered
	}
	return n
}

// TestGateIsPassed looks at which lane each call takes. What is in the second
// list needs no place: it is in memory.
func TestGateIsPassed(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		g := narrow(t)
		o.Gate = g.Export("x")
		f := open(t, t.TempDir(), o)
		if !f.attrsInMemory {
			t.Skipf("NOT TESTED: the temporary directory is on a file system whose attributes may have to be waited for")
		}
		r := root(t, f)
		ctx := t.Context()
		x := mkfile(t, f, r, "x", "content")
		file := openFile(t, f, x)
		var w vfs.Written
		p := make([]byte, 7)
		for _, c := range []struct {
			name  string
			lanes []iogate.Class
			do    func() error
		}{
			{"create", []iogate.Class{iogate.Meta}, func() error {
				_, _, _, err := f.Create(ctx, r, "y", &vfs.CreateHow{Type: vfs.TypeDir})
				return err
			}},
			{"lookup", []iogate.Class{iogate.Meta}, func() error { _, _, _, err := f.Lookup(ctx, r, "x"); return err }},
			{"info", []iogate.Class{iogate.Meta}, func() error { _, err := f.Info(ctx, r, 0); return err }},
			{"set", []iogate.Class{iogate.Meta}, func() error { return chmod(t, f, x, 0o600) }},
			{"list", []iogate.Class{iogate.Meta}, func() error {
				for _, err := range f.ReadDir(ctx, r, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
					if err != nil {
						return err
					}
				}
				return nil
			}},
			{"write", []iogate.Class{iogate.Write}, func() error { _, err := file.WriteAt(ctx, p, 0, vfs.Unstable, &w); return err }},
			{"write and sync", []iogate.Class{iogate.Write, iogate.Sync}, func() error { _, err := file.WriteAt(ctx, p, 0, vfs.FileSync, &w); return err }},
			{"commit", []iogate.Class{iogate.Sync}, func() error { return file.Commit(ctx, 0, 0, &w) }},
			{"sync of a directory", []iogate.Class{iogate.Meta, iogate.Sync}, func() error { return f.Sync(ctx, r) }},
			{"remove", []iogate.Class{iogate.Meta}, func() error { _, err := f.Remove(ctx, r, "y", true); return err }},
			{"seek", []iogate.Class{iogate.Read}, func() error { _, err := file.(vfs.HoleSeeker).NextHole(ctx, 0); return err }},
			{"open for a process", []iogate.Class{iogate.Meta}, func() error {
				other, _, err := f.OpenHost(ctx, x, &vfs.HostOpen{Access: vfs.ShareRead | vfs.ShareWrite, Peer: self(t)})
				if err != nil {
					return err
				}
				return other.Close()
			}},
			{"attributes", nil, func() error { _, err := f.GetAttr(ctx, x, vfs.MaskV3); return err }},
			{"open", nil, func() error {
				again, _, err := f.Open(ctx, vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
				if err != nil {
					return err
				}
				return again.Close(ctx)
			}},
		} {
			before := entered(g)
			if err := c.do(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			after := entered(g)
			for i := range after {
				if took := after[i] > before[i]; took != slices.Contains(c.lanes, iogate.Class(i)) &&
					!(o.Handles == HandlesMap && iogate.Class(i) == iogate.Sync) { // the map may have to be synced
					t.Errorf("%s: lane %v was taken: %v", c.name, iogate.Class(i), took)
				}
			}
		}
	})
}

// TestGateTurnsAway fills the gate. A call that needs a place is told to come back;
// what is in memory is served, and nothing is lost.
func TestGateTurnsAway(t *testing.T) {
	g := newGate(t, iogate.Options{Threads: iogate.MinThreads, Patience: time.Millisecond})
	lanes := g.Export("x")
	f := volatileFS(t, Options{Gate: lanes})
	r := root(t, f)
	x := mkfile(t, f, r, "x", "content")
	file := openFile(t, f, x)
	ctx := t.Context()
	if _, err := f.GetAttr(ctx, x, vfs.MaskV3); err != nil {
		t.Fatal(err)
	}
	var taken []iogate.Class
	for c := range iogate.Classes {
		for lanes.Enter(ctx, c, "") == nil {
			taken = append(taken, c)
		}
	}
	var w vfs.Written
	_, _, _, err := f.Lookup(ctx, r, "nothing")
	wantErr(t, err, vfs.ErrBusy)
	_, err = file.WriteAt(ctx, []byte("X"), 0, vfs.Unstable, &w)
	wantErr(t, err, vfs.ErrBusy)
	wantErr(t, file.Commit(ctx, 0, 0, &w), vfs.ErrBusy)
	verf := f.verifier()
	if f.attrsInMemory {
		if _, err := f.GetAttr(ctx, x, vfs.MaskV3); err != nil {
			t.Errorf("the attributes of what is open: %v", err)
		}
	}
	for _, c := range taken {
		lanes.Leave(c)
	}
	if n := f.Snapshot().Busy; n != 3 {
		t.Errorf("%d calls were turned away, want 3", n)
	}
	if err := file.Commit(ctx, 0, 0, &w); err != nil || w.Verf != verf {
		t.Errorf("after a commit that was turned away: %v, verifier changed: %v", err, w.Verf != verf)
	}
	if got := content(t, f, x); got != "content" {
		t.Errorf("a refused write has left %q", got)
	}
}

// TestGateFairToCompanions syncs one file from many goroutines through one place:
// a call that waits for another's sync needs none.
func TestGateFairToCompanions(t *testing.T) {
	g := newGate(t, iogate.Options{Threads: iogate.MinThreads, Queue: 64, Patience: time.Minute})
	f := volatileFS(t, Options{Gate: g.Export("x")})
	r := root(t, f)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			mkdir(t, f, r, fmt.Sprint(i))
			if err := f.Sync(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := f.Snapshot()
	if s.Syncs+s.Shared != 32 || s.Syncs == 0 {
		t.Errorf("%d syncs, %d shared; want 32 in all", s.Syncs, s.Shared)
	}
}

// TestGateLeftForLocks has many wait until one directory, and one file, are done
// with. They take no place from those who have to do with another.
func TestGateLeftForLocks(t *testing.T) {
	const callers = 50
	g := narrow(t)
	f := volatileFS(t, Options{Gate: g.Export("x")})
	r := root(t, f)
	busy, idle := mkdir(t, f, r, "busy"), mkdir(t, f, r, "idle")
	x := mkfile(t, f, busy, "file", "content")
	file := openFile(t, f, x)
	if a, b, c := stripeOf(t, f, busy), stripeOf(t, f, idle), stripeOf(t, f, x); a == b || a == c || b == c {
		t.Skip("LEFT OUT: two of three objects share a lock")
	}
	before := entered(g)
	locked := []int{stripeOf(t, f, busy), stripeOf(t, f, x)}
	for _, i := range locked {
		f.locks.stripes[i].Lock()
	}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { mkdir(t, f, busy, fmt.Sprint(i)) })
		wg.Go(func() {
			var w vfs.Written
			if _, err := file.WriteAt(t.Context(), []byte("x"), 0, vfs.Unstable, &w); err != nil {
				t.Error(err)
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		n, inside := entered(g), g.Snapshot().Inside
		if n[classMeta]-before[classMeta] == callers && n[classWrite]-before[classWrite] == callers && inside == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d places were given, %d are taken", n, inside)
			break
		}
	}
	mkdir(t, f, idle, "another")
	for _, i := range locked {
		f.locks.stripes[i].Unlock()
	}
	wg.Wait()
}

// TestGateHeldLocks has a call that waited for a file's lock get it when the
// lane for metadata is taken. Writers of the file, whose lane is free, do not
// wait for that lane.
func TestGateHeldLocks(t *testing.T) {
	g := narrow(t)
	lanes := g.Export("x")
	f := volatileFS(t, Options{Gate: lanes})
	x := mkfile(t, f, root(t, f), "file", "content")
	file := openFile(t, f, x)
	before := entered(g)[classMeta]
	l := &f.locks.stripes[stripeOf(t, f, x)]
	l.Lock()
	done := make(chan error, 2)
	go func() {
		_, err := f.SetAttr(t.Context(), x, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil)
		done <- err
	}()
	for end := time.Now().Add(time.Minute); entered(g)[classMeta] == before || g.Snapshot().Inside > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Error("an operation that waits for a lock keeps its place")
			break
		}
	}
	if err := lanes.Enter(t.Context(), classMeta, "slow"); err != nil {
		t.Fatal(err)
	}
	l.Unlock()
	go func() {
		var w vfs.Written
		_, err := file.WriteAt(t.Context(), []byte("x"), 0, vfs.Unstable, &w)
		done <- err
	}()
	for range 2 {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("who has the lock waits for a place")
		}
	}
	lanes.Leave(classMeta)
}

// TestGateContext waits at the gate for no longer than the caller does.
func TestGateContext(t *testing.T) {
	g := newGate(t, iogate.Options{Threads: iogate.MinThreads, Patience: time.Minute})
	lanes := g.Export("x")
	f := volatileFS(t, Options{Gate: lanes})
	r := root(t, f)
	n := 0
	for lanes.TryEnter(iogate.Meta) {
		n++
	}
	_, _, _, err := f.Lookup(shortly(t), r, "x")
	wantErr(t, err, context.DeadlineExceeded)
	for range n {
		lanes.Leave(iogate.Meta)
	}
}

func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// TestReadsInMemory reads with and without a gate that can tell what is in
// memory, in pieces of all sizes.
func TestReadsInMemory(t *testing.T) {
	for _, kind := range []iogate.Kind{iogate.Auto, iogate.None, iogate.Go} {
		t.Run(kind.String(), func(t *testing.T) {
			g := newGate(t, iogate.Options{Kind: kind, Threads: 8})
			f := open(t, t.TempDir(), Options{Handles: HandlesMap, Volatile: true, Gate: g.Export("x")})
			x := mkfile(t, f, root(t, f), "x", "0123456789")
			file := openFile(t, f, x)
			for off := range 12 {
				for n := range 12 {
					p := make([]byte, n)
					var post vfs.Attr
					got, eof, err := file.ReadAt(t.Context(), p, uint64(off), &post)
					want := "0123456789"[min(off, 10):min(off+n, 10)]
					if err != nil || string(p[:got]) != want || eof != (off+n >= 10) || post.Size != 10 {
						t.Fatalf("read(%d, %d) = %q, %v, %v, size %d", off, n, p[:got], eof, err, post.Size)
					}
				}
			}
			s := f.Snapshot()
			t.Logf("%d of %d reads without a place", s.NowaitHits, s.NowaitHits+s.NowaitMisses)
		})
	}
}

// stripeOf is the number of x's lock.
func stripeOf(t *testing.T, f *FS, x vfs.Handle) int {
	t.Helper()
	d := must[*fdcache.Desc](t)(f.object(x))
	defer f.fds.Unpin(d)
	return stripe(d)
}
