package cache_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

const granule = store.MinGranule

var small = store.Options{Granule: granule}

// TestSecondRead: what was read once is not read from the server again, nor after a restart.
func TestSecondRead(t *testing.T) {
	for _, unchecked := range []bool{false, true} {
		for _, size := range []int{0, 1, granule, 4*granule + 100} {
			for _, step := range []int{16 << 10, 3*granule + 5} {
				o := small
				o.NoChecksum = unchecked
				r := newRig(t, memfs.Options{}, o)
				data := content(1, size)
				r.put("f", data)
				first := r.reads(func() { r.want("f", data, step) })
				if most := int64(size/granule + 2); first > most {
					t.Errorf("%d bytes in steps of %d: %d READs, want at most %d", size, step, first, most)
				}
				if size == 0 {
					continue
				}
				for _, again := range []string{"again", "after a restart"} {
					if n := r.reads(func() { r.want("f", data, 4<<10) }); n != 0 {
						t.Errorf("%d bytes in steps of %d: %d READs %s", size, step, n, again)
					}
					r.restart()
				}
				if s := r.fs.Stats(); s.BadChecksums+s.Damaged+s.Stale != 0 || s.Hits == 0 || s.Entries != 1 {
					t.Errorf("%+v", s)
				}
			}
		}
	}
}

// TestServerOfSmallReads: granules are put together from small READs.
func TestServerOfSmallReads(t *testing.T) {
	r := newRig(t, memfs.Options{ReadMax: 8 << 10}, small)
	data := content(2, 5*granule+77)
	r.put("f", data)
	r.want("f", data, 100_000)
	r.want("f", data, 100_000)
	if n := r.reads(func() { r.want("f", data, 100_000) }); n != 0 {
		t.Errorf("%d READs", n)
	}
}

// TestCallsOfAnOpen: an open of a file that is there costs its look-up, and one ACCESS for a caller that is
// new.
func TestCallsOfAnOpen(t *testing.T) {
	r := newRig(t, memfs.Options{}, small)
	data := content(3, granule)
	h := r.put("f", data)
	r.want("f", data, granule)
	access, getattr := r.calls.access.Load(), r.calls.getattr.Load()
	for range 10 {
		r.want("f", data, granule)
	}
	if a, g := r.calls.access.Load()-access, r.calls.getattr.Load()-getattr; a != 0 || g != 0 {
		t.Errorf("10 opens by name: %d ACCESS, %d GETATTR", a, g)
	}
	for range 10 {
		f, _, err := r.fs.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
		r.ok(err)
		r.wantFile(f, data, granule)
		r.ok(f.Close(t.Context()))
	}
	if a, g := r.calls.access.Load()-access, r.calls.getattr.Load()-getattr; a > 10 || g != 0 {
		t.Errorf("10 opens by handle: %d ACCESS, %d GETATTR", a, g)
	}
}

// TestRightsOfLaterOpens: the right to read holds for later opens of the caller, for a minute after it was asked for.
func TestRightsOfLaterOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{}, small)
		data := content(4, granule)
		r.put("f", data)
		r.want("f", data, granule)
		for _, c := range []struct {
			after time.Duration
			asked int64
		}{{time.Minute - 1, 0}, {1, 1}, {time.Minute - 1, 0}} {
			before := r.calls.access.Load()
			time.Sleep(c.after)
			r.want("f", data, granule)
			if n := int64(r.calls.access.Load() - before); n != c.asked {
				t.Errorf("after %v more: %d ACCESS, want %d", c.after, n, c.asked)
			}
		}
	})
}

// TestChangedBetweenOpens: whatever another client has done, the next open sees it.
func TestChangedBetweenOpens(t *testing.T) {
	r := newRig(t, memfs.Options{}, small)
	rnd := rand.New(rand.NewPCG(4, 4))
	for i := range uint64(30) {
		data := content(i, 1+rnd.IntN(4*granule))
		r.put("f", data)
		for range rnd.IntN(3) {
			r.want("f", data, 1+rnd.IntN(2*granule))
		}
		if rnd.IntN(8) == 0 {
			r.restart()
		}
	}
	if s := r.fs.Stats(); s.Stale == 0 {
		t.Errorf("%+v: nothing was stale", s)
	}
}

// TestChangedSoQuickly: where times are coarse a change may leave them as they are. What was read before it
// is not used by a later open.
func TestChangedSoQuickly(t *testing.T) {
	fixed := time.Now()
	r := newRig(t, memfs.Options{Now: func() time.Time { return fixed }, TimeDelta: time.Second}, small)
	r.ahead.Store(0)
	for i := range uint64(20) {
		data := content(i, 2*granule) // of one size
		r.put("f", data)
		r.want("f", data, granule)
		if i%3 == 0 {
			r.restart()
		}
	}
}

// TestSettles: what is read long enough after the first look at a version is kept, whatever the clocks say.
func TestSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{}, small)
		r.ahead.Store(-int64(time.Hour)) // the server's clock is ahead
		data := content(5, 4*granule)
		r.put("f", data)
		r.want("f", data, granule)
		if n := r.reads(func() { r.want("f", data, granule) }); n == 0 {
			t.Error("what was read at once was believed later")
		}
		f := r.open(r.fs, "f")
		p := make([]byte, 1)
		_, _, err := f.ReadAt(t.Context(), p, granule+1, nil) // goes through
		r.ok(err)
		time.Sleep(time.Second)
		r.wantFile(f, data, granule)
		r.ok(f.Close(t.Context()))
		if n := r.reads(func() { r.want("f", data, granule) }); n != 0 {
			t.Errorf("%d READs", n)
		}
		r.stop()
		r.start() // for the cleanup, within the bubble
		r.stop()
		r.fs, r.t = nil, t
		r.start()
	})
}

// TestChangedWhileOpen: an open file goes on with what it had for as long as attributes are believed, and
// then sees others' changes.
func TestChangedWhileOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{}, small)
		old, data := content(6, 2*granule), content(7, 2*granule)
		r.put("f", old)
		f := r.open(r.fs, "f")
		r.wantFile(f, old, granule)
		time.Sleep(time.Second)
		r.put("f", data)
		r.wantFile(f, old, granule)
		time.Sleep(3 * time.Second)
		r.wantFile(f, data, granule)
		// The longer nothing changes, the less often is asked.
		asked := r.calls.access.Load()
		for range 120 {
			time.Sleep(5 * time.Second)
			r.wantFile(f, data, granule)
		}
		if n := r.calls.access.Load() - asked; n < 10 || n > 20 {
			t.Errorf("%d ACCESS in ten minutes", n)
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestOwnWrites: what is written through the cache is read back, by all who have the file open.
func TestOwnWrites(t *testing.T) {
	r := newRig(t, memfs.Options{}, small)
	rnd := rand.New(rand.NewPCG(8, 8))
	data := content(8, 3*granule)
	h := r.put("f", data)
	reader := r.open(r.fs, "f")
	for range 30 {
		r.wantFile(reader, data, granule)
		w, _, err := r.fs.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
		r.ok(err)
		if rnd.IntN(2) == 0 {
			r.wantFile(w, data, granule)
		}
		switch rnd.IntN(4) {
		case 0:
			data = data[:rnd.IntN(len(data)+1)]
			_, err := w.Truncate(t.Context(), uint64(len(data)))
			r.ok(err)
		case 1:
			data = nil
			_, err := r.fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskSize}, nil)
			r.ok(err)
		default:
			p := content(rnd.Uint64(), 1+rnd.IntN(granule))
			at := rnd.IntN(len(data) + 1)
			var wr vfs.Written
			_, err := vfs.WriteFull(t.Context(), w, p, uint64(at), vfs.Unstable, &wr)
			r.ok(err)
			data = append(append(append([]byte(nil), data[:at]...), p...), data[min(at+len(p), len(data)):]...)
		}
		r.wantFile(reader, data, granule)
		r.wantFile(w, data, granule)
		r.ok(w.Close(t.Context()))
	}
	r.ok(reader.Close(t.Context()))
}

// TestRights: what one caller has read, another one reads only if the server lets it.
func TestRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{}, small)
		data := content(9, 2*granule)
		h := r.put("f", data)
		set := func(mode uint32) {
			_, err := r.below.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskUID, Mode: mode, UID: 1000}, nil)
			r.ok(err)
		}
		ann, ben := r.fs.As(&vfs.Caller{UID: 1000, GID: 1000}), r.fs.As(&vfs.Caller{UID: 1001, GID: 1001})
		set(0o644)
		f, g := r.open(ann, "f"), r.open(ben, "f")
		// asked says that a read goes to the server, which decides.
		asked := func(f vfs.File, want bool) {
			t.Helper()
			n := r.reads(func() {
				p := make([]byte, granule)
				k, _, err := f.ReadAt(t.Context(), p, 0, nil)
				if err == nil && string(p[:k]) != string(data[:k]) {
					t.Error("other bytes")
				}
			})
			if n != 0 != want {
				t.Errorf("%d READs; one was to be: %v", n, want)
			}
		}
		r.wantFile(f, data, granule)
		asked(g, false)
		set(0o600)
		asked(g, false) // rights live as long as attributes
		time.Sleep(minute)
		r.wantFile(f, data, granule)
		asked(f, false) // the owner's
		asked(g, true)
		set(0o644)
		time.Sleep(minute)
		r.wantFile(f, data, granule)
		h2 := r.open(ben, "f")
		asked(h2, false)
		asked(g, false)
		for _, f := range []vfs.File{f, g, h2} {
			r.ok(f.Close(t.Context()))
		}
	})
}

const minute = time.Minute + time.Second

// TestOneFetch: of many readers of a granule one fetches it.
func TestOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{}, small)
		data := content(10, granule)
		r.put("f", data)
		r.setFault(func(_ context.Context, op string) error {
			if op == "read" {
				time.Sleep(time.Second)
			}
			return nil
		})
		n := r.reads(func() {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() { r.want("f", data, 4<<10) })
			}
			wg.Wait()
		})
		if n != 1 {
			t.Errorf("%d READs", n)
		}
	})
}

// TestFetchGivenUp: a reader that gives up leaves the granule to those who wait for it, and waits for nobody.
func TestFetchGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{}, small)
		data := content(11, granule)
		r.put("f", data)
		f := r.open(r.fs, "f")
		r.setFault(func(ctx context.Context, op string) error {
			if op != "read" {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Second):
				return nil
			}
		})
		var wg sync.WaitGroup
		start := time.Now()
		for i := range 3 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second)
				defer cancel()
				_, _, err := f.ReadAt(ctx, make([]byte, 10), 0, nil)
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Duration(i+1)*time.Second {
					t.Errorf("reader %d: %v after %v", i, err, time.Since(start))
				}
			})
		}
		wg.Go(func() { r.wantFile(f, data, granule) })
		wg.Wait()
		r.ok(f.Close(t.Context()))
	})
}

// TestRandomReads: a granule is fetched whole only when it is read for the second time.
func TestRandomReads(t *testing.T) {
	r := newRig(t, memfs.Options{}, small)
	data := content(12, 8*granule)
	r.put("f", data)
	f := r.open(r.fs, "f")
	p := make([]byte, 4096)
	for round := range 3 {
		n := r.reads(func() {
			for g := range uint64(8) {
				off := g*granule + 8192 + 4096*uint64(2*round)
				_, _, err := f.ReadAt(t.Context(), p, off, nil)
				r.ok(err)
				if string(p) != string(data[off:off+4096]) {
					t.Fatal("other bytes")
				}
			}
		})
		want := []int64{8, 8, 0}[round]
		if filled := r.fs.Stats().BytesFilled; n != want || round == 0 && filled != 0 || round == 1 && filled != 8*granule {
			t.Errorf("round %d: %d READs, want %d; %d bytes filled", round, n, want, filled)
		}
	}
	r.ok(f.Close(t.Context()))
}

// TestReadErrors: errors of the server reach the reader, and nothing of them is kept.
func TestReadErrors(t *testing.T) {
	r := newRig(t, memfs.Options{}, small)
	data := content(13, 2*granule)
	r.put("f", data)
	r.setFault(func(_ context.Context, op string) error {
		if op == "read" {
			return vfs.ErrIO
		}
		return nil
	})
	f := r.open(r.fs, "f")
	if n, _, err := f.ReadAt(t.Context(), make([]byte, 10), 0, nil); n != 0 || !errors.Is(err, vfs.ErrIO) {
		t.Errorf("%d, %v", n, err)
	}
	r.setFault(nil)
	r.wantFile(f, data, granule)
	r.ok(f.Close(t.Context()))
}

// TestHitAllocs: a hit allocates nothing.
func TestHitAllocs(t *testing.T) {
	r := newRig(t, memfs.Options{}, small)
	data := content(14, 4*granule)
	r.put("f", data)
	r.want("f", data, granule)
	r.restart()
	f := r.open(r.fs, "f")
	r.wantFile(f, data, granule)
	p, i := make([]byte, 4096), uint64(0)
	if n := testing.AllocsPerRun(1000, func() {
		i++
		if _, _, err := f.ReadAt(t.Context(), p, i*7919*4096%(3*granule), nil); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a hit", n)
	}
	r.ok(f.Close(t.Context()))
}
