package transfer

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// proc is an FS whose files are near, and have a size of 0 whatever they hold, as in /proc.
type proc struct{ nearby }

func (f proc) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	a, err := f.nearby.GetAttr(ctx, h, want)
	a.Size = 0
	return a, err
}

func (f proc) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.nearby.Open(ctx, at, how)
	opened.Attr.Size = 0
	return file, opened, err
}

// TestUnsized: a near file whose size is 0 is read to its end, copied, verified and compared.
func TestUnsized(t *testing.T) {
	for _, size := range []int{0, 1, 5000, 600_000} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		from, o, want := src.file("f", pattern(size)), options(t), pattern(size)
		from.FS, from.Attr.Size = proc{nearby{src.fs}}, 0
		o.Verify = true
		var moved int64
		o.Moved = func(n int64) { moved += n }
		res, err := File(t.Context(), from, dst.target("f"), o)
		if err != nil || !res.Verified || res.Bytes != uint64(size) || moved != int64(size) {
			t.Fatalf("%d bytes: %v, %d moved, %+v", size, err, moved, res)
		}
		dst.same("f", want, 0o640)
		dst.noTemps()
		cmp, unsized, err := CompareUnsized(t.Context(), from, dst.source("f"), o)
		if err != nil || unsized != (size > 0) || cmp.Differ || unsized && cmp.Bytes != uint64(size) {
			t.Errorf("%d bytes are compared: %v, %v, %+v", size, err, unsized, cmp)
		}
		if size == 0 {
			continue
		}
		dst.file("short", want[:size/2])
		cmp, _, err = CompareUnsized(t.Context(), from, dst.source("short"), o)
		if err != nil || !cmp.Differ || cmp.Offset != uint64(size/2) {
			t.Errorf("%d bytes are compared with half of them: %v, %+v", size, err, cmp)
		}
	}
}

// TestWasEmpty: a near file that was empty when it was listed, and has bytes by now, is copied as
// it is now.
func TestWasEmpty(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("f", nil)
	from := src.named("f")
	src.write(from.Handle, pattern(3000), 0)
	from.FS = nearby{src.fs}
	if _, unsized, err := CompareUnsized(t.Context(), from, from, options(t)); unsized || err != nil {
		t.Errorf("its size is not 0 any more: %v, %v", unsized, err)
	}
	if _, err := File(t.Context(), from, dst.target("f"), options(t)); err != nil {
		t.Fatal(err)
	}
	cmp, err := Compare(t.Context(), src.source("f"), dst.source("f"), 3000, options(t))
	if err != nil || cmp.Differ || dst.source("f").Attr.Size != 3000 {
		t.Errorf("%v, %+v", err, cmp)
	}
	dst.noTemps()
}

// sysfs is an FS whose files are near, and state a size and storage whatever they hold. It has so much room.
type sysfs struct {
	nearby
	size, used, room uint64
}

func (f sysfs) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	a, err := f.nearby.GetAttr(ctx, h, want)
	a.Size, a.Used = f.size, f.used
	return a, err
}

func (f sysfs) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.nearby.Open(ctx, at, how)
	opened.Attr.Size, opened.Attr.Used = f.size, f.used
	return statingFile{file, f}, opened, err
}

func (f sysfs) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	i, err := f.nearby.Info(ctx, h, want)
	i.TotalBytes = f.room
	return i, err
}

// statingFile states the attributes of its FS.
type statingFile struct {
	vfs.File
	fs sysfs
}

func (statingFile) Near() bool { return true }

func (x statingFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	n, eof, err := x.File.ReadAt(ctx, p, off, post)
	if post != nil {
		post.Size, post.Used = x.fs.size, x.fs.used
	}
	return n, eof, err
}

// TestSys: a file of /sys, whose size is a page, is copied, verified and compared to its end. Where one of its
// signs is missing, a file that ends before its size was cut short: that is an error.
func TestSys(t *testing.T) {
	page := uint64(os.Getpagesize())
	for _, c := range []struct {
		size, used, room uint64
		bytes            int
		err              error
	}{
		{page, 0, 0, 23, nil},
		{page, 0, 0, 0, nil},
		{page, 0, 0, int(page), nil},
		{page, 0, 0, int(page) + 1, nil},
		{page, 0, 1 << 30, 23, io.ErrUnexpectedEOF},
		{page, 512, 0, 23, io.ErrUnexpectedEOF},
		{page - 1, 0, 0, 23, io.ErrUnexpectedEOF},
		{2 * page, 0, 0, 23, io.ErrUnexpectedEOF},
	} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		from, o := src.file("f", pattern(c.bytes)), options(t)
		from.FS, from.Attr.Size, from.Attr.Used = sysfs{nearby{src.fs}, c.size, c.used, c.room}, c.size, c.used
		o.Verify = true
		res, err := File(t.Context(), from, dst.target("f"), o)
		if !errors.Is(err, c.err) || err == nil && (res.Bytes != uint64(c.bytes) || !res.Verified) {
			t.Fatalf("%+v: %v, %+v", c, err, res)
		}
		dst.noTemps()
		if c.err != nil {
			continue
		}
		dst.same("f", pattern(c.bytes), 0o640)
		cmp, unsized, err := CompareUnsized(t.Context(), from, dst.source("f"), o)
		if err != nil || !unsized || cmp.Differ || cmp.Bytes != uint64(c.bytes) {
			t.Errorf("%+v: compared: %v, %v, %+v", c, err, unsized, cmp)
		}
	}
}
