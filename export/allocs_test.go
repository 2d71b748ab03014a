package export

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// idleFS answers without allocating, so that only the view's allocations count.
type idleFS struct{ probeFS }

func (f *idleFS) As(*vfs.Caller) vfs.FS { return f }

func (f *idleFS) GetAttr(context.Context, vfs.Handle, vfs.Mask) (vfs.Attr, error) {
	return vfs.Attr{}, nil
}

func (f *idleFS) Lookup(_ context.Context, dir vfs.Handle, _ string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	return dir, vfs.Attr{}, vfs.Attr{}, nil
}

func (f *idleFS) Open(context.Context, vfs.At, *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	return idleFile{}, vfs.Opened{}, nil
}

func (f *idleFS) SetAttr(context.Context, vfs.Handle, *vfs.SetAttr, *time.Time) (vfs.WCC, error) {
	return vfs.WCC{}, nil
}

func (f *idleFS) Create(_ context.Context, dir vfs.Handle, _ string, _ *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	return dir, vfs.Attr{}, vfs.WCC{}, nil
}

func (f *idleFS) Remove(context.Context, vfs.Handle, string, bool) (vfs.WCC, error) {
	return vfs.WCC{}, nil
}

func (f *idleFS) Rename(context.Context, vfs.Handle, string, vfs.Handle, string) (from, to vfs.WCC, err error) {
	return from, to, nil
}

// idleFile is an open file of an idleFS.
type idleFile struct{ vfs.File }

func (idleFile) Close(context.Context) error { return nil }

// TestOpenInAllocs opens a file again and again in the caller's memory: nothing is
// allocated, and each is an open file of the export.
func TestOpenInAllocs(t *testing.T) {
	fs := &idleFS{}
	table, err := NewTable(testKey(), Export{Path: "/", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	v := table.For(remote("192.0.2.7:700"), &vfs.Caller{UID: 1})
	root, _, err := v.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var f File
	at, how := vfs.At{H: root}, &vfs.OpenHow{Access: vfs.ShareRead}
	ctx, users := t.Context(), table.users[fs]
	n := testing.AllocsPerRun(100, func() {
		if _, err := v.OpenIn(ctx, &f, at, how); err != nil {
			t.Fatal(err)
		}
		if !users.busy() {
			t.Fatal("an open file does not hold its file system")
		}
		if err := f.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if users.busy() {
			t.Fatal("a closed file holds its file system")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// TestViewAllocs checks that the rules cost a call no allocation, whatever they are, and
// with as many exports in turn as a view remembers.
func TestViewAllocs(t *testing.T) {
	r := &resolver{
		names: map[string][]string{"192.0.2.7": {"h.example.org."}},
		addrs: map[string][]string{"h.example.org.": {"192.0.2.7"}},
	}
	rules := []Rule{{Match: "10.0.0.0/8"}, {Match: "*.example.org", Squash: SquashRoot, ManyGroups: true}}
	for what, clients := range map[string][]Rule{"no rules": nil, "names and groups": rules} {
		var exports []Export
		for i := range seenExports {
			exports = append(exports, Export{Path: fmt.Sprintf("/%d", i), FS: &idleFS{}, Clients: clients})
		}
		table, err := New(Options{Resolver: r, Groups: func(context.Context, uint32) ([]uint32, error) {
			return []uint32{1, 2, 3}, nil
		}}, exports...)
		if err != nil {
			t.Fatal(err)
		}
		v := table.For(remote("192.0.2.7:700"), &vfs.Caller{UID: 1})
		var roots []vfs.Handle
		for _, e := range exports {
			h, _, err := v.Mount(t.Context(), e.Path)
			if err != nil {
				t.Fatal(err)
			}
			roots = append(roots, h)
		}
		ctx := t.Context()
		n := testing.AllocsPerRun(100, func() {
			for _, h := range roots {
				if _, err := v.GetAttr(ctx, h, vfs.MaskV3); err != nil {
					t.Fatal(err)
				}
				if _, _, _, err := v.Lookup(ctx, h, "x"); err != nil {
					t.Fatal(err)
				}
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
}

// TestChangeAllocs makes changes with and without a watcher. Neither allocates.
func TestChangeAllocs(t *testing.T) {
	table, err := NewTable(testKey(), Export{Path: "/", FS: &idleFS{}})
	if err != nil {
		t.Fatal(err)
	}
	v := table.For(remote("192.0.2.7:700"), &vfs.Caller{UID: 1})
	root, _, err := v.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, set, how := t.Context(), &vfs.SetAttr{Valid: vfs.MaskMode}, &vfs.CreateHow{Type: vfs.TypeReg}
	change := func() {
		_, err := v.SetAttr(ctx, root, set, nil)
		if err == nil {
			_, _, _, err = v.Create(ctx, root, "x", how)
		}
		if err == nil {
			_, _, err = v.Rename(ctx, root, "x", root, "y")
		}
		if err == nil {
			_, err = v.Remove(ctx, root, "y", false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, change); n != 0 {
		t.Errorf("%v allocations while nobody watches, want 0", n)
	}
	w, _ := watching(t, v, root)
	if n := testing.AllocsPerRun(100, change); n != 0 || w.take() == 0 {
		t.Errorf("%v allocations while somebody watches, want 0", n)
	}
}

func BenchmarkGetAttr(b *testing.B) {
	table, err := NewTable(testKey(), Export{Path: "/", FS: &idleFS{}, Clients: []Rule{{Match: "192.0.2.0/24", Squash: SquashRoot}}})
	if err != nil {
		b.Fatal(err)
	}
	v := table.For(remote("192.0.2.7:700"), &vfs.Caller{UID: 1})
	root, _, err := v.Root(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.GetAttr(b.Context(), root, vfs.MaskV3); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRemove is what a change of names costs beside the file system, with and
// without a watch.
func BenchmarkRemove(b *testing.B) {
	table, err := NewTable(testKey(), Export{Path: "/", FS: &idleFS{}})
	if err != nil {
		b.Fatal(err)
	}
	v := table.For(remote("192.0.2.7:700"), &vfs.Caller{UID: 1})
	root, _, err := v.Root(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	remove := func(b *testing.B) {
		for b.Loop() {
			if _, err := v.Remove(b.Context(), root, "x", false); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("unwatched", remove)
	stop, err := v.Watch(root, func(vfs.Change) {})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("watched", remove)
	stop()
}
