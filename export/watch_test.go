package export

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// told is what a watcher was told.
type told struct{ was atomic.Uint32 }

func (w *told) changed(c vfs.Change) { w.was.Or(uint32(c)) }
func (w *told) take() vfs.Change     { return vfs.Change(w.was.Swap(0)) }

// watching watches h until the test ends, if it is not stopped before.
func watching(t *testing.T, v vfs.FS, h vfs.Handle) (*told, func()) {
	t.Helper()
	w := &told{}
	stop, err := v.(vfs.Watcher).Watch(h, w.changed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return w, stop
}

// TestWatch makes changes through a view of another export of the file system, and
// checks what watchers have been told when the change is answered.
func TestWatch(t *testing.T) {
	const gone, rights = vfs.ChangeGone, vfs.ChangeRights
	set := func(valid vfs.Mask) vfs.SetAttr { return vfs.SetAttr{Valid: valid, Mode: 0o640, UID: 1, GID: 1} }
	type place struct {
		context.Context
		*View
		root, f vfs.Handle // f is called "f" and "f2"
	}
	for _, x := range []struct {
		what string
		do   func(p place) error
		want vfs.Change
	}{
		{"remove", func(p place) error { _, err := p.Remove(p, p.root, "f", false); return err }, gone},
		{"remove of its other name", func(p place) error { _, err := p.Remove(p, p.root, "f2", false); return err }, gone},
		{"remove of another", func(p place) error { _, err := p.Remove(p, p.root, "g", false); return err }, 0},
		{"remove of nothing", func(p place) error { _, err := p.Remove(p, p.root, "h", false); return err }, 0},
		{"remove as a directory", func(p place) error { _, err := p.Remove(p, p.root, "f", true); return err }, 0},
		{"rename over it", func(p place) error { _, _, err := p.Rename(p, p.root, "g", p.root, "f"); return err }, gone},
		{"rename over it from elsewhere", func(p place) error {
			dir, _, _, err := p.Lookup(p, p.root, "dir")
			if err == nil {
				_, _, err = p.Rename(p, dir, "in", p.root, "f")
			}
			return err
		}, gone},
		{"rename of it", func(p place) error { _, _, err := p.Rename(p, p.root, "f", p.root, "h"); return err }, 0},
		{"rename of it over another", func(p place) error { _, _, err := p.Rename(p, p.root, "f", p.root, "g"); return err }, 0},
		{"rename of others", func(p place) error { _, _, err := p.Rename(p, p.root, "g", p.root, "h"); return err }, 0},
		{"link", func(p place) error { _, _, err := p.Link(p, p.f, p.root, "h"); return err }, 0},
		{"mode", func(p place) error { s := set(vfs.MaskMode); _, err := p.SetAttr(p, p.f, &s, nil); return err }, rights},
		{"owner", func(p place) error { s := set(vfs.MaskUID); _, err := p.SetAttr(p, p.f, &s, nil); return err }, rights},
		{"group", func(p place) error { s := set(vfs.MaskGID); _, err := p.SetAttr(p, p.f, &s, nil); return err }, rights},
		{"size", func(p place) error { s := set(vfs.MaskSize); _, err := p.SetAttr(p, p.f, &s, nil); return err }, 0},
		{"mode of another", func(p place) error { s := set(vfs.MaskMode); _, err := p.SetAttr(p, p.root, &s, nil); return err }, 0},
		{"list", func(p place) error {
			a, err := p.ACL(p, p.f)
			if err == nil {
				err = p.SetACL(p, p.f, a)
			}
			return err
		}, rights},
		{"create of another", func(p place) error {
			_, _, _, err := p.Create(p, p.root, "h", &vfs.CreateHow{Type: vfs.TypeReg, Set: set(vfs.MaskMode)})
			return err
		}, 0},
		{"create as it is", func(p place) error {
			_, _, _, err := p.Create(p, p.root, "f", &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked})
			return err
		}, 0},
		{"create with a mode", func(p place) error {
			_, _, _, err := p.Create(p, p.root, "f", &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: set(vfs.MaskMode)})
			return err
		}, rights},
		{"open and create with a mode", func(p place) error {
			f, _, err := p.Open(p, vfs.At{Dir: p.root, Name: "f"}, &vfs.OpenHow{Access: vfs.ShareRead,
				Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: set(vfs.MaskMode)}})
			if err == nil {
				err = f.Close(p)
			}
			return err
		}, rights},
	} {
		fs := memory()
		table := testTable(t, Key{}, Export{Path: "/", FS: fs}, Export{Path: "/other", FS: fs, ReadOnly: true})
		v := table.As(nil).(*View)
		root, f := put(t, v, "f")
		put(t, v, "g")
		if _, _, err := v.Link(t.Context(), f, root, "f2"); err != nil {
			t.Fatal(err)
		}
		dir, _, _, err := v.Create(t.Context(), root, "dir", &vfs.CreateHow{Type: vfs.TypeDir})
		if err == nil {
			_, _, _, err = v.Create(t.Context(), dir, "in", &vfs.CreateHow{Type: vfs.TypeReg})
		}
		if err != nil {
			t.Fatal(err)
		}
		// The watcher is of another client, by the other export.
		client := table.For(remote("192.0.2.7:700"), nil)
		otherRoot, _, err := client.Mount(t.Context(), "/other")
		if err != nil {
			t.Fatal(err)
		}
		other, _, _, err := client.Lookup(t.Context(), otherRoot, "f")
		if err != nil {
			t.Fatal(err)
		}
		w, stop := watching(t, client, other)
		again, _ := watching(t, v, f)
		failed := x.do(place{t.Context(), v, root, f})
		if got := w.take(); got != x.want {
			t.Errorf("%s (%v): told %b, want %b", x.what, failed, got, x.want)
		}
		if got := again.take(); got != x.want {
			t.Errorf("%s: another who watches was told %b, want %b", x.what, got, x.want)
		}
		stop()
		stop()
		s := set(vfs.MaskMode)
		if _, err := v.SetAttr(t.Context(), f, &s, nil); err != nil && !errors.Is(err, vfs.ErrStale) {
			t.Fatal(err)
		}
		if got := w.take(); got != 0 {
			t.Errorf("%s: told %b after stop", x.what, got)
		}
	}
}

// TestWatchReplace checks that Replace tells the watchers whose export or rules have
// changed.
func TestWatchReplace(t *testing.T) {
	one, two := memory(), memory()
	id := uint32(7)
	a := Export{Path: "/a", FS: one, ID: 1, Clients: []Rule{{Match: "192.0.2.7", AnonUID: &id}}}
	b := Export{Path: "/b", FS: two, ID: 2}
	changed := func(change func(e *Export)) Export {
		e := a
		e.Clients = append([]Rule(nil), a.Clients...)
		change(&e)
		return e
	}
	sameID, otherID := uint32(7), uint32(8)
	for _, x := range []struct {
		what string
		next []Export
		want bool
	}{
		{"the same", []Export{a, b}, false},
		{"the same in another order", []Export{b, a}, false},
		{"the same words", []Export{changed(func(e *Export) { e.Clients[0].AnonUID = &sameID }), b}, false},
		{"another beside", []Export{a, {Path: "/c", FS: memory()}}, false},
		{"another path", []Export{changed(func(e *Export) { e.Path = "/c" }), b}, false},
		{"read-only", []Export{changed(func(e *Export) { e.ReadOnly = true }), b}, true},
		{"remote", []Export{changed(func(e *Export) { e.NoHostFiles = true }), b}, true},
		{"a rule that is remote", []Export{changed(func(e *Export) { e.Clients[0].NoHostFiles = true }), b}, true},
		{"another anonymous user", []Export{changed(func(e *Export) { e.Clients[0].AnonUID = &otherID }), b}, true},
		{"another rule", []Export{changed(func(e *Export) { e.Clients = []Rule{{Match: "*", AnonUID: &id}} }), b}, true},
		{"one rule more", []Export{changed(func(e *Export) { e.Clients = append(e.Clients, Rule{Match: "*"}) }), b}, true},
		{"gone", []Export{b}, true},
		{"another file system", []Export{changed(func(e *Export) { e.FS = memory() }), b}, true},
		{"another number", []Export{changed(func(e *Export) { e.ID = 3 }), b}, true},
	} {
		table := testTable(t, Key{}, a, b)
		v := table.For(remote("192.0.2.7:700"), nil)
		h, _, err := v.Mount(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		h2, _, err := v.Mount(t.Context(), "/b")
		if err != nil {
			t.Fatal(err)
		}
		w, stop := watching(t, v, h)
		w2, stop2 := watching(t, v, h2)
		for range 2 {
			if err := table.Replace(x.next...); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.take(); (got == vfs.ChangeRights) != x.want || got&vfs.ChangeGone != 0 {
			t.Errorf("%s: told %b, want it: %t", x.what, got, x.want)
		}
		if got := w2.take(); got != 0 && x.what != "another beside" {
			t.Errorf("%s: told of another's change: %b", x.what, got)
		}
		stop()
		stop2()
		for _, u := range table.users {
			if n := u.watches.n.Load(); n != 0 {
				t.Errorf("%s: %d watches are left", x.what, n)
			}
		}
		if !drained(t, table, memory()) {
			t.Error("not drained")
		}
	}
}

// TestWatchUnwatchable refuses what a view may not use, and more than there may be.
func TestWatchUnwatchable(t *testing.T) {
	fs := memory()
	table := testTable(t, Key{}, Export{Path: "/", FS: fs, Clients: []Rule{{Match: "192.0.2.7"}}})
	_, h := put(t, table.As(nil), "f")
	never := func(vfs.Change) { t.Error("told") }
	if _, err := table.For(remote("192.0.2.8:700"), nil).Watch(h, never); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("of another client: %v", err)
	}
	v := table.For(remote("192.0.2.7:700"), nil)
	if _, err := v.Watch(vfs.Handle{}, never); !errors.Is(err, vfs.ErrBadHandle) {
		t.Errorf("of no handle: %v", err)
	}
	_, stop := watching(t, v, h)
	all := &table.users[fs].watches
	all.n.Add(maxWatches - 1)
	if _, err := v.Watch(h, never); !errors.Is(err, vfs.ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	all.n.Add(-(maxWatches - 1))
	stop()
	if n := all.n.Load(); n != 0 {
		t.Errorf("%d watches are left", n)
	}
	for i := range all.shards {
		if n := len(all.shards[i].of); n != 0 {
			t.Errorf("%d handles are remembered", n)
		}
	}
}

// watchable is a file system that is a Watcher itself.
type watchable struct {
	*memfs.FS
	watches map[int]func(vfs.Change)
	made    int
	err     error
}

func (w *watchable) As(*vfs.Caller) vfs.FS { return w }

func (w *watchable) Watch(_ vfs.Handle, changed func(vfs.Change)) (func(), error) {
	if w.err != nil {
		return nil, w.err
	}
	w.made++
	i := w.made
	w.watches[i] = changed
	return func() { delete(w.watches, i) }, nil
}

// TestWatchBelow checks that what the file system tells is passed on, and that its
// watches end with the view's, or when it is no longer exported.
func TestWatchBelow(t *testing.T) {
	fs := &watchable{FS: memory(), watches: make(map[int]func(vfs.Change))}
	table := testTable(t, Key{}, Export{Path: "/", FS: fs})
	v := table.As(nil).(*View)
	_, h := put(t, v, "f")
	w, stop := watching(t, v, h)
	fs.watches[1](vfs.ChangeGone)
	if got := w.take(); got != vfs.ChangeGone {
		t.Errorf("told %b", got)
	}
	stop()
	if len(fs.watches) != 0 {
		t.Error("the file system's watch has not ended")
	}
	fs.err = vfs.ErrBusy
	if _, err := v.Watch(h, w.changed); !errors.Is(err, vfs.ErrBusy) {
		t.Errorf("of a file system that watches no more: %v", err)
	}
	fs.err = vfs.ErrNotSupp
	if _, err := v.Watch(h, w.changed); err != nil {
		t.Errorf("of a file system that cannot watch this: %v", err)
	}
	fs.err = nil
	w, stop = watching(t, v, h)
	if err := table.Replace(Export{Path: "/", FS: memory()}); err != nil {
		t.Fatal(err)
	}
	if got := w.take(); got != vfs.ChangeRights || len(fs.watches) != 0 || !drained(t, table, fs) {
		t.Errorf("of a file system that is gone: told %b, %d watches", got, len(fs.watches))
	}
	stop()
}

// erring is a file system whose changes are made and then fail, or whose look-ups fail.
type erring struct {
	*memfs.FS
	change, lookup error
	between        func()
}

func (f *erring) As(*vfs.Caller) vfs.FS { return f }

func (f *erring) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	if f.lookup != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.Attr{}, f.lookup
	}
	return f.FS.Lookup(ctx, dir, name)
}

func (f *erring) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	if f.between != nil {
		f.between()
	}
	w, err := f.FS.Remove(ctx, dir, name, isDir)
	return w, errors.Join(err, f.change)
}

func (f *erring) SetAttr(context.Context, vfs.Handle, *vfs.SetAttr, *time.Time) (vfs.WCC, error) {
	return vfs.WCC{}, f.change
}

// TestWatchErrors checks that watchers are told of what may have changed, and not of
// what was refused.
func TestWatchErrors(t *testing.T) {
	for _, x := range []struct {
		what           string
		change, lookup error
		between        bool // watched only when the change is under way
		want           vfs.Change
	}{
		{"all is well", nil, nil, false, vfs.ChangeGone | vfs.ChangeRights},
		{"refused", vfs.ErrAccess, nil, false, 0},
		{"half done", vfs.ErrIO, nil, false, vfs.ChangeGone | vfs.ChangeRights},
		{"the outcome is not known", fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, vfs.ErrAccess), nil, false, vfs.ChangeGone | vfs.ChangeRights},
		{"the victim is not known", nil, vfs.ErrBusy, false, vfs.ChangeGone | vfs.ChangeRights},
		{"watched in between", nil, nil, true, vfs.ChangeGone},
	} {
		fs := &erring{FS: memory()}
		table := testTable(t, Key{}, Export{Path: "/", FS: fs})
		v := table.As(nil).(*View)
		root, h := put(t, v, "f")
		fs.change, fs.lookup = x.change, x.lookup
		w := &told{}
		watch := func() {
			stop, err := v.Watch(h, w.changed)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
		}
		if x.between {
			fs.between = watch
		} else {
			watch()
			_, err := v.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode}, nil)
			if !errors.Is(err, x.change) {
				t.Error(err)
			}
		}
		if _, err := v.Remove(t.Context(), root, "f", false); !errors.Is(err, x.change) {
			t.Error(err)
		}
		if got := w.take(); got != x.want {
			t.Errorf("%s: told %b, want %b", x.what, got, x.want)
		}
	}
}
