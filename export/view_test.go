package export_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// syncFS is a file system that leaves it to its caller to make changes stable, and
// records what it is asked to sync.
type syncFS struct {
	*memfs.FS
	synced *[]vfs.Handle
	err    error
}

func (f syncFS) As(c *vfs.Caller) vfs.FS {
	return syncFS{FS: f.FS.As(c).(*memfs.FS), synced: f.synced, err: f.err}
}

func (f syncFS) Sync(_ context.Context, h vfs.Handle) error {
	*f.synced = append(*f.synced, h)
	return f.err
}

// stage is a view of exports, with the file system below the first of them.
type stage struct {
	*testing.T
	view   vfs.FS
	inner  *memfs.FS
	synced []vfs.Handle
	root   vfs.Handle // sealed
}

func newStage(t *testing.T, syncErr error, more ...export.Export) *stage {
	t.Helper()
	s := &stage{T: t, inner: memfs.New(memfs.Options{Mode: 0o777})}
	first := export.Export{Path: "/", FS: syncFS{FS: s.inner, synced: &s.synced, err: syncErr}}
	table, err := export.NewTable(export.Key{1}, append([]export.Export{first}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	s.view = table.As(nil)
	if s.root, _, err = s.view.Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// make creates an object and returns its handles: sealed, and the file system's.
func (s *stage) make(dir vfs.Handle, name string, typ vfs.Type) (sealed, inner vfs.Handle) {
	s.Helper()
	sealed, _, _, err := s.view.Create(s.Context(), dir, name, &vfs.CreateHow{Type: typ})
	if err != nil {
		s.Fatal(err)
	}
	return sealed, s.below(name)
}

// below is the file system's own handle of a name in its root, or of its root.
func (s *stage) below(name string) vfs.Handle {
	s.Helper()
	root, _, err := s.inner.Root(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	found, err := vfs.Resolve(s.Context(), s.inner, root, name, false)
	if err != nil {
		s.Fatal(err)
	}
	return found.Handle
}

// changes are all operations that change names or attributes, each with the
// objects that must be stable before it answers.
func (s *stage) changes() map[string]struct {
	do   func() error
	want []vfs.Handle
} {
	ctx := s.Context()
	dir, innerDir := s.make(s.root, "dir", vfs.TypeDir)
	file, innerFile := s.make(s.root, "file", vfs.TypeReg)
	s.make(s.root, "gone", vfs.TypeReg)
	s.make(s.root, "move", vfs.TypeReg)
	s.make(s.root, "again", vfs.TypeReg)
	root := s.below("/")
	open, _, err := s.view.Open(ctx, vfs.At{H: file}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := open.Close(context.WithoutCancel(ctx)); err != nil {
			s.Error(err)
		}
	})
	type change = struct {
		do   func() error
		want []vfs.Handle
	}
	return map[string]change{
		"setattr": {func() error {
			_, err := s.view.SetAttr(ctx, file, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil)
			return err
		}, []vfs.Handle{innerFile}},
		"create": {func() error {
			_, _, _, err := s.view.Create(ctx, s.root, "new", &vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"})
			return err
		}, []vfs.Handle{root}},
		"link": {func() error {
			_, _, err := s.view.Link(ctx, file, dir, "second")
			return err
		}, []vfs.Handle{innerFile, innerDir}},
		"remove": {func() error {
			_, err := s.view.Remove(ctx, s.root, "gone", false)
			return err
		}, []vfs.Handle{root}},
		"rename within": {func() error {
			_, _, err := s.view.Rename(ctx, s.root, "again", s.root, "other")
			return err
		}, []vfs.Handle{root}},
		"rename across": {func() error {
			_, _, err := s.view.Rename(ctx, s.root, "move", dir, "moved")
			return err
		}, []vfs.Handle{innerDir, root}}, // the new name first
		"truncate": {func() error {
			_, err := open.Truncate(ctx, 7)
			return err
		}, []vfs.Handle{innerFile}},
		"open and cut": {func() error {
			return s.openAndClose(vfs.At{H: file}, &vfs.OpenHow{Access: vfs.ShareWrite, Trunc: true})
		}, []vfs.Handle{innerFile}},
		"open and create": {func() error {
			return s.openAndClose(vfs.At{Dir: dir, Name: "made"}, &vfs.OpenHow{
				Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg},
			})
		}, []vfs.Handle{innerDir}},
	}
}

func (s *stage) openAndClose(at vfs.At, how *vfs.OpenHow) error {
	f, _, err := s.view.Open(s.Context(), at, how)
	if err != nil {
		return err
	}
	return f.Close(s.Context())
}

// TestChangesAreStable checks that the view syncs at least what was changed before it
// answers.
func TestChangesAreStable(t *testing.T) {
	s := newStage(t, nil)
	for name, x := range s.changes() {
		s.synced = nil
		if err := x.do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		at := -1
		for _, h := range x.want {
			i := slices.Index(s.synced, h)
			if i < 0 {
				t.Errorf("%s: %v was not made stable", name, h)
			}
			if i < at {
				t.Errorf("%s: made stable in the wrong order", name)
			}
			at = i
		}
	}
}

// TestObjectIsStableBeforeItsName: no crash leaves a name whose object has lost its
// attributes or bytes, since the object is made stable first.
func TestObjectIsStableBeforeItsName(t *testing.T) {
	s := newStage(t, nil)
	root := s.below("")
	check := func(what string, inner vfs.Handle) {
		t.Helper()
		if want := []vfs.Handle{inner, root}; !slices.Equal(s.synced, want) {
			t.Errorf("%s: synced %v, want %v", what, s.synced, want)
		}
		s.synced = nil
	}
	for _, typ := range []vfs.Type{vfs.TypeReg, vfs.TypeDir} {
		_, inner := s.make(s.root, typ.String(), typ)
		check("create of "+typ.String(), inner)
	}
	sealed, inner := s.make(s.root, "linked", vfs.TypeReg)
	s.synced = nil
	if _, _, err := s.view.Link(t.Context(), sealed, s.root, "link"); err != nil {
		t.Fatal(err)
	}
	check("link", inner)
	if err := s.openAndClose(vfs.At{Dir: s.root, Name: "opened"}, &vfs.OpenHow{
		Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg},
	}); err != nil {
		t.Fatal(err)
	}
	check("open", s.below("opened"))
}

// TestReadsDoNotSync asks for nothing where nothing has changed.
func TestReadsDoNotSync(t *testing.T) {
	s := newStage(t, nil)
	file, _ := s.make(s.root, "file", vfs.TypeReg)
	s.synced = nil
	if _, err := s.view.GetAttr(t.Context(), file, vfs.MaskV3); err != nil {
		t.Error(err)
	}
	if err := s.openAndClose(vfs.At{H: file}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite}); err != nil {
		t.Error(err)
	}
	if _, err := s.view.Remove(t.Context(), s.root, "none", false); !errors.Is(err, vfs.ErrNoEnt) {
		t.Error(err)
	}
	if len(s.synced) != 0 {
		t.Errorf("%d objects were made stable", len(s.synced))
	}
}

// TestUnstableChangeFails checks that a change fails if its sync fails.
func TestUnstableChangeFails(t *testing.T) {
	s := newStage(t, vfs.ErrIO)
	_, _, _, err := s.view.Create(t.Context(), s.root, "x", &vfs.CreateHow{Type: vfs.TypeDir})
	if !errors.Is(err, vfs.ErrIO) {
		t.Errorf("create: %v", err)
	}
	f, _, err := s.view.Open(t.Context(), vfs.At{Dir: s.root, Name: "y"}, &vfs.OpenHow{
		Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg},
	})
	if !errors.Is(err, vfs.ErrIO) || f != nil {
		t.Errorf("open: %v", err)
	}
	if n := s.inner.OpenFiles(); n != 0 {
		t.Errorf("%d files are still open", n)
	}
}

// TestExportsAreApart checks that nothing leads from one export into another.
func TestExportsAreApart(t *testing.T) {
	other := memfs.New(memfs.Options{Mode: 0o777})
	s := newStage(t, nil, export.Export{Path: "/ro", FS: other, ReadOnly: true}, export.Export{Path: "/rw", FS: other})
	ctx := t.Context()
	file, _ := s.make(s.root, "file", vfs.TypeReg)
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/rw", FS: other})
	if err != nil {
		t.Fatal(err)
	}
	there, _, err := table.As(nil).Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.view.Link(ctx, file, there, "x"); !errors.Is(err, vfs.ErrXDev) {
		t.Errorf("link: %v", err)
	}
	if _, _, err := s.view.Rename(ctx, s.root, "file", there, "x"); !errors.Is(err, vfs.ErrXDev) {
		t.Errorf("rename: %v", err)
	}
	table, err = export.NewTable(export.Key{1}, export.Export{Path: "/ro", FS: other})
	if err != nil {
		t.Fatal(err)
	}
	if there, _, err = table.As(nil).Root(ctx); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.view.Link(ctx, file, there, "x"); !errors.Is(err, vfs.ErrROFS) {
		t.Errorf("link into what is read-only: %v", err)
	}
	if h, _, _, err := s.view.Lookup(ctx, there, ".."); err != nil || h != there {
		t.Errorf("the root's parent is %v, %v", h, err)
	}
}

// TestReadOnly refuses every change, and returns no handle of what was not made.
func TestReadOnly(t *testing.T) {
	inner := memfs.New(memfs.Options{Mode: 0o777})
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: inner, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	root, _, err := inner.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := inner.Create(ctx, root, "f", &vfs.CreateHow{Type: vfs.TypeReg}); err != nil {
		t.Fatal(err)
	}
	v := table.As(nil)
	sealed, _, err := v.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f, _, _, err := v.Lookup(ctx, sealed, "f")
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"setattr": func() error { _, err := v.SetAttr(ctx, f, &vfs.SetAttr{}, nil); return err },
		"create": func() error {
			_, _, _, err := v.Create(ctx, sealed, "x", &vfs.CreateHow{Type: vfs.TypeDir})
			return err
		},
		"put":    func() error { _, _, err := v.(vfs.Putter).Put(ctx, sealed, "x", 0o644, nil); return err },
		"link":   func() error { _, _, err := v.Link(ctx, f, sealed, "x"); return err },
		"remove": func() error { _, err := v.Remove(ctx, sealed, "f", false); return err },
		"rename": func() error { _, _, err := v.Rename(ctx, sealed, "f", sealed, "x"); return err },
		"write":  func() error { _, _, err := v.Open(ctx, vfs.At{H: f}, &vfs.OpenHow{Access: vfs.ShareWrite}); return err },
		"cut": func() error {
			_, _, err := v.Open(ctx, vfs.At{H: f}, &vfs.OpenHow{Access: vfs.ShareRead, Trunc: true})
			return err
		},
	} {
		if err := do(); !errors.Is(err, vfs.ErrROFS) {
			t.Errorf("%s: %v", name, err)
		}
	}
	all := vfs.AccessRead | vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete | vfs.AccessLookup
	if got, _, err := v.Access(ctx, sealed, all); err != nil || got != vfs.AccessRead|vfs.AccessLookup {
		t.Errorf("access: %#x, %v", got, err)
	}
}
