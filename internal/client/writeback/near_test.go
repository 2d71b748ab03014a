package writeback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/internal/client/readahead"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// handy is an FS whose files are near while it says so.
type handy struct {
	vfs.FS
	near atomic.Bool
	held chan struct{} // if not nil, reads wait until it is closed
	idle bool          // reads cost nothing, and bring nothing
}

func (h *handy) Unwrap() any             { return h.FS }
func (h *handy) As(c *vfs.Caller) vfs.FS { return h }

func (h *handy) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, opened, err := h.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	return &handyFile{f, h}, opened, nil
}

type handyFile struct {
	vfs.File
	fs *handy
}

func (f *handyFile) Near() bool { return f.fs.near.Load() }

func (f *handyFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	if f.fs.idle {
		return len(p), false, nil
	}
	if f.fs.held != nil {
		<-f.fs.held
	}
	return f.File.ReadAt(ctx, p, off, post)
}

// newHandy is a rig over a memfs that is near, with reading ahead between.
func newHandy(t *testing.T, opt Options) (*rig, *handy) {
	r := newRig(t, memfs.Options{ReadMax: 64 << 10, WriteMax: 64 << 10}, opt)
	h := &handy{FS: r.below}
	h.near.Store(true)
	r.readAhead(h, 0)
	return r, h
}

// TestNearDirty: dirty bytes are read by whatever road the others come.
func TestNearDirty(t *testing.T) {
	r, below := newHandy(t, Options{})
	f, _ := r.open("f", vfs.OpenHow{})
	g, _ := r.open("f", vfs.OpenHow{})
	want := bytes.Repeat([]byte("a"), 300<<10)
	r.write(f, 0, want)
	r.ok(f.Commit(t.Context(), 0, 0, new(vfs.Written)))
	for i := range 50 {
		off := i * 5000
		copy(want[off:], fmt.Sprintf("%060d", i))
		r.write(f, uint64(off), want[off:off+60])
		if i%7 == 0 {
			r.ok(f.Commit(t.Context(), 0, 0, new(vfs.Written)))
		}
		below.near.Store(i%3 > 0)
		got := make([]byte, len(want))
		n, _, err := vfs.ReadFull(t.Context(), g, got, 0)
		if err != nil || n != len(got) || !bytes.Equal(got, want) {
			t.Fatalf("after %d writes: %d bytes, %v, equal %v", i, n, err, bytes.Equal(got, want))
		}
	}
	r.ok(f.Close(t.Context()))
	r.ok(g.Close(t.Context()))
}

// TestNearClose: Close waits for reads below, and none begins behind it.
func TestNearClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, below := newHandy(t, Options{})
		below.held = make(chan struct{})
		f, _ := r.open("f", vfs.OpenHow{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, err := f.ReadAt(t.Context(), make([]byte, 10), 0, nil)
			r.ok(err)
		})
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- f.Close(t.Context()) }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Error("Close has not waited for a read")
		}
		if _, _, err := f.ReadAt(t.Context(), make([]byte, 10), 0, nil); !errors.Is(err, vfs.ErrInval) {
			t.Errorf("a read while the file is being closed: %v", err)
		}
		if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrInval) {
			t.Errorf("a second Close: %v", err)
		}
		close(below.held)
		wg.Wait()
		r.ok(<-closed)
	})
}

// TestNearCloseRace closes files that are being read and written.
func TestNearCloseRace(t *testing.T) {
	r, below := newHandy(t, Options{})
	for i := range 200 {
		f, _ := r.open("f", vfs.OpenHow{})
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				p := make([]byte, 100)
				for j := range uint64(1000) {
					var err error
					if worker == 0 && j%4 == 0 {
						_, err = f.WriteAt(t.Context(), p, j, vfs.Unstable, new(vfs.Written))
					} else {
						_, _, err = f.ReadAt(t.Context(), p, j, nil)
					}
					if errors.Is(err, vfs.ErrInval) {
						return
					}
					r.ok(err)
				}
			})
		}
		for range i {
			below.near.Store(i%2 == 0)
		}
		r.ok(f.Close(t.Context()))
		wg.Wait()
	}
}

// idleFile opens a file over one whose reads cost nothing.
func idleFile(t testing.TB, near bool) vfs.File {
	below := &handy{FS: memfs.New(memfs.Options{}), idle: true}
	below.near.Store(near)
	fs := New(readahead.New(below, readahead.Options{}), Options{})
	root, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	how := &vfs.OpenHow{Access: rw, Create: &vfs.CreateHow{Type: vfs.TypeReg}}
	f, _, err := fs.Open(t.Context(), vfs.At{Dir: root, Name: "f"}, how)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return f
}

// BenchmarkRead4K is what this wrapper and reading ahead add to a read at a random place.
func BenchmarkRead4K(b *testing.B) {
	for _, near := range []bool{false, true} {
		b.Run(fmt.Sprintf("near=%v", near), func(b *testing.B) {
			f, p, off, ctx := idleFile(b, near), make([]byte, 4<<10), uint64(1), b.Context()
			b.ReportAllocs()
			for b.Loop() {
				off = off*6364136223846793005 + 1442695040888963407
				if _, _, err := f.ReadAt(ctx, p, off>>34<<12, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestNearAllocs: a read of a near file allocates nothing.
func TestNearAllocs(t *testing.T) {
	f, p, ctx := idleFile(t, true), make([]byte, 4<<10), t.Context()
	got := testing.AllocsPerRun(1000, func() {
		if _, _, err := f.ReadAt(ctx, p, 0, nil); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations a read", got)
	}
}
