package memfs

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

func TestMaxBytes(t *testing.T) {
	f := create(t, Options{MaxBytes: 4 * pageSize})
	_, a := put(t, f, "a")
	_, b := put(t, f, "b")
	write(t, a, 0, fill('a', 3*pageSize), vfs.FileSync)
	var w vfs.Written
	if n, err := b.WriteAt(t.Context(), fill('b', 2*pageSize), 0, vfs.FileSync, &w); n != 0 || !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("a write beyond the space: %d, %v, want %v", n, err, vfs.ErrNoSpace)
	}
	if got := content(t, b); len(got) != 0 {
		t.Errorf("%d bytes of a write that failed", len(got))
	}
	write(t, b, 0, fill('b', pageSize), vfs.Unstable)
	write(t, a, 0, fill('c', 3*pageSize), vfs.FileSync) // over what is there
	if got := free(t, f); got != 0 {
		t.Errorf("%d bytes are free, want none", got)
	}
	if _, err := a.Truncate(t.Context(), pageSize); err != nil {
		t.Fatal(err)
	}
	if got := free(t, f); got != 2*pageSize {
		t.Errorf("%d bytes are free, want %d", got, 2*pageSize)
	}
	f.Restart()
	if got := free(t, f); got != 3*pageSize {
		t.Errorf("%d bytes are free after unstable ones were lost, want %d", got, 3*pageSize)
	}
}

// free is how much space there is.
func free(t *testing.T, f *FS) uint64 {
	t.Helper()
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Info(t.Context(), root, vfs.InfoSpace)
	if err != nil {
		t.Fatal(err)
	}
	return info.FreeBytes
}

func TestMaxFiles(t *testing.T) {
	f := create(t, Options{MaxFiles: 2})
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	how := &vfs.CreateHow{Type: vfs.TypeDir}
	for range 2 { // the second time in the place of the first
		if _, _, _, err := f.Create(t.Context(), root, "a", how); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := f.Create(t.Context(), root, "b", how); !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("one object too many: %v, want %v", err, vfs.ErrNoSpace)
		}
		if _, err := f.Remove(t.Context(), root, "a", true); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMaxLinks(t *testing.T) {
	f := create(t, Options{MaxLinks: 2})
	h, _ := put(t, f, "a")
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Link(t.Context(), h, root, "b"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Link(t.Context(), h, root, "c"); !errors.Is(err, vfs.ErrMLink) {
		t.Errorf("one name too many: %v, want %v", err, vfs.ErrMLink)
	}
}

// TestSparse writes the two ends of a file that no memory could hold.
func TestSparse(t *testing.T) {
	const far = 1 << 40
	f := create(t, Options{})
	h, file := put(t, f, "file")
	write(t, file, 0, []byte("start"), vfs.Unstable)
	write(t, file, far, []byte("end"), vfs.Unstable)
	commit(t, file, 0, 0)
	f.Restart()
	a, err := f.GetAttr(t.Context(), h, vfs.MaskV3)
	if err != nil {
		t.Fatal(err)
	}
	if a.Size != far+3 || a.Used != 2*pageSize {
		t.Errorf("size %d, used %d; want %d, %d", a.Size, a.Used, uint64(far+3), 2*pageSize)
	}
	p := fill('x', 10)
	n, eof, err := file.ReadAt(t.Context(), p, far-2, nil)
	if err != nil || !eof || string(p[:n]) != "\x00\x00end" {
		t.Errorf("the end reads %q, eof %t, %v", p[:n], eof, err)
	}
	holes := file.(vfs.HoleSeeker)
	if hole, err := holes.NextHole(t.Context(), 0); err != nil || hole != pageSize {
		t.Errorf("the hole is at %d, %v; want %d", hole, err, pageSize)
	}
	if data, err := holes.NextData(t.Context(), pageSize); err != nil || data != far {
		t.Errorf("the data behind it is at %d, %v; want %d", data, err, uint64(far))
	}
	if _, err := holes.NextData(t.Context(), far+3); !errors.Is(err, io.EOF) {
		t.Errorf("data behind the end: %v, want %v", err, io.EOF)
	}
}

// TestClock sets times by a clock that the test moves.
func TestClock(t *testing.T) {
	now := time.Unix(1000, 999)
	f := create(t, Options{Now: func() time.Time { return now }, TimeDelta: time.Millisecond})
	h, file := put(t, f, "file")
	now = now.Add(1500 * time.Microsecond)
	write(t, file, 0, []byte("x"), vfs.Unstable)
	a, err := f.GetAttr(t.Context(), h, vfs.MaskV3)
	if err != nil {
		t.Fatal(err)
	}
	if made, written := time.Unix(1000, 0), time.Unix(1000, 1e6); !a.Btime.Equal(made) || !a.Mtime.Equal(written) || !a.Ctime.Equal(written) {
		t.Errorf("btime %v, mtime %v, ctime %v; want %v and twice %v", a.Btime, a.Mtime, a.Ctime, made, written)
	}
}

// TestViews has more callers than views are kept for.
func TestViews(t *testing.T) {
	f := create(t, Options{})
	if f.As(nil) != vfs.FS(f) || f.As(&vfs.Caller{UID: 1}) != f.As(&vfs.Caller{UID: 1}) {
		t.Error("equal callers have different views")
	}
	for uid := range uint32(3 * maxViews) {
		if _, _, err := f.As(&vfs.Caller{UID: uid}).Root(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.views); n != maxViews {
		t.Errorf("%d views are kept, want %d", n, maxViews)
	}
	if f.As(nil) != vfs.FS(f) {
		t.Error("the superuser's view was forgotten")
	}
}
