package readahead

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// handy is an FS whose files are near while it says so, and counts their reads.
type handy struct {
	vfs.FS
	near  atomic.Bool
	reads atomic.Int64
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
	f.fs.reads.Add(1)
	return f.File.ReadAt(ctx, p, off, post)
}

// newHandy is a rig over a memfs that is near.
func newHandy(t *testing.T, opt Options) (*rig, *handy) {
	r := newRig(t, memfs.Options{ReadMax: 64 << 10, WriteMax: 64 << 10}, opt)
	h := &handy{FS: r.below}
	h.near.Store(true)
	r.ahead.FS = h
	return r, h
}

// TestNear: reads of a near file go below as they are, one for one, and of a far
// one they do not.
func TestNear(t *testing.T) {
	for _, near := range []bool{true, false} {
		r, below := newHandy(t, Options{})
		below.near.Store(near)
		f, _ := r.open("f", vfs.OpenHow{})
		want := make([]byte, 4<<20)
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range want {
			want[i] = byte(rnd.Uint32())
		}
		r.write(f, 0, want)
		r.ok(f.Commit(t.Context(), 0, 0, new(vfs.Written)))
		got, reads := make([]byte, len(want)), int64(0)
		for step, off := 4<<10, 0; off < len(got); step = min(2*step, 256<<10) {
			n, _, err := f.ReadAt(t.Context(), got[off:min(off+step, len(got))], uint64(off), nil)
			r.ok(err)
			off += n
			reads++
		}
		if !bytes.Equal(got, want) {
			t.Error("other bytes than were written")
		}
		s := r.ahead.Stats()
		straight := below.reads.Load() == reads && s.Bytes == 0 && r.ahead.s.readCost.Load() == nil
		if straight != near {
			t.Errorf("near %v: %d reads below for %d, %+v", near, below.reads.Load(), reads, s)
		}
		r.ok(f.Close(t.Context()))
	}
}

// TestNearDropsAhead: what was read ahead while the file was far is not handed
// out once its reader has seen what is there by now.
func TestNearDropsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, below := newHandy(t, Options{})
		below.near.Store(false)
		f, h := r.open("f", vfs.OpenHow{})
		r.write(f, 0, make([]byte, 1<<20))
		r.ok(f.Commit(t.Context(), 0, 0, new(vfs.Written)))
		p := make([]byte, 16<<10)
		for i := range uint64(10) {
			_, _, err := f.ReadAt(t.Context(), p, i*uint64(len(p)), nil)
			r.ok(err)
			synctest.Wait()
		}
		ahead := r.ahead.Stats().Held
		direct, _, err := r.below.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: rw})
		r.ok(err)
		_, err = vfs.WriteFull(t.Context(), direct, bytes.Repeat([]byte("x"), 1<<20), 0, vfs.FileSync, new(vfs.Written))
		r.ok(err)
		r.ok(direct.Close(t.Context()))
		for _, near := range []bool{true, false} {
			below.near.Store(near)
			n, _, err := f.ReadAt(t.Context(), p, 10*uint64(len(p)), nil)
			r.ok(err)
			if n == 0 || p[0] != 'x' {
				t.Errorf("near %v: %d bytes of what was there before", near, n)
			}
			if left := r.ahead.Stats().Held; near && (ahead == 0 || left != 0) {
				t.Errorf("%d bytes read ahead, %d of them left", ahead, left)
			}
		}
		r.ok(f.Close(t.Context()))
	})
}
