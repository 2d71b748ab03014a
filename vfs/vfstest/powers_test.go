package vfstest

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestPowers proves the powers of the bottom itself.
func TestPowers(t *testing.T) {
	RunPowers(t, PowersConfig{New: func(_ *testing.T, over vfs.FS) vfs.FS { return over }})
}

// TestEveryPowerIsProved looks for a test, or a reason, for every optional interface of
// package vfs.
func TestEveryPowerIsProved(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	contract := []string{"FS", "File", "Unwrapper", "Holder"}
	n := 0
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(node ast.Node) bool {
			d, ok := node.(*ast.TypeSpec)
			if !ok || !d.Name.IsExported() || slices.Contains(contract, d.Name.Name) {
				return true
			}
			if _, ok := d.Type.(*ast.InterfaceType); !ok {
				return true
			}
			n++
			proved := slices.ContainsFunc(powersTests, func(p test) bool {
				return strings.EqualFold(strings.ReplaceAll(p.name, "-", ""), d.Name.Name)
			})
			if _, reason := unproved[d.Name.Name]; proved == reason {
				t.Errorf("vfs.%s: no test proves it, and no reason is given", d.Name.Name)
			}
			return true
		})
	}
	if n < 10 {
		t.Errorf("package vfs has %d powers?", n)
	}
}

// lies are wrappers of the bottom that claim a power that they lack or do not fulfil,
// each with the test that finds it.
var lies = map[string]struct {
	test string
	make func(vfs.FS) vfs.FS
}{
	"syncs-nothing":           {"syncer", func(f vfs.FS) vfs.FS { return syncsNothing{passes{f}} }},
	"syncs-what-is-stable":    {"syncer", func(f vfs.FS) vfs.FS { return syncsAll{passes{f}} }},
	"hides-that-it-must-sync": {"syncer", func(f vfs.FS) vfs.FS { return struct{ vfs.FS }{f} }},
	"puts-half":               {"putter", func(f vfs.FS) vfs.FS { return putsHalf{passes{f}} }},
	"walks-past-links":        {"walker", func(f vfs.FS) vfs.FS { return walksOn{passes{f}} }},
	"locks-nothing":           {"locker", func(f vfs.FS) vfs.FS { return locksNothing{passes{f}} }},
	"grants-nothing":          {"acler", func(f vfs.FS) vfs.FS { return grantsNothing{passes{f}} }},
	"marks-nothing":           {"xattrer", func(f vfs.FS) vfs.FS { return marksNothing{passes{f}} }},
	"opens-another":           {"host-opener", func(f vfs.FS) vfs.FS { return opensAnother{passes{f}} }},
	"tells-nobody":            {"watcher", func(f vfs.FS) vfs.FS { return tellsNobody{passes{f}} }},
	"loses-what-it-forgets":   {"forgetter", func(f vfs.FS) vfs.FS { return forgetsAll{passes{f}} }},
	"sees-only-holes":         {"hole-seeker", func(f vfs.FS) vfs.FS { return wraps{passes{f}, func(g vfs.File) vfs.File { return seesHoles{g} }} }},
	"hands-out-another":       {"host-filer", func(f vfs.FS) vfs.FS { return wraps{passes{f}, func(g vfs.File) vfs.File { return handsOut{g} }} }},
	"appends-over": {"appender", func(f vfs.FS) vfs.FS {
		return wraps{passes{f}, func(g vfs.File) vfs.File { return &appendsOver{File: g} }}
	}},
	"drops-nothing": {"dropper", func(f vfs.FS) vfs.FS { return wraps{passes{f}, func(g vfs.File) vfs.File { return dropsNothing{g} }} }},
	// Powers below bypass the bytes that these wrappers keep.
	"syncs-around": {"syncer", func(f vfs.FS) vfs.FS { return keeps(f, (*vfs.Syncer)(nil)) }},
	"locks-around": {"locker", func(f vfs.FS) vfs.FS { return keeps(f, (*vfs.Locker)(nil)) }},
	"lists-around": {"acler", func(f vfs.FS) vfs.FS { return keeps(f, (*vfs.ACLer)(nil)) }},
	"walks-around": {"walker", func(f vfs.FS) vfs.FS { return keeps(f, (*vfs.Walker)(nil)) }},
	"opens-around": {"host-opener", func(f vfs.FS) vfs.FS { return keeps(f, (*vfs.HostOpener)(nil)) }},
}

// passes passes all powers on.
type passes struct{ vfs.FS }

func (p passes) Unwrap() any { return p.FS }

type syncsNothing struct{ passes }

func (syncsNothing) Sync(context.Context, vfs.Handle) error { return nil }

// syncsAll has the power by its methods alone, as write-behind over a server once had.
type syncsAll struct{ passes }

func (s syncsAll) Sync(ctx context.Context, h vfs.Handle) error {
	if below, ok := vfs.As[vfs.Syncer](s.FS); ok {
		return below.Sync(ctx, h)
	}
	return nil
}

// walksOn takes a symbolic link for what a walk has found.
type walksOn struct{ passes }

func (w walksOn) As(c *vfs.Caller) vfs.FS { return walksOn{passes{w.FS.As(c)}} }

func (w walksOn) Walk(ctx context.Context, dir vfs.Handle, names []string) (n int, at vfs.Resolved) {
	for at.Handle = dir; n < len(names); n++ {
		h, attr, _, err := w.Lookup(ctx, at.Handle, names[n])
		if err != nil {
			break
		}
		at = vfs.Resolved{Handle: h, Attr: attr, Dir: at.Handle, Name: names[n]}
	}
	return n, at
}

type locksNothing struct{ passes }

func (locksNothing) Lock(context.Context, vfs.Handle, *vfs.Lock) error   { return nil }
func (locksNothing) Unlock(context.Context, vfs.Handle, *vfs.Lock) error { return nil }
func (locksNothing) TestLock(context.Context, vfs.Handle, *vfs.Lock) (l vfs.Lock, free bool, err error) {
	return l, true, nil
}
func (locksNothing) ReleaseLocks(context.Context, func(*vfs.Owner) bool) error { return nil }

type putsHalf struct{ passes }

func (p putsHalf) Put(ctx context.Context, dir vfs.Handle, name string, mode uint32, data []byte) (vfs.Handle, vfs.Attr, error) {
	put, ok := vfs.As[vfs.Putter](p.FS)
	if !ok {
		return vfs.Handle{}, vfs.Attr{}, vfs.ErrNotSupp
	}
	return put.Put(ctx, dir, name, mode, data[:len(data)/2])
}

type grantsNothing struct{ passes }

func (g grantsNothing) ACL(context.Context, vfs.Handle) (vfs.ACL, error) {
	return vfs.ACL{Access: aclOf(6, 4, 0)}, nil
}
func (grantsNothing) SetACL(context.Context, vfs.Handle, vfs.ACL) error { return nil }

// marksNothing remembers an attribute above the bottom alone.
type marksNothing struct{ passes }

func (marksNothing) Xattrs(context.Context, vfs.Handle) ([]string, error) {
	return []string{"user.a"}, nil
}

func (marksNothing) Xattr(context.Context, vfs.Handle, string) ([]byte, error) {
	return []byte("value"), nil
}

func (marksNothing) SetXattr(context.Context, vfs.Handle, string, []byte, vfs.XattrHow) error {
	return nil
}
func (marksNothing) RemoveXattr(context.Context, vfs.Handle, string) error { return nil }

type opensAnother struct{ passes }

func (opensAnother) OpenHost(context.Context, vfs.Handle, *vfs.HostOpen) (*os.File, vfs.Attr, error) {
	f, err := os.Open(os.DevNull)
	return f, vfs.Attr{}, err
}

type tellsNobody struct{ passes }

func (tellsNobody) Watch(vfs.Handle, func(vfs.Change)) (func(), error) { return func() {}, nil }

// forgetsAll forgets the names as well.
type forgetsAll struct{ passes }

func (f forgetsAll) Forget(dir vfs.Handle) {
	for e, err := range f.ReadDir(context.Background(), dir, vfs.Pos{}, 0, 0) {
		if err == nil {
			_, _ = f.Remove(context.Background(), dir, string(e.Name), false)
		}
	}
}

// wraps puts a wrapper around every file.
type wraps struct {
	passes
	wrap func(vfs.File) vfs.File
}

func (w wraps) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, o, err := w.FS.Open(ctx, at, how)
	if err != nil {
		return nil, o, err
	}
	return w.wrap(f), o, nil
}

type handsOut struct{ vfs.File }

func (handsOut) HostFile() (*os.File, func(), bool) {
	f, err := os.Open(os.DevNull)
	return f, func() { _ = f.Close() }, err == nil
}

type seesHoles struct{ vfs.File }

func (seesHoles) NextData(context.Context, uint64) (uint64, error)       { return 0, vfs.ErrNXIO }
func (seesHoles) NextHole(_ context.Context, off uint64) (uint64, error) { return off, nil }

// appendsOver ignores that others append, too.
type appendsOver struct {
	vfs.File
	end uint64
}

func (a *appendsOver) Append(ctx context.Context, p []byte, how vfs.Stability, w *vfs.Written) (uint64, int, error) {
	off := a.end
	a.end += uint64(len(p))
	n, err := vfs.WriteFull(ctx, a.File, p, off, how, w)
	return off, n, err
}

type dropsNothing struct{ vfs.File }

func (dropsNothing) Drop(context.Context, uint64, uint64) error { return nil }

// keeper keeps what is written until it is read, committed or asked for, or the file is
// closed. It passes one power on that bypasses these bytes.
type keeper struct {
	passes
	power any
	files *[]*kept
}

func keeps(f vfs.FS, power any) vfs.FS { return &keeper{passes{f}, power, new([]*kept)} }

func (k *keeper) Holds(power any) bool {
	return power == k.power || power == any((*vfs.Syncer)(nil)) && vfs.Has[vfs.Syncer](k.FS)
}

// Sync writes out what is kept, unless Sync is the power that bypasses it.
func (k *keeper) Sync(ctx context.Context, h vfs.Handle) error {
	if k.power != any((*vfs.Syncer)(nil)) {
		k.flush(ctx)
	}
	if below, ok := vfs.As[vfs.Syncer](k.FS); ok {
		return below.Sync(ctx, h)
	}
	return nil
}

func (k *keeper) flush(ctx context.Context) {
	for _, f := range *k.files {
		f.flush(ctx)
	}
}

func (k *keeper) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	k.flush(ctx)
	return k.FS.GetAttr(ctx, h, want)
}

func (k *keeper) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, o, err := k.FS.Open(ctx, at, how)
	if err != nil {
		return nil, o, err
	}
	g := &kept{File: f}
	*k.files = append(*k.files, g)
	return g, o, nil
}

type kept struct {
	vfs.File
	data []byte
	off  uint64
}

func (f *kept) flush(ctx context.Context) {
	if p := f.data; p != nil {
		f.data = nil
		_, _ = f.File.WriteAt(ctx, p, f.off, vfs.Unstable, new(vfs.Written))
	}
}

func (f *kept) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	f.flush(ctx)
	if how != vfs.Unstable {
		return f.File.WriteAt(ctx, p, off, how, w)
	}
	f.data, f.off = bytes.Clone(p), off
	*w = vfs.Written{}
	return len(p), nil
}

func (f *kept) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	f.flush(ctx)
	return f.File.ReadAt(ctx, p, off, post)
}

func (f *kept) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	f.flush(ctx)
	return f.File.Commit(ctx, off, n, w)
}

func (f *kept) Close(ctx context.Context) error {
	f.flush(ctx)
	return f.File.Close(ctx)
}
