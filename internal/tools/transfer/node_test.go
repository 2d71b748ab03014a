package transfer

import (
	"context"
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// put makes one of each kind of thing that may be in the way of a copy.
func put(e *end) map[string]vfs.Type {
	e.file("file", []byte("old"))
	e.make("link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "elsewhere"})
	e.make("same link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "target"})
	e.make("fifo", vfs.CreateHow{Type: vfs.TypeFIFO})
	e.make("dir", vfs.CreateHow{Type: vfs.TypeDir})
	return map[string]vfs.Type{
		"file": vfs.TypeReg, "link": vfs.TypeSymlink, "same link": vfs.TypeSymlink, "fifo": vfs.TypeFIFO,
		"dir": vfs.TypeDir, "nothing": vfs.TypeNone,
	}
}

func TestSymlink(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	from := src.make("l", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "target"})
	for name, typ := range put(dst) {
		_, err := Symlink(t.Context(), from, dst.target(name), options(t))
		if typ == vfs.TypeDir {
			if !errors.Is(err, vfs.ErrIsDir) {
				t.Errorf("over a directory: %v", err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := dst.source(name)
		target, _, err := dst.fs.Readlink(t.Context(), got.Handle)
		if err != nil || target != "target" || !got.Attr.Mtime.Equal(from.Attr.Mtime) {
			t.Errorf("%s: %q, %v, %v", name, target, got.Attr.Mtime, err)
		}
	}
	dst.noTemps()
}

func TestNode(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	from := src.make("d", vfs.CreateHow{Type: vfs.TypeBlock, Rdev: 8<<32 | 1, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o660}})
	for name, typ := range put(dst) {
		_, err := Node(t.Context(), from, dst.target(name), options(t))
		if typ == vfs.TypeDir {
			if !errors.Is(err, vfs.ErrIsDir) {
				t.Errorf("over a directory: %v", err)
			}
			continue
		}
		a := dst.source(name).Attr
		if err != nil || a.Type != vfs.TypeBlock || a.Rdev != 8<<32|1 || a.Mode != 0o660 {
			t.Errorf("%s: %v, %+v", name, err, a)
		}
	}
	user := newEnd(t, dst.fs.As(&vfs.Caller{UID: 1000, GID: 1000}))
	dst.set(dst.root, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o777})
	if _, err := Node(t.Context(), from, user.target("new"), options(t)); !errors.Is(err, vfs.ErrPerm) {
		t.Errorf("a device of an ordinary user's: %v", err)
	}
	if _, err := Node(t.Context(), src.file("f", nil), dst.target("new"), options(t)); !errors.Is(err, vfs.ErrBadType) {
		t.Errorf("a file as a node: %v", err)
	}
	dst.noTemps()
}

func TestLink(t *testing.T) {
	dst := mem(t, memfs.Options{})
	h := dst.file("original", []byte("x")).Handle
	kinds := put(dst)
	kinds["original"] = vfs.TypeReg
	for name, typ := range kinds {
		err := Link(t.Context(), h, dst.target(name), options(t))
		if typ == vfs.TypeDir {
			if !errors.Is(err, vfs.ErrIsDir) {
				t.Errorf("over a directory: %v", err)
			}
			continue
		}
		if err != nil || dst.source(name).Handle != h {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := dst.source("original").Attr.Nlink; n != uint32(len(kinds)-1) {
		t.Errorf("%d names, want %d", n, len(kinds)-1)
	}
	dst.noTemps()
}

// TestLinkRace: somebody makes the same link between our look and our rename,
// which then does nothing.
func TestLinkRace(t *testing.T) {
	dst := mem(t, memfs.Options{})
	h := dst.file("original", []byte("x")).Handle
	dst.file("name", []byte("old"))
	to := dst.target("name")
	to.FS = &racing{dst.fs}
	if err := Link(t.Context(), h, to, options(t)); err != nil {
		t.Fatal(err)
	}
	if dst.source("name").Handle != h {
		t.Error("the name is of another file")
	}
	dst.noTemps()
}

// racing makes a link under the name before it renames to it.
type racing struct{ vfs.FS }

func (f *racing) Rename(ctx context.Context, a vfs.Handle, an string, b vfs.Handle, bn string) (from, to vfs.WCC, err error) {
	h, _, _, err := f.Lookup(ctx, a, an)
	if err != nil {
		return from, to, err
	}
	if _, err := f.Remove(ctx, b, bn, false); err != nil {
		return from, to, err
	}
	if _, _, err := f.Link(ctx, h, b, bn); err != nil {
		return from, to, err
	}
	return f.FS.Rename(ctx, a, an, b, bn)
}

// TestNodeFaults fails each operation of replacing something.
func TestNodeFaults(t *testing.T) {
	for n := 1; ; n++ {
		var k hooks
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: k.fault})
		from := src.make("l", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "target"})
		dst.file("f", []byte("old"))
		k.start(n, vfs.ErrIO)
		_, err := Symlink(t.Context(), from, dst.target("f"), options(t))
		done := len(k.ops) < n
		k.start(0, nil)
		dst.noTemps()
		if done {
			if err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, vfs.ErrIO) || dst.source("f").Attr.Type != vfs.TypeReg {
			t.Errorf("operation %d: %v", n, err)
		}
	}
}

// TestSetAttrs: who may keep what.
func TestSetAttrs(t *testing.T) {
	root := (*vfs.Caller)(nil)
	user := &vfs.Caller{UID: 1000, GID: 1000, Groups: []uint32{50}}
	tests := []struct {
		name     string
		who      *vfs.Caller
		owner    bool
		uid, gid uint32
		mode     uint32
		wantMode uint32
		wantUID  uint32
		wantGID  uint32
		lost     Lost
		calls    int
	}{
		{"all by root", root, true, 7, 8, 0o644, 0o644, 7, 8, Lost{}, 1},
		{"set-uid by root", root, true, 7, 8, 0o6755, 0o6755, 7, 8, Lost{}, 2},
		{"set-uid of root", root, true, 0, 0, 0o4755, 0o4755, 0, 0, Lost{}, 1},
		{"not asked for", root, false, 7, 8, 0o644, 0o644, 0, 0, Lost{}, 1},
		{"set-uid without owner", root, false, 7, 8, 0o6755, 0o755, 0, 0, Lost{SetID: true}, 1},
		{"set-gid without group", root, false, 0, 8, 0o6755, 0o4755, 0, 0, Lost{SetID: true}, 1},
		{"by a user, its own", user, true, 1000, 1000, 0o4711, 0o4711, 1000, 1000, Lost{}, 1},
		{"by a user, its group", user, true, 1000, 50, 0o640, 0o640, 1000, 50, Lost{}, 1},
		{"by a user, another's", user, true, 7, 8, 0o600, 0o600, 1000, 1000, Lost{Owner: true}, 3},
		{"by a user, another's file of its group", user, true, 7, 50, 0o640, 0o640, 1000, 50, Lost{Owner: true}, 2},
		{"by a user, another's set-uid", user, true, 7, 1000, 0o4755, 0o755, 1000, 1000, Lost{Owner: true, SetID: true}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var k hooks
			all := mem(t, memfs.Options{Fault: k.fault, Mode: 0o777})
			e := newEnd(t, all.fs.As(tt.who))
			h := e.file("f", nil)
			k.start(0, nil)
			want := vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeReg, Mode: tt.mode, UID: tt.uid, GID: tt.gid, Mtime: epoch, Atime: epoch}
			var owners *Owners
			if tt.owner {
				owners = &Owners{}
			}
			after, lost, err := SetAttrs(t.Context(), e.fs, h.Handle, &want, &h.Attr, owners)
			if err != nil {
				t.Fatal(err)
			}
			if lost != tt.lost || k.count("setattr") != tt.calls {
				t.Errorf("lost %+v, want %+v; %d calls, want %d", lost, tt.lost, k.count("setattr"), tt.calls)
			}
			got := e.source("f").Attr
			if got.Mode != tt.wantMode || got.UID != tt.wantUID || got.GID != tt.wantGID || !got.Mtime.Equal(epoch) {
				t.Errorf("mode %o, owner %d:%d, mtime %v", got.Mode, got.UID, got.GID, got.Mtime)
			}
			// The second time it is known what is refused.
			again := e.file("g", nil)
			k.start(0, nil)
			if _, l, err := SetAttrs(t.Context(), e.fs, again.Handle, &want, &again.Attr, owners); err != nil || l != lost || k.count("setattr") > 2 ||
				lost.Owner && k.count("setattr") > 1 {
				t.Errorf("again: lost %+v, %v, %d calls", l, err, k.count("setattr"))
			}
			if !after.Has(vfs.MaskV3) || after.Mode != got.Mode {
				t.Errorf("attributes afterwards: %+v", after)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	a := memfs.New(memfs.Options{ID: 1})
	one, two := newEnd(t, a), newEnd(t, memfs.New(memfs.Options{ID: 1}))
	// Two file systems with the same handles: only the probe tells.
	if one.root != two.root {
		t.Fatal("the roots' handles differ")
	}
	for _, tt := range []struct {
		other *end
		want  bool
	}{{newEnd(t, a.As(&vfs.Caller{UID: 5})), true}, {two, false}} {
		same, err := Probe(t.Context(), one.target(""), tt.other.fs, tt.other.root, options(t))
		if err != nil || same != tt.want {
			t.Errorf("%v, %v; want %v", same, err, tt.want)
		}
	}
	if names := one.names(); len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Probe(ctx, one.target(""), two.fs, two.root, options(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
