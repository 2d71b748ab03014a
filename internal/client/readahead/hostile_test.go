package readahead

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestReadAfterContext: a read whose context has ended fails, also where its bytes
// are in memory.
func TestReadAfterContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newFar(t, 0, 10*ms, 100e6, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		r.write(f, 0, pattern(1<<20))
		r.ok(r.commit(f))
		p := make([]byte, unit)
		for off := uint64(0); off < 3*unit; off += unit {
			_, _, err := f.ReadAt(t.Context(), p, off, nil)
			r.ok(err)
		}
		time.Sleep(time.Second)
		r.write(f, 0, pattern(100))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, off := range []uint64{0, 3 * unit} {
			if n, _, err := f.ReadAt(ctx, p[:10], off, nil); n != 0 || !errors.Is(err, context.Canceled) {
				t.Errorf("at %d: %d, %v", off, n, err)
			}
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestSetAttrWhileOpened: what was read ahead while the size was changed is not
// handed out, also if nobody had the file open when that began.
func TestSetAttrWhileOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newFar(t, 0, ms, 1e9, Options{})
		f, h := r.open("f", vfs.OpenHow{})
		r.write(f, 0, pattern(4<<20))
		r.ok(f.Close(t.Context()))
		p := make([]byte, unit)
		r.setFault(func(_ context.Context, op string) error {
			if op != "setattr" {
				return nil
			}
			f, _ = r.open("f", vfs.OpenHow{})
			for off := uint64(0); off < 1<<20; off += unit {
				if _, _, err := f.ReadAt(t.Context(), p, off, nil); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(time.Second)
			if s := r.ahead.Stats(); s.Held == 0 {
				t.Error("nothing was read ahead: the test is of no use")
			}
			return nil
		})
		_, err := r.fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 100}, nil)
		r.ok(err)
		if n, eof, err := f.ReadAt(t.Context(), p, 1<<20, nil); n != 0 || !eof || err != nil {
			t.Errorf("behind the new end: %d, %v, %v", n, eof, err)
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestUseAfterCloseFS: nothing is read ahead any more.
func TestUseAfterCloseFS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := newFar(t, 64<<20, ms, 100e6, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		r.readTo(f, 0, 2<<20, unit)
		r.ok(vfs.CloseFS(r.fs))
		far.asked()
		r.readTo(f, 2<<20, 4<<20, unit)
		if n, held := len(far.asked()), r.ahead.Stats().Held; n > 17 || held != 0 {
			t.Errorf("%d READs for 16 reads, %d bytes held", n, held)
		}
		_ = f.Close(t.Context()) // as that of a file of a file system that is closed
	})
}
