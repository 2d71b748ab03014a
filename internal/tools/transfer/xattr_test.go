package transfer

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// mark gives what is called name an extended attribute.
func (e *end) mark(name, attribute, value string) {
	e.t.Helper()
	if err := e.fs.(vfs.Xattrer).SetXattr(context.Background(), e.source(name).Handle, attribute, []byte(value), vfs.XattrEither); err != nil {
		e.t.Fatal(err)
	}
}

// marks are the extended attributes of what is called name.
func (e *end) marks(name string) map[string]string {
	e.t.Helper()
	x, h := e.fs.(vfs.Xattrer), e.source(name).Handle
	names, err := x.Xattrs(context.Background(), h)
	if err != nil {
		e.t.Fatal(err)
	}
	all := make(map[string]string)
	for _, name := range names {
		value, err := x.Xattr(context.Background(), h, name)
		if err != nil {
			e.t.Fatal(err)
		}
		all[name] = string(value)
	}
	return all
}

// capable is a file system that has capabilities as well, whatever is done with them.
type capable struct {
	*memfs.FS
	out *hooks
	err error // of SetXattr
}

func (f *capable) Xattrs(ctx context.Context, h vfs.Handle) ([]string, error) {
	names, err := f.FS.Xattrs(ctx, h)
	return append([]string{xattrCapability}, names...), err
}

func (f *capable) Xattr(ctx context.Context, h vfs.Handle, name string) ([]byte, error) {
	if name == xattrCapability {
		return []byte("all"), nil
	}
	return f.FS.Xattr(ctx, h, name)
}

func (f *capable) SetXattr(ctx context.Context, h vfs.Handle, name string, value []byte, how vfs.XattrHow) error {
	switch {
	case f.err != nil:
		return f.err
	case name == xattrCapability:
		return f.out.fault(ctx, "setcap", h)
	}
	return f.FS.SetXattr(ctx, h, name, value, how)
}

// TestXattrs: a copy has the extended attributes of the source before it gets its name. Those of
// users are set before the mode, which may forbid it; the capability behind the owner and the
// mode, which take it away, and only if the copy has the source's owner.
func TestXattrs(t *testing.T) {
	for _, owned := range []bool{true, false} {
		var out hooks
		src := newEnd(t, &capable{memfs.New(memfs.Options{}), new(hooks), nil})
		to := memfs.New(memfs.Options{Fault: out.fault})
		dst := newEnd(t, &capable{to, &out, nil})
		src.file("f", pattern(1000))
		src.set(src.source("f").Handle, vfs.SetAttr{Valid: vfs.MaskUID, UID: 500})
		want := map[string]string{"user.a": "one", "user.empty": "", "user.large": string(pattern(vfs.MaxXattr))}
		for name, value := range want {
			src.mark("f", name, value)
		}
		o := options(t)
		if owned {
			o.Owners = new(Owners)
		}
		out.start(0, nil)
		res, err := File(t.Context(), src.source("f"), dst.target("f"), o)
		if err != nil || res.Lost != (Lost{Xattr: !owned}) || !res.Marked {
			t.Fatalf("owned %v: %+v, %v", owned, res, err)
		}
		calls := []string{"open", "write", "setxattr", "setxattr", "setxattr", "setattr", "setcap", "close", "rename"}
		if !owned {
			calls = slices.DeleteFunc(calls, func(op string) bool { return op == "setcap" })
		}
		if !slices.Equal(out.ops, calls) {
			t.Errorf("owned %v: the destination was asked for %q, want %q", owned, out.ops, calls)
		}
		got := newEnd(t, to).marks("f")
		if !maps.Equal(got, want) {
			t.Errorf("owned %v: the copy has %d attributes, want %d", owned, len(got), len(want))
		}
		dst.same("f", pattern(1000), 0o640)
	}
}

// TestXattrsLost: a destination without extended attributes, or that refuses them or has no room,
// gets a copy without them, and that is told; a disk that fails is an error. A directory and a
// copy that was made before keep what they have, and only what differs is set.
func TestXattrsLost(t *testing.T) {
	for err, lost := range map[error]bool{
		vfs.ErrNotSupp: true, vfs.ErrPerm: true, vfs.ErrAccess: true, vfs.ErrNoSpace: true, vfs.ErrXattr2Big: true, vfs.ErrIO: false, nil: true,
	} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		src.file("f", pattern(1000))
		src.mark("f", "user.a", "one")
		to := dst.target("f")
		if to.FS = (struct{ vfs.FS }{dst.fs}); err != nil { // else it knows none
			to.FS = &capable{dst.fs.(*memfs.FS), new(hooks), err}
		}
		res, cerr := File(t.Context(), src.source("f"), to, options(t))
		if lost != (cerr == nil) || lost != res.Lost.Xattr {
			t.Errorf("%v: %+v, %v", err, res.Lost, cerr)
		}
		dst.noTemps()
	}
}

// TestKeepXattrs: of a copy that was made before only what differs is set, and it keeps what the
// source does not have.
func TestKeepXattrs(t *testing.T) {
	var out hooks
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: out.fault})
	for _, e := range []*end{src, dst} {
		e.file("f", nil)
		e.mark("f", "user.same", "value")
	}
	src.mark("f", "user.other", "1")
	dst.mark("f", "user.other", "2")
	dst.mark("f", "user.own", "3")
	want := map[string]string{"user.same": "value", "user.other": "1", "user.own": "3"}
	for run := range 2 {
		out.start(0, nil)
		from := src.source("f")
		set, lost, err := from.KeepXattrs(t.Context(), dst.fs, dst.source("f").Handle, true)
		if got := dst.marks("f"); err != nil || lost || set != (run == 0) || !maps.Equal(got, want) {
			t.Errorf("run %d: set %v, lost %v, %v: %v", run, set, lost, err, got)
		}
		if n := out.count("setxattr"); n != 1-run {
			t.Errorf("run %d: %d were set", run, n)
		}
	}
}

// TestDifferingXattrs: attributes that one side alone has, or that have other values. A
// destination that cannot be asked has none; of a source that cannot nothing is known.
func TestDifferingXattrs(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	for _, e := range []*end{src, dst} {
		e.file("f", nil)
		e.mark("f", "user.same", "value")
	}
	src.mark("f", "user.other", "1")
	dst.mark("f", "user.other", "2")
	src.mark("f", "user.here", "")
	dst.mark("f", "user.there", "")
	a, b := src.source("f"), dst.source("f")
	for _, c := range []struct {
		a, b       vfs.FS
		want, more []string
	}{
		{src.fs, dst.fs, []string{"user.here", "user.other"}, []string{"user.there"}},
		{src.fs, struct{ vfs.FS }{dst.fs}, []string{"user.here", "user.other", "user.same"}, nil},
		{struct{ vfs.FS }{src.fs}, dst.fs, nil, nil},
	} {
		a.FS, b.FS = c.a, c.b
		if got, more, err := DifferingXattrs(t.Context(), &a, &b); err != nil || !slices.Equal(got, c.want) || !slices.Equal(more, c.more) {
			t.Errorf("%q and %q, %v, want %q and %q", got, more, err, c.want, c.more)
		}
	}
}

// trusting is a file system whose symbolic links and pipes have an extended attribute, too.
type trusting struct {
	*memfs.FS
	value map[vfs.Handle]string
}

func (f *trusting) Xattrs(_ context.Context, h vfs.Handle) (names []string, err error) {
	if _, ok := f.value[h]; ok {
		names = []string{"trusted.a"}
	}
	return names, nil
}

func (f *trusting) Xattr(_ context.Context, h vfs.Handle, _ string) ([]byte, error) {
	value, ok := f.value[h]
	if !ok {
		return nil, vfs.ErrNoXattr
	}
	return []byte(value), nil
}

func (f *trusting) SetXattr(_ context.Context, h vfs.Handle, _ string, value []byte, _ vfs.XattrHow) error {
	f.value[h] = string(value)
	return nil
}

// TestNodeXattrs: the copy of a link or a pipe has the extended attributes of the source, or they are lost.
func TestNodeXattrs(t *testing.T) {
	for _, kind := range []vfs.CreateHow{{Type: vfs.TypeSymlink, Target: "x"}, {Type: vfs.TypeFIFO}} {
		from := &trusting{memfs.New(memfs.Options{}), make(map[vfs.Handle]string)}
		src := newEnd(t, from)
		copy := Node
		if kind.Type == vfs.TypeSymlink {
			copy = Symlink
		}
		h, _, _, err := src.fs.Create(t.Context(), src.root, "f", &kind)
		if err != nil {
			t.Fatal(err)
		}
		from.value[h] = "value"
		to := &trusting{memfs.New(memfs.Options{}), make(map[vfs.Handle]string)}
		dst := newEnd(t, to)
		for range 2 { // also one that is there already
			res, err := copy(t.Context(), src.source("f"), dst.target("f"), options(t))
			if err != nil || res.Lost.Xattr || to.value[res.Handle] != "value" {
				t.Errorf("%v: %v, %+v, %q", kind.Type, err, res.Lost, to.value)
			}
		}
		plain := newEnd(t, memfs.New(memfs.Options{}))
		if res, err := copy(t.Context(), src.source("f"), plain.target("f"), options(t)); err != nil || !res.Lost.Xattr {
			t.Errorf("%v: %v, %+v", kind.Type, err, res.Lost)
		}
	}
}
