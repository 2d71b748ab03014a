package export

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// mighty is a file system with every power, and so are its files. It records the
// handles that its powers are used with.
type mighty struct {
	*memfs.FS
	used     *[]vfs.Handle
	released *int
}

func newMighty() *mighty { return &mighty{FS: memory(), used: new([]vfs.Handle), released: new(int)} }

func (m *mighty) As(*vfs.Caller) vfs.FS { return m }
func (m *mighty) Unwrap() any           { return m.FS }
func (m *mighty) Close() error          { return errBroken }

func (m *mighty) use(h vfs.Handle) error {
	*m.used = append(*m.used, h)
	return nil
}

func (m *mighty) Put(_ context.Context, dir vfs.Handle, _ string, _ uint32, _ []byte) (vfs.Handle, vfs.Attr, error) {
	return dir, vfs.Attr{}, m.use(dir)
}
func (m *mighty) OpenHost(_ context.Context, h vfs.Handle, _ *vfs.HostOpen) (*os.File, vfs.Attr, error) {
	return nil, vfs.Attr{}, m.use(h)
}
func (m *mighty) Sync(context.Context, vfs.Handle) error { return nil }
func (m *mighty) ACL(_ context.Context, h vfs.Handle) (vfs.ACL, error) {
	return vfs.ACL{}, m.use(h)
}
func (m *mighty) SetACL(_ context.Context, h vfs.Handle, _ vfs.ACL) error  { return m.use(h) }
func (m *mighty) Xattrs(_ context.Context, h vfs.Handle) ([]string, error) { return nil, m.use(h) }
func (m *mighty) Xattr(_ context.Context, h vfs.Handle, _ string) ([]byte, error) {
	return nil, m.use(h)
}
func (m *mighty) SetXattr(_ context.Context, h vfs.Handle, _ string, _ []byte, _ vfs.XattrHow) error {
	return m.use(h)
}
func (m *mighty) RemoveXattr(_ context.Context, h vfs.Handle, _ string) error { return m.use(h) }
func (m *mighty) Lock(_ context.Context, h vfs.Handle, _ *vfs.Lock) error     { return m.use(h) }
func (m *mighty) Unlock(_ context.Context, h vfs.Handle, _ *vfs.Lock) error   { return m.use(h) }
func (m *mighty) TestLock(_ context.Context, h vfs.Handle, l *vfs.Lock) (vfs.Lock, bool, error) {
	return *l, false, m.use(h)
}

func (m *mighty) ReleaseLocks(context.Context, func(*vfs.Owner) bool) error {
	*m.released++
	return nil
}

func (m *mighty) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, o, err := m.FS.Open(ctx, at, how)
	if err != nil {
		return nil, o, err
	}
	return &mightyFile{File: f}, o, nil
}

type mightyFile struct{ vfs.File }

func (f *mightyFile) Unwrap() any                                      { return f.File }
func (f *mightyFile) HostFile() (*os.File, func(), bool)               { return nil, nil, true }
func (f *mightyFile) Sync(context.Context, vfs.Handle) error           { return errBroken }
func (f *mightyFile) ACL(context.Context, vfs.Handle) (vfs.ACL, error) { return vfs.ACL{}, errBroken }

// powers are all interfaces of package vfs, and whether a view and an open file
// of a view have them.
var powers = map[string]struct {
	has        func(any) bool
	view, file bool
}{
	"FS":         {vfs.Has[vfs.FS], true, false},
	"File":       {vfs.Has[vfs.File], false, true},
	"Unwrapper":  {func(v any) bool { _, ok := v.(vfs.Unwrapper); return ok }, false, true},
	"Holder":     {vfs.Has[vfs.Holder], true, false},
	"HoleSeeker": {vfs.Has[vfs.HoleSeeker], false, true},
	"HostFiler":  {vfs.Has[vfs.HostFiler], false, true},
	"Syncer":     {vfs.Has[vfs.Syncer], false, false},
	"Closer":     {vfs.Has[vfs.Closer], false, false},
	"Locker":     {vfs.Has[vfs.Locker], true, false},
	"ACLer":      {vfs.Has[vfs.ACLer], true, false},
	"Xattrer":    {vfs.Has[vfs.Xattrer], true, false},
	"Putter":     {vfs.Has[vfs.Putter], false, false}, // an unstable one has it: see below
	"HostOpener": {vfs.Has[vfs.HostOpener], true, false},
	"Walker":     {vfs.Has[vfs.Walker], true, false},
	"Passer":     {vfs.Has[vfs.Passer], false, false}, // of a client's layers, as Keeper
	"Keeper":     {vfs.Has[vfs.Keeper], false, false},
	"Watcher":    {vfs.Has[vfs.Watcher], true, false},
	"Appender":   {vfs.Has[vfs.Appender], false, false},  // of those who buffer; a view buffers nothing
	"Dropper":    {vfs.Has[vfs.Dropper], false, false},   // of tools; a view's files are read by servers
	"Forgetter":  {vfs.Has[vfs.Forgetter], false, false}, // likewise
	"Maker":      {vfs.Has[vfs.Maker], false, false},     // of buckets, which are not exported
	"Making":     {vfs.Has[vfs.Making], false, false},    // likewise
	"Near":       {vfs.Has[vfs.Near], false, false},      // of a client's files; a view is read by the server alone
}

// interfaces are the names of the interfaces that package vfs declares.
func interfaces(t *testing.T) []string {
	t.Helper()
	files, err := fs.Glob(os.DirFS("../vfs"), "*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), "../vfs/"+name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.TypeSpec); ok && d.Name.IsExported() {
				if _, ok := d.Type.(*ast.InterfaceType); ok {
					names = append(names, d.Name.Name)
				}
			}
			return true
		})
	}
	return names
}

// TestPowers looks for every power of package vfs in a view, and in a file of a view, of
// a file system that has them all. The table above must list each, so that none is
// passed on by accident.
func TestPowers(t *testing.T) {
	for _, name := range interfaces(t) {
		if _, ok := powers[name]; !ok {
			t.Errorf("vfs.%s: may a view have it? Say so in this test, and seal its handles if so", name)
		}
	}
	table := testTable(t, Key{}, Export{Path: "/", FS: newMighty()})
	v := table.As(nil)
	_, h := put(t, v, "f")
	f, _, err := v.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range powers {
		if got := x.has(v); got != x.view {
			t.Errorf("a view has the power %s: %t", name, got)
		}
		if got, want := x.has(v.(*View).Unstable()), x.view || name == "Putter"; got != want {
			t.Errorf("an unstable view has the power %s: %t", name, got)
		}
		if got := x.has(f); got != x.file {
			t.Errorf("a file has the power %s: %t", name, got)
		}
	}
	if vfs.Has[*mighty](v) || vfs.Has[*memfs.FS](v) || vfs.Has[*mightyFile](f) {
		t.Error("what is below can be reached")
	}
	if err := f.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestViewPowersAreTheirs gives a view a power only while a file system that is
// exported has it.
func TestViewPowersAreTheirs(t *testing.T) {
	bare := struct{ vfs.FS }{&probeFS{}}
	all := map[string]func(any) bool{
		"Locker": vfs.Has[vfs.Locker], "ACLer": vfs.Has[vfs.ACLer], "Putter": vfs.Has[vfs.Putter], "HostOpener": vfs.Has[vfs.HostOpener],
		"Walker": vfs.Has[vfs.Walker], "Xattrer": vfs.Has[vfs.Xattrer],
	}
	table := testTable(t, Key{}, Export{Path: "/", FS: bare})
	v := table.As(nil)
	for _, step := range []struct {
		what    string
		exports []Export
		want    func(power string) bool
	}{
		{"a bare one", []Export{{Path: "/", FS: bare}}, func(string) bool { return false }},
		{"one in memory", []Export{{Path: "/", FS: memory()}}, func(p string) bool { return p == "Locker" || p == "ACLer" || p == "Walker" || p == "Xattrer" }},
		{"a bare one and a mighty one", []Export{{Path: "/", FS: bare}, {Path: "/m", FS: newMighty()}}, func(string) bool { return true }},
		{"a bare one again", []Export{{Path: "/", FS: bare}}, func(string) bool { return false }},
	} {
		if err := table.Replace(step.exports...); err != nil {
			t.Fatal(err)
		}
		for name, has := range all {
			if got := has(v.(*View).Unstable()); got != step.want(name) {
				t.Errorf("%s is exported: %s is %t", step.what, name, got)
			}
			if got := has(v.As(&vfs.Caller{UID: 7}).(*View).Unstable()); got != step.want(name) {
				t.Errorf("%s is exported: another caller's %s is %t", step.what, name, got)
			}
		}
		if !vfs.Has[vfs.Watcher](v) {
			t.Errorf("%s is exported: nothing can be watched", step.what)
		}
	}
}

// TestFilePowersAreTheirs checks that a file has no power that the file below lacks.
func TestFilePowersAreTheirs(t *testing.T) {
	table := testTable(t, Key{}, Export{Path: "/", FS: memory()})
	_, h := put(t, table.As(nil), "f")
	f, _, err := table.As(nil).Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	if !vfs.Has[vfs.HoleSeeker](f) || vfs.Has[vfs.HostFiler](f) {
		t.Error("the powers are not those of a file in memory")
	}
	if err := f.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// usePowers calls every power of a view with a handle.
func usePowers(t *testing.T, v *View, h vfs.Handle) map[string]error {
	ctx := t.Context()
	l := &vfs.Lock{Exclusive: true, Len: 7}
	_, acl := v.ACL(ctx, h)
	_, xattrs := v.Xattrs(ctx, h)
	_, xattr := v.Xattr(ctx, h, "user.a")
	got, free, test := v.TestLock(ctx, h, l)
	if test == nil && (free || got != *l) {
		t.Errorf("TestLock: %+v, %t", got, free)
	}
	if _, _, err := v.Put(ctx, h, "f", 0o644, nil); err == nil {
		t.Error("a view that makes changes stable puts what it cannot sync")
	}
	made, _, putErr := v.Unstable().Put(ctx, h, "f", 0o644, nil)
	if putErr == nil && made != h { // the mighty one returns the directory
		t.Error("Put returns a handle that is not sealed")
	}
	return map[string]error{
		"put": putErr, "acl": acl, "setacl": v.SetACL(ctx, h, vfs.ACL{}), "testlock": test,
		"xattrs": xattrs, "xattr": xattr, "setxattr": v.SetXattr(ctx, h, "user.a", nil, vfs.XattrEither), "removexattr": v.RemoveXattr(ctx, h, "user.a"),
		"lock": v.Lock(ctx, h, l), "shared lock": v.Lock(ctx, h, &vfs.Lock{Len: 7}), "unlock": v.Unlock(ctx, h, l),
	}
}

// TestPowersAreGuarded checks that powers get unsealed handles, and that rules hold for
// powers as for all calls.
func TestPowersAreGuarded(t *testing.T) {
	below := newMighty()
	inner, _, err := below.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := testTable(t, Key{}, Export{Path: "/", FS: below})
	v := table.For(remote("192.0.2.7:700"), nil)
	root, _, err := v.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what        string
		export      Export
		h           vfs.Handle
		want, write error
	}{
		{"allowed", Export{Path: "/", FS: below}, root, nil, nil},
		{"read-only", Export{Path: "/", FS: below, ReadOnly: true}, root, nil, vfs.ErrROFS},
		{"read-only by the rule", Export{Path: "/", FS: below, Clients: []Rule{{Match: "*", ReadOnly: true}}}, root, nil, vfs.ErrROFS},
		{"refused", Export{Path: "/", FS: below, Clients: []Rule{{Match: "10.0.0.1"}}}, root, vfs.ErrAccess, vfs.ErrAccess},
		{"unsealed", Export{Path: "/", FS: below}, inner, vfs.ErrBadHandle, vfs.ErrBadHandle},
		{"powerless", Export{Path: "/", FS: struct{ vfs.FS }{&probeFS{}}}, root, vfs.ErrNotSupp, vfs.ErrNotSupp},
	} {
		if err := table.Replace(x.export); err != nil {
			t.Fatal(err)
		}
		*below.used = nil
		for name, err := range usePowers(t, v, x.h) {
			want := x.want
			if slices.Contains([]string{"setacl", "setxattr", "removexattr", "lock", "put"}, name) {
				want = x.write
			}
			if !errors.Is(err, want) {
				t.Errorf("%s: %s is %v, want %v", x.what, name, err, want)
			}
		}
		if slices.ContainsFunc(*below.used, func(h vfs.Handle) bool { return h != inner }) {
			t.Errorf("%s: a sealed handle has reached the file system", x.what)
		}
	}
}

// TestReleaseLocks frees the locks in all file systems, once in each.
func TestReleaseLocks(t *testing.T) {
	a, b := newMighty(), newMighty()
	table := testTable(t, Key{}, Export{Path: "/a", FS: a}, Export{Path: "/a2", FS: a},
		Export{Path: "/b", FS: b, Clients: []Rule{{Match: "10.0.0.1"}}}, Export{Path: "/c", FS: memory()})
	err := table.For(remote("192.0.2.7:700"), nil).ReleaseLocks(t.Context(), func(*vfs.Owner) bool { return true })
	if err != nil || *a.released != 1 || *b.released != 1 {
		t.Errorf("%d and %d, %v; want once in each", *a.released, *b.released, err)
	}
	for fs, u := range table.users {
		if u.busy() {
			t.Errorf("%T is still in use", fs)
		}
	}
}

// TestWalk: what a walk through a view finds is what lookups find, sealed; it ends where the
// caller may not go on, and at a file system without the power it does not begin.
func TestWalk(t *testing.T) {
	table := testTable(t, Key{7}, Export{Path: "/", FS: newMighty()})
	v := table.As(nil)
	dir, _, err := v.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c"}
	want := []vfs.Handle{dir}
	for _, name := range names {
		h, _, _, err := v.Create(t.Context(), want[len(want)-1], name, &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o777}})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, h)
	}
	w, ok := vfs.As[vfs.Walker](v)
	if !ok {
		t.Fatal("a view cannot walk")
	}
	for n := range len(names) + 1 {
		got, at := w.Walk(t.Context(), dir, append(slices.Clone(names[:n]), "none"))
		if got != n || n > 0 && (at.Handle != want[n] || at.Dir != want[n-1] || at.Name != names[n-1]) || n == 0 && at != (vfs.Resolved{}) {
			t.Errorf("%d names: %d are found, and %+v", n, got, at)
		}
	}
	foreign := testTable(t, Key{8}, Export{Path: "/", FS: newMighty()}).As(nil)
	if n, at := foreign.(*View).Walk(t.Context(), dir, names); n != 0 || at != (vfs.Resolved{}) {
		t.Errorf("with a handle of another table %d names are found, and %+v", n, at)
	}
	bare := testTable(t, Key{7}, Export{Path: "/", FS: struct{ vfs.FS }{memory()}}).As(nil)
	root, _, err := bare.Root(t.Context())
	if n, _ := bare.(*View).Walk(t.Context(), root, names); n != 0 || err != nil {
		t.Errorf("without the power %d names are found; %v", n, err)
	}
}
