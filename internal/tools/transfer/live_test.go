package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// named is what is called name, as one that was listed.
func (e *end) named(name string) Source {
	e.t.Helper()
	s := e.source(name)
	s.Dir, s.Name = e.root, name
	return s
}

func (e *end) rename(from, to string) {
	e.t.Helper()
	if _, _, err := e.fs.Rename(context.Background(), e.root, from, e.root, to); err != nil {
		e.t.Fatal(err)
	}
}

func (e *end) remove(name string) {
	e.t.Helper()
	if _, err := e.fs.Remove(context.Background(), e.root, name, false); err != nil {
		e.t.Fatal(err)
	}
}

// append writes at the end of a file, as a program that logs does.
func (e *end) append(h vfs.Handle, b []byte) {
	e.t.Helper()
	ctx := context.Background()
	a, err := e.fs.GetAttr(ctx, h, vfs.MaskSize)
	if err != nil {
		e.t.Fatal(err)
	}
	e.write(h, b, a.Size)
}

func (e *end) write(h vfs.Handle, b []byte, off uint64) {
	e.t.Helper()
	ctx := context.Background()
	f, _, err := e.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := vfs.WriteFull(ctx, f, b, off, vfs.FileSync, new(vfs.Written)); err != nil {
		e.t.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		e.t.Fatal(err)
	}
}

// onRead has f called at each read of the source, and not by what f itself does.
func onRead(k *hooks, f func()) {
	var mu sync.Mutex
	busy := false
	k.mu.Lock()
	defer k.mu.Unlock()
	k.before = func(op string) {
		mu.Lock()
		now := op == "read" && !busy
		busy = busy || now
		mu.Unlock()
		if now {
			f()
			mu.Lock()
			busy = false
			mu.Unlock()
		}
	}
}

// TestSourceReplaced: of a name that is given to another file after it was listed,
// that file is copied.
func TestSourceReplaced(t *testing.T) {
	for _, size := range []int{0, 1000, 300_000} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		src.file("f", []byte("old"))
		from, want := src.named("f"), pattern(size)
		src.file("new", want)
		src.rename("new", "f")
		res, err := File(t.Context(), from, dst.target("f"), options(t))
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if id := src.source("f").Attr.FileID; res.Source.FileID != id || res.Grew {
			t.Errorf("%d bytes: the result is of file %d, want %d; %+v", size, res.Source.FileID, id, res)
		}
		dst.same("f", want, 0o640)
		dst.noTemps()
	}
}

// TestSourceVanished: a name that is gone, or another type's, is told from a failure.
func TestSourceVanished(t *testing.T) {
	for _, c := range []struct {
		now  string
		do   func(e *end)
		want error
	}{
		{"nothing", func(*end) {}, ErrVanished},
		{"a link", func(e *end) { e.make("f", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"}) }, ErrChanged},
		{"a directory", func(e *end) { e.make("f", vfs.CreateHow{Type: vfs.TypeDir}) }, ErrChanged},
	} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		src.file("f", pattern(1000))
		from := src.named("f")
		src.remove("f")
		c.do(src)
		if _, err := File(t.Context(), from, dst.target("f"), options(t)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.now, err)
		}
		if names := dst.names(); len(names) > 0 {
			t.Errorf("%s: the destination holds %q", c.now, names)
		}
	}
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.make("l", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "old"})
	gone, replaced := src.named("l"), src.named("l")
	src.remove("l")
	if _, err := Symlink(t.Context(), gone, dst.target("l"), options(t)); !errors.Is(err, ErrVanished) {
		t.Errorf("a link that is gone: %v", err)
	}
	src.make("l", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "new"})
	if _, err := Symlink(t.Context(), replaced, dst.target("l"), options(t)); err != nil {
		t.Errorf("a link that was replaced: %v", err)
	}
	if target, _, err := dst.fs.Readlink(t.Context(), dst.source("l").Handle); target != "new" || err != nil {
		t.Errorf("the link leads to %q, %v", target, err)
	}
}

// restless gives a name to another file whenever it is looked up.
type restless struct {
	vfs.FS
	next func()
}

func (f *restless) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	h, a, d, err := f.FS.Lookup(ctx, dir, name)
	f.next()
	return h, a, d, err
}

// TestSourceKeepsBeingReplaced: what always is another file has changed.
func TestSourceKeepsBeingReplaced(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("f", pattern(1000))
	from := src.named("f")
	looks := 0
	next := func() {
		looks++
		src.file("new", pattern(1000))
		src.rename("new", "f")
	}
	next()
	from.FS = &restless{src.fs, next}
	if _, err := File(t.Context(), from, dst.target("f"), options(t)); !errors.Is(err, ErrChanged) || looks != maxLookups+1 {
		t.Errorf("%v, after %d look-ups", err, looks-1)
	}
	dst.noTemps()
}

// TestStaleDestination: that something of the destination is gone is no reason to look
// for the source.
func TestStaleDestination(t *testing.T) {
	var in hooks
	src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{})
	src.file("f", pattern(1000))
	from := src.named("f")
	to := dst.target("f")
	to.FS = &openFS{dst.fs, func(f vfs.File) vfs.File { return &failing{f, vfs.ErrStale} }}
	in.start(0, nil)
	if _, err := File(t.Context(), from, to, options(t)); !errors.Is(err, vfs.ErrStale) || errors.Is(err, ErrVanished) || in.count("lookup") > 0 {
		t.Errorf("%v, after %d look-ups", err, in.count("lookup"))
	}
}

// failing fails its writes.
type failing struct {
	vfs.File
	err error
}

func (f *failing) WriteAt(context.Context, []byte, uint64, vfs.Stability, *vfs.Written) (int, error) {
	return 0, f.err
}

// TestSourceGrows: a file that is appended to all the time is kept as it was at
// first, with the mtime that it had then.
func TestSourceGrows(t *testing.T) {
	for _, size := range []int{0, 1000, 64 << 10, 300_000} {
		for _, listed := range []bool{true, false} { // or opened: the attributes
			if size == 0 && listed {
				continue // there is something to read at the second attempt
			}
			t.Run(fmt.Sprint(size, listed), func(t *testing.T) {
				var in hooks
				src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{})
				want := pattern(size)
				src.file("f", want)
				from := src.named("f")
				grow := func() { src.append(from.Handle, []byte("one more line\n")) }
				if listed {
					from.FS = &bare{src.fs}
				}
				if size == 0 {
					from.FS = &lastLook{from.FS, grow}
				} else {
					onRead(&in, grow)
				}
				res, err := File(t.Context(), from, dst.target("f"), options(t))
				if err != nil {
					t.Fatal(err)
				}
				if !res.Grew || res.Bytes != res.Source.Size || res.Bytes < uint64(size) {
					t.Errorf("%+v", res)
				}
				got := dst.contents("f")
				if !bytes.HasPrefix(got, want) || uint64(len(got)) != res.Bytes {
					t.Errorf("%d bytes are not a beginning of the source; %d were told", len(got), res.Bytes)
				}
				if a := dst.source("f").Attr; !a.Mtime.Equal(res.Source.Mtime) {
					t.Errorf("mtime %v, want %v", a.Mtime, res.Source.Mtime)
				}
				dst.noTemps()
			})
		}
	}
}

// bare opens without attributes, as NFS does.
type bare struct{ vfs.FS }

func (f *bare) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.FS.Open(ctx, at, how)
	opened.Attr = vfs.Attr{}
	return file, opened, err
}

// lastLook does something before attributes are asked for.
type lastLook struct {
	vfs.FS
	do func()
}

func (f *lastLook) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	f.do()
	return f.FS.GetAttr(ctx, h, want)
}

// TestSourceIsWrittenAnew: one that is cut and becomes longer than it was, or that is
// cut short, while it is read has not merely grown.
func TestSourceIsWrittenAnew(t *testing.T) {
	const size = 300_000
	other := bytes.ToUpper(bytes.Repeat([]byte("something else\n"), 30_000))
	for _, n := range []int{len(other), 100_000, 10} {
		var in hooks
		src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{})
		src.file("f", pattern(size))
		from := src.named("f")
		reads := 0
		onRead(&in, func() {
			if reads++; reads == 3 {
				src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskSize})
				src.write(from.Handle, other[:n], 0)
			}
		})
		o := options(t)
		o.Window = 1
		res, err := File(t.Context(), from, dst.target("f"), o)
		if err != nil || res.Grew {
			t.Errorf("%d bytes: %+v, %v", n, res, err)
		}
		if !bytes.Equal(dst.contents("f"), other[:n]) {
			t.Errorf("%d bytes: the copy is not what was written last", n)
		}
		dst.noTemps()
	}
}

// TestSourceIsRelabelled: a file whose ctime alone changes at each read, since others
// link it and change its rights, is copied; one that is written to and dated back
// meanwhile is not kept as it was half before and half after.
func TestSourceIsRelabelled(t *testing.T) {
	for _, size := range []int{1000, 300_000} {
		var in hooks
		src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{})
		want := pattern(size)
		src.file("f", want)
		from, mode := src.named("f"), uint32(0)
		onRead(&in, func() {
			mode++
			src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode & 0o777})
		})
		if _, err := File(t.Context(), from, dst.target("f"), options(t)); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		} else if !bytes.Equal(dst.contents("f"), want) {
			t.Errorf("%d bytes: the copy is another", size)
		}
		dst.noTemps()
	}
	var in hooks
	src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{})
	want := pattern(300_000)
	src.file("f", want)
	from := src.named("f")
	times := from.Attr.Mtime
	reads := 0
	onRead(&in, func() {
		if reads++; reads == 3 {
			copy(want, "written to and dated back")
			src.write(from.Handle, want[:100], 0)
			src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: times})
		}
	})
	o := options(t)
	o.Window = 1
	if _, err := File(t.Context(), from, dst.target("f"), o); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(dst.contents("f"), want) {
		t.Error("the copy has the beginning of before and the end of after")
	}
}
