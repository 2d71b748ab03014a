package export

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// put makes a file in the root of what v sees and returns both handles.
func put(t *testing.T, v vfs.FS, name string) (root, file vfs.Handle) {
	t.Helper()
	root, _, err := v.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, _, _, err = v.Create(t.Context(), root, name, &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked})
	if err != nil {
		t.Fatal(err)
	}
	return root, file
}

// TestReplace takes a client through reloads: its next call is judged by each, and
// handles keep their meaning.
func TestReplace(t *testing.T) {
	one, other := memory(), memory()
	table := testTable(t, Key{1}, Export{Path: "/a", FS: one})
	v := table.For(remote("192.0.2.7:700"), &vfs.Caller{UID: 1000, Client: "192.0.2.7"})
	_, file := put(t, v, "f")
	get := func() error {
		_, err := v.GetAttr(t.Context(), file, vfs.MaskV3)
		return err
	}
	change := func() error {
		_, err := v.SetAttr(t.Context(), file, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil)
		return err
	}
	id := table.Exports()[0].ID
	for _, x := range []struct {
		what        string
		exports     []Export
		get, change error
	}{
		{"the same", []Export{{Path: "/a", FS: one}}, nil, nil},
		{"read-only", []Export{{Path: "/a", FS: one, ReadOnly: true}}, nil, vfs.ErrROFS},
		{"read-only for the client", []Export{{Path: "/a", FS: one, Clients: []Rule{{Match: "192.0.2.7", ReadOnly: true}, {Match: "*"}}}}, nil, vfs.ErrROFS},
		{"read-only for others", []Export{{Path: "/a", FS: one, Clients: []Rule{{Match: "192.0.2.7"}, {Match: "*", ReadOnly: true}}}}, nil, nil},
		{"for others", []Export{{Path: "/a", FS: one, Clients: []Rule{{Match: "192.0.2.8"}}}}, vfs.ErrAccess, vfs.ErrAccess},
		{"for all, squashed", []Export{{Path: "/a", FS: one, Clients: []Rule{{Match: "*", Squash: SquashAll}}}}, nil, vfs.ErrPerm},
		{"elsewhere", []Export{{Path: "/b", FS: one}}, vfs.ErrStale, vfs.ErrStale},
		{"elsewhere under its number", []Export{{Path: "/b", FS: one, ID: id}}, nil, nil},
		{"beside others", []Export{{Path: "/", FS: other}, {Path: "/a", FS: one}}, nil, nil},
	} {
		if err := table.Replace(x.exports...); err != nil {
			t.Fatal(err)
		}
		if err := get(); !errors.Is(err, x.get) {
			t.Errorf("%s: getattr is %v, want %v", x.what, err, x.get)
		}
		if err := change(); !errors.Is(err, x.change) {
			t.Errorf("%s: setattr is %v, want %v", x.what, err, x.change)
		}
	}
	before := table.Exports()
	if err := table.Replace(Export{Path: "/a", FS: one}, Export{Path: "b", FS: other}); err == nil {
		t.Error("a bad table was taken")
	}
	if after := table.Exports(); len(after) != len(before) || get() != nil {
		t.Errorf("a reload that failed has changed the exports to %v", after)
	}
}

// gate is a file system whose GetAttr waits, so that a call is under way.
type gate struct {
	*memfs.FS
	entered, open chan struct{}
}

func newGate() *gate {
	return &gate{FS: memory(), entered: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) As(*vfs.Caller) vfs.FS { return g }

func (g *gate) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	g.entered <- struct{}{}
	<-g.open
	return g.FS.GetAttr(ctx, h, want)
}

// drained reports whether fs has drained by now.
func drained(t *testing.T, table *Table, fs vfs.FS) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := table.Drain(ctx, fs)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("drain: %v", err)
	}
	return err == nil
}

// TestDrain waits for calls under way and open files, and for nothing else.
func TestDrain(t *testing.T) {
	ctx := t.Context()
	old, next := newGate(), memory()
	table := testTable(t, Key{}, Export{Path: "/", FS: old})
	v := table.As(nil)
	_, h := put(t, v, "f")
	file, _, err := v.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{}); err == nil {
		t.Fatal("an open for nothing")
	}
	done := make(chan error)
	go func() {
		_, err := v.GetAttr(ctx, h, vfs.MaskV3)
		done <- err
	}()
	<-old.entered
	if err := table.Drain(ctx, old); !errors.Is(err, vfs.ErrInval) {
		t.Errorf("drain of what is exported: %v", err)
	}
	if err := table.Replace(Export{Path: "/", FS: next}); err != nil {
		t.Fatal(err)
	}
	if drained(t, table, old) {
		t.Error("drained with a call under way and an open file")
	}
	old.open <- struct{}{}
	if err := <-done; err != nil {
		t.Errorf("the call under way was not finished: %v", err)
	}
	if drained(t, table, old) {
		t.Error("drained with an open file")
	}
	if _, _, err := file.ReadAt(ctx, make([]byte, 1), 0, nil); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("a file of an export that is gone can be read: %v", err)
	}
	if err := file.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := file.Close(ctx); !errors.Is(err, vfs.ErrInval) {
		t.Errorf("a second close: %v", err)
	}
	if !drained(t, table, old) {
		t.Error("not drained after the last use")
	}
	if err := table.Drain(ctx, memory()); err != nil {
		t.Errorf("drain of what never was exported: %v", err)
	}
	if len(table.users) != 1 {
		t.Errorf("%d file systems are remembered", len(table.users))
	}
}

// turning is a file system that is replaced while a caller is judged: after the call has
// found its export, and before it is counted as a user.
type turning struct {
	*memfs.FS
	turn func()
}

func (f *turning) As(*vfs.Caller) vfs.FS {
	if turn := f.turn; turn != nil {
		f.turn = nil
		turn()
	}
	return f
}

func (f *turning) GetAttr(context.Context, vfs.Handle, vfs.Mask) (vfs.Attr, error) {
	return vfs.Attr{}, errBroken
}

// TestReplaceWithinCall replaces and drains a file system at the worst moment:
// the call goes to the new one.
func TestReplaceWithinCall(t *testing.T) {
	below := memory()
	old := &turning{FS: below}
	table := testTable(t, Key{}, Export{Path: "/", FS: old})
	root, _, err := table.As(nil).Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old.turn = func() {
		if err := table.Replace(Export{Path: "/", FS: below}); err != nil {
			t.Error(err)
		}
		if !drained(t, table, old) {
			t.Error("a call that has not begun keeps the file system from draining")
		}
	}
	if _, err := table.As(&vfs.Caller{}).GetAttr(t.Context(), root, vfs.MaskV3); err != nil {
		t.Errorf("the call went to the file system that was drained: %v", err)
	}
	// Endless reloads make the call fail.
	var again func()
	again = func() {
		next := &turning{FS: below}
		next.turn = func() { again() }
		if err := table.Replace(Export{Path: "/", FS: next}); err != nil {
			t.Error(err)
		}
	}
	again()
	if _, err := table.As(&vfs.Caller{}).GetAttr(t.Context(), root, vfs.MaskV3); !errors.Is(err, vfs.ErrBusy) {
		t.Errorf("a call among reloads without end: %v", err)
	}
	if _, _, err := table.As(&vfs.Caller{}).Root(t.Context()); !errors.Is(err, vfs.ErrBusy) {
		t.Errorf("a mount among reloads without end: %v", err)
	}
}

// TestDrainIsTold checks that Drain ends when its file system is exported again.
func TestDrainIsTold(t *testing.T) {
	old := newGate()
	table := testTable(t, Key{}, Export{Path: "/", FS: old})
	v := table.As(nil)
	root, _, err := v.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	call := make(chan error)
	go func() {
		_, err := v.GetAttr(t.Context(), root, vfs.MaskV3)
		call <- err
	}()
	<-old.entered
	if err := table.Replace(Export{Path: "/", FS: memory()}); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error)
	go func() { waits <- table.Drain(t.Context(), old) }()
	for range 100 {
		if err := table.Replace(Export{Path: "/old", FS: old}, Export{Path: "/", FS: memory()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-waits; !errors.Is(err, vfs.ErrInval) {
		t.Errorf("drain of what is back: %v", err)
	}
	old.open <- struct{}{}
	if err := <-call; err != nil {
		t.Error(err)
	}
}

// TestOpenFilesAfterReload judges open files again.
func TestOpenFilesAfterReload(t *testing.T) {
	ctx := t.Context()
	fs := memory()
	table := testTable(t, Key{}, Export{Path: "/", FS: fs})
	v := table.For(remote("192.0.2.7:700"), nil)
	_, h := put(t, v, "f")
	file, _, err := v.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	seeker, ok := vfs.As[vfs.HoleSeeker](file)
	if !ok {
		t.Fatal("no HoleSeeker")
	}
	for _, x := range []struct {
		what        string
		export      Export
		read, write error
	}{
		{"as before", Export{Path: "/", FS: fs}, nil, nil},
		{"read-only", Export{Path: "/", FS: fs, ReadOnly: true}, nil, vfs.ErrROFS},
		{"for others", Export{Path: "/", FS: fs, Clients: []Rule{{Match: "192.0.2.8"}}}, vfs.ErrAccess, vfs.ErrAccess},
		{"another file system", Export{Path: "/", FS: memory()}, vfs.ErrStale, vfs.ErrStale},
		{"as before, again", Export{Path: "/", FS: fs}, nil, nil},
	} {
		if err := table.Replace(x.export); err != nil {
			t.Fatal(err)
		}
		var w vfs.Written
		_, _, read := file.ReadAt(ctx, make([]byte, 1), 0, nil)
		_, seek := seeker.NextHole(ctx, 0)
		_, write := file.WriteAt(ctx, []byte("x"), 0, vfs.Unstable, &w)
		_, cut := file.Truncate(ctx, 1)
		commit := file.Commit(ctx, 0, 0, &w)
		for what, err := range map[string]error{"read": read, "seek": seek} {
			if !errors.Is(err, x.read) {
				t.Errorf("%s: %s is %v, want %v", x.what, what, err, x.read)
			}
		}
		for what, err := range map[string]error{"write": write, "truncate": cut, "commit": commit} {
			if !errors.Is(err, x.write) {
				t.Errorf("%s: %s is %v, want %v", x.what, what, err, x.write)
			}
		}
	}
}

// closing is a file system that must not be used after Close.
type closing struct {
	*memfs.FS
	mu     sync.RWMutex
	closed bool
}

func (c *closing) As(*vfs.Caller) vfs.FS { return c }

func (c *closing) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return vfs.Attr{}, errBroken
	}
	return c.FS.GetAttr(ctx, h, want)
}

// TestReplaceUnderLoad reloads, drains and closes while calls are made: none of
// them meets a file system that is closed, or an error.
func TestReplaceUnderLoad(t *testing.T) {
	need.Time(t, "two hundred reloads under load")
	const reloads, callers = 200, 8
	// One memory below all, whose handles stay good.
	below := memory()
	now := &closing{FS: below}
	table := testTable(t, Key{}, Export{Path: "/", FS: now})
	root, _, err := table.As(nil).Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	errs := make(chan error, callers)
	for i := range callers {
		wg.Go(func() {
			v := table.For(remote(fmt.Sprintf("192.0.2.%d:700", i)), &vfs.Caller{UID: uint32(i)})
			for ctx.Err() == nil {
				if _, err := v.GetAttr(t.Context(), root, vfs.MaskV3); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for range reloads {
		old := now
		now = &closing{FS: below}
		if err := table.Replace(Export{Path: "/", FS: now}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		err := table.Drain(ctx, old)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		old.mu.Lock()
		old.closed = true
		old.mu.Unlock()
	}
	cancel()
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if len(table.users) != 1 || table.users[now].busy() {
		t.Errorf("%d file systems are remembered, or calls are counted that have ended", len(table.users))
	}
}
