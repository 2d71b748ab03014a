package writeback

import (
	"bytes"
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// give writes p in a buffer of pool, and releases the caller's part of it.
func (r *rig) give(f vfs.File, pool *bufpool.Pool, off uint64, p []byte) {
	r.t.Helper()
	b := pool.Get(len(p))
	copy(b.B, p)
	r.ok(f.(bufpool.Writer).WriteBuffer(r.t.Context(), b, off))
	b.Release()
}

// TestBufferIsKept: a buffer that one WRITE carries is kept, and not copied, until the
// server has stored its bytes. Later writes change what is kept; a restart loses nothing.
func TestBufferIsKept(t *testing.T) {
	r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	var pool bufpool.Pool
	want := pattern(3*4096 + 100)
	for off := 0; off < len(want); off += 4096 {
		r.give(f, &pool, uint64(off), want[off:min(off+4096, len(want))])
	}
	r.write(f, uint64(len(want)), []byte("appended to the last"))
	want = append(want, "appended to the last"...)
	for _, off := range []int{10, 4096, 8192 - 5, 3*4096 + 50} {
		r.write(f, uint64(off), []byte("0123456789"))
		copy(want[off:], "0123456789")
	}
	if n := pool.Bytes(); n != 3*4096+512 || r.fs.Dirty() < n {
		t.Errorf("%d bytes of the caller's pool are kept, %d are dirty", n, r.fs.Dirty())
	}
	got := make([]byte, len(want))
	if n, _, err := vfs.ReadFull(t.Context(), f, got, 0); n != len(want) || err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v, equal %v", n, err, bytes.Equal(got, want))
	}
	r.below.Restart()
	r.ok(r.commit(f))
	if n := pool.Outstanding(); n != 0 {
		t.Errorf("%d buffers are kept of a file that is stable", n)
	}
	r.ok(f.Close(t.Context()))
	r.wantBelow(h, want)
}

// TestBufferIsCopied: a buffer is copied that has more bytes than one WRITE carries there.
func TestBufferIsCopied(t *testing.T) {
	r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	var pool bufpool.Pool
	want := pattern(10_000)
	r.give(f, &pool, 0, want[:6000])
	r.give(f, &pool, 6000, want[6000:9000])
	r.give(f, &pool, 9000, want[9000:])
	r.give(f, &pool, 0, nil)
	if n := pool.Outstanding(); n != 0 {
		t.Errorf("%d buffers are kept", n)
	}
	r.ok(f.Close(t.Context()))
	r.wantBelow(h, want)
}

// TestBufferRefused: a file that takes no more takes no buffer either.
func TestBufferRefused(t *testing.T) {
	r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	read, _, err := r.fs.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	r.ok(err)
	b := new(bufpool.Pool).Get(100)
	defer b.Release()
	if err := read.(bufpool.Writer).WriteBuffer(t.Context(), b, 0); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("a file that is open to be read: %v", err)
	}
	if err := f.(bufpool.Writer).WriteBuffer(t.Context(), b, 1<<63); !errors.Is(err, vfs.ErrFBig) {
		t.Errorf("behind the largest file: %v", err)
	}
	r.ok(read.Close(t.Context()))
	r.ok(f.Close(t.Context()))
	if err := f.(bufpool.Writer).WriteBuffer(t.Context(), b, 0); !errors.Is(err, vfs.ErrInval) {
		t.Errorf("a closed file: %v", err)
	}
}
