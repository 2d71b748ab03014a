package job

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// swapped is a source under whose root something else is served after a while: every handle
// but the root's is stale, and the root has none of the names.
type swapped struct {
	vfs.FS
	root  vfs.Handle
	how   string // what becomes of the root: "stale", "another", "removed", "same"
	after int64  // how many files or directories are opened before

	opened atomic.Int64
	asked  atomic.Int64 // GETATTRs of the root after that
}

func (f *swapped) now() bool { return f.opened.Load() > f.after }

func (f *swapped) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if f.opened.Add(1); f.now() {
		return nil, vfs.Opened{}, vfs.ErrStale
	}
	return f.FS.Open(ctx, at, how)
}

func (f *swapped) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	if f.opened.Add(1); f.now() && dir != f.root {
		return func(yield func(*vfs.Entry, error) bool) { yield(nil, vfs.ErrStale) }
	}
	return f.FS.ReadDir(ctx, dir, from, want, n)
}

func (f *swapped) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, d vfs.Attr, err error) {
	switch {
	case !f.now():
		return f.FS.Lookup(ctx, dir, name)
	case dir == f.root && f.how != "stale":
		return h, a, d, vfs.ErrNoEnt
	}
	return h, a, d, vfs.ErrStale
}

func (f *swapped) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	a, err := f.FS.GetAttr(ctx, h, want)
	if !f.now() {
		return a, err
	}
	if h == f.root {
		f.asked.Add(1)
	}
	switch {
	case f.how == "stale" || h != f.root:
		return vfs.Attr{}, vfs.ErrStale
	case f.how == "another":
		a.FileID += 1000
	case f.how == "removed":
		a.Nlink = 0
	}
	return a, err
}

// TestSourceGone: a source that is lost as a whole ends the job with one error, like one that
// has stopped answering. It is no success of vanished items.
func TestSourceGone(t *testing.T) {
	for _, how := range []string{"stale", "another", "removed"} {
		for _, after := range []int64{0, 1, 7, 8, 100, 306} {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			manyFiles(src, 300)
			f := &swapped{FS: src.fs, root: src.root, how: how, after: after}
			o, v := options(t, newTree(t, f), dst, "copy")
			s, err := Copy(t.Context(), o)
			if !errors.Is(err, ErrGone) || s.ExitCode(err) != ExitUnreachable {
				t.Errorf("%s after %d: %v, %+v\n%s", how, after, err, s, v)
			}
			if n := f.asked.Load(); n > 3+300/maxUnsure {
				t.Errorf("%s after %d: the root was asked for %d times", how, after, n)
			}
			whole(t, how, src, dst, "copy")
		}
	}
}

// TestVerifySourceGone: it ends a verification likewise.
func TestVerifySourceGone(t *testing.T) {
	for _, how := range []string{"stale", "another", "removed"} {
		for _, after := range []int64{0, 1, 7, 30} {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			manyFiles(src, 300)
			manyFiles(dst, 300)
			f := &swapped{FS: src.fs, root: src.root, how: how, after: after}
			o, v := options(t, newTree(t, f), dst, "")
			s, err := Verify(t.Context(), VerifyOptions{Source: o.Source, Dest: o.Dest, Pool: o.Pool, Now: o.Now, Progress: o.Progress})
			if !errors.Is(err, ErrGone) || s.ExitCode(err) != ExitUnreachable {
				t.Errorf("%s after %d: %v, %+v\n%s", how, after, err, s, v)
			}
		}
	}
}

// TestSourceStays: whatever vanishes from a source that is still there is reported, and the
// source is not asked for each item.
func TestSourceStays(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	for i := range 1000 {
		src.file(string(rune('a'+i%26))+strings.Repeat("x", i/26), 0o644, []byte("text"))
	}
	f := &swapped{FS: src.fs, root: src.root, how: "same", after: 100}
	o, v := options(t, newTree(t, f), dst, "copy")
	s, err := Copy(t.Context(), o)
	if err != nil || s.Vanished < 800 || s.Vanished+s.Files != 1000 || s.Errors > 0 || len(v.list) != int(s.Vanished) {
		t.Errorf("%v, %+v, %d events\n%.2000s", err, s, len(v.list), v)
	}
	if n := f.asked.Load(); n > 3+1000/maxUnsure {
		t.Errorf("the root was asked for %d times", n)
	}
}

// TestSourceReplacedAlike: the source's names are there, but are those of files of another
// directory.
func TestSourceReplacedAlike(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	for _, name := range []string{"a", "b", "c"} {
		src.file("d/"+name, 0o644, []byte("text"))
	}
	sub := src.at("d")
	f := &lookalike{swapped: &swapped{FS: src.fs, root: sub, how: "another", after: 1}}
	o, v := options(t, newTree(t, f), dst, "copy")
	o.Source.Handle = sub
	s, err := Copy(t.Context(), o)
	if !errors.Is(err, ErrGone) || s.ExitCode(err) != ExitUnreachable {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
}

// lookalike is a source whose handles become stale once; its names are other files' then.
type lookalike struct {
	*swapped
	dead atomic.Bool
}

func (f *lookalike) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if f.opened.Add(1); f.now() && !f.dead.Swap(true) {
		return nil, vfs.Opened{}, vfs.ErrStale
	}
	file, o, err := f.FS.Open(ctx, at, how)
	if f.dead.Load() {
		o.Attr.FileID += 1000
	}
	return file, o, err
}

func (f *lookalike) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	h, a, d, err := f.FS.Lookup(ctx, dir, name)
	if f.dead.Load() {
		a.FileID += 1000
	}
	return h, a, d, err
}

// TestSingleGone: a single object that is gone when it is to be copied is no success.
func TestSingleGone(t *testing.T) {
	for _, kind := range []vfs.Type{vfs.TypeReg, vfs.TypeSymlink} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		src.make("f", vfs.CreateHow{Type: kind, Target: "t", Set: mode(0o644)})
		f := &vanishing{FS: src.fs}
		o, v := options(t, newTree(t, f), dst, "copy")
		o.Source.Handle, o.SourceDir, o.SourceName = src.at("f"), src.root, "f"
		s, err := Copy(t.Context(), o)
		if !errors.Is(err, ErrGone) || s.ExitCode(err) != ExitUnreachable || s.Vanished > 0 {
			t.Errorf("%v: %v, %+v\n%s", kind, err, s, v)
		}
	}
}

// vanishing is a source in which nothing can be read any more.
type vanishing struct{ vfs.FS }

func (vanishing) Open(context.Context, vfs.At, *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	return nil, vfs.Opened{}, vfs.ErrStale
}

func (vanishing) Readlink(context.Context, vfs.Handle) (string, vfs.Attr, error) {
	return "", vfs.Attr{}, vfs.ErrStale
}

func (vanishing) Lookup(context.Context, vfs.Handle, string) (h vfs.Handle, a, d vfs.Attr, err error) {
	return h, a, d, vfs.ErrNoEnt
}
