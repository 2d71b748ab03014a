package readahead

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestReadAheadFillsTheLine reads a file in a row, and is as fast as the link.
// With nothing read ahead the first case reaches 12%, the second 1%.
func TestReadAheadFillsTheLine(t *testing.T) {
	for _, tt := range []struct {
		name      string
		delay     time.Duration
		bandwidth float64
		step      int
		most      int // READs in flight at once
	}{
		{"10 ms, whole READs", 10 * ms, 100e6, unit, 70},
		{"10 ms, small reads", 10 * ms, 100e6, 4 << 10, 70},
		{"10 ms, odd reads", 10 * ms, 100e6, 100_000, 70},
		{"10 ms, large reads", 10 * ms, 100e6, 5 * unit, 70},
		{"1 ms", ms, 100e6, unit, 8},
		{"0.1 ms", ms / 10, 500e6, unit, 6},
		{"0.1 ms, slow", ms / 10, 50e6, unit, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 64 << 20
				r, far := newFar(t, size, tt.delay, tt.bandwidth, Options{})
				f, _ := r.open("f", vfs.OpenHow{})
				start := time.Now()
				r.readTo(f, 0, size/uint64(tt.step)*uint64(tt.step), tt.step)
				took := time.Since(start)
				share := size / tt.bandwidth / took.Seconds()
				s := r.ahead.Stats()
				t.Logf("%.0f%% of the bandwidth, up to %d READs in flight, %d hits, %d misses, %d wasted",
					100*share, far.flew(), s.Hits, s.Misses, s.Wasted)
				if share < 0.7 {
					t.Errorf("%v: %.0f%% of the bandwidth", took, 100*share)
				}
				if most := tt.most * 3 / 2; far.flew() > most {
					t.Errorf("%d READs in flight, want at most %d", far.flew(), most)
				}
				for _, s := range far.asked() {
					if s.to > size {
						t.Errorf("READ of [%d, %d) of %d bytes", s.from, s.to, size)
					}
				}
				r.ok(f.Close(t.Context()))
				if s := r.ahead.Stats(); s.Wasted > 1<<20 {
					t.Errorf("%d bytes wasted", s.Wasted)
				}
			})
		})
	}
}

// TestFarReader: over a long way what is read ahead doubles with each round trip, as far
// as the reader has to wait for it, and no further.
func TestFarReader(t *testing.T) {
	const step = 64 << 10
	const size, delay = 384 * step, 100 * ms
	for _, tt := range []struct {
		name      string
		bandwidth float64
		think     time.Duration // between reads
		trips     time.Duration
		held      int64 // reads
	}{
		// 8 round trips until 32 are on their way, and 32 each time from then on.
		{"a wide way", 10e9, 0, 20, 32},
		// 10 fill the way.
		{"a narrow way", 100 * step, 0, 46, 32},
		// The reader needs 5, which shows when a round trip more has passed.
		{"a slow reader", 10e9, 20 * ms, 86, 16},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, far := newFarOf(t, step, size, delay, tt.bandwidth, Options{File: 32 * step})
				f, _ := r.open("f", vfs.OpenHow{})
				p, want := make([]byte, step), make([]byte, step)
				start, held := time.Now(), int64(0)
				for off := uint64(0); off < size; off += step {
					r.readOne(f, off, p, want)
					held = max(held, r.ahead.Stats().Held/step)
					time.Sleep(tt.think)
				}
				trips := time.Since(start) / delay
				t.Logf("%d round trips, %d READs in flight, %d held", trips, far.flew(), held)
				if trips > tt.trips || held > tt.held {
					t.Errorf("%d round trips, want at most %d; held %d, want at most %d", trips, tt.trips, held, tt.held)
				}
				r.ok(f.Close(t.Context()))
			})
		})
	}
}

// TestRandomReads: every READ is one that was asked for.
func TestRandomReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, step, reads = 64 << 20, 4 << 10, 2000
		r, far := newFar(t, size, 10*ms, 100e6, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		rnd := rand.New(rand.NewPCG(1, 2))
		p, want := make([]byte, step), make([]byte, step)
		seen := make(map[uint64]bool)
		for len(seen) < reads {
			off := rnd.Uint64N(size/step) * step
			if seen[off] || seen[off-step] { // two in a row are a sequence
				continue
			}
			seen[off] = true
			r.readOne(f, off, p, want)
		}
		if asked := far.asked(); len(asked) != reads {
			t.Errorf("%d READs for %d reads", len(asked), reads)
		}
		if s := r.ahead.Stats(); s.Bytes != 0 || s.Misses != reads {
			t.Errorf("%+v", s)
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestStreams reads several places of a file in turn, among random reads.
func TestStreams(t *testing.T) {
	for _, streams := range []uint64{2, 4} {
		synctest.Test(t, func(t *testing.T) {
			const size, step, noise = 256 << 20, 64 << 10, 8
			r, far := newFar(t, size, 10*ms, 100e6, Options{})
			f, _ := r.open("f", vfs.OpenHow{})
			p, want := make([]byte, step), make([]byte, step)
			each := uint64(32<<20) / streams
			r.readTo(f, size-32<<20, size-16<<20, unit) // from which is learned what the line is
			start := time.Now()
			for off := uint64(0); off < each; off += step {
				for s := range streams {
					r.readOne(f, s*each+off, p, want)
				}
				if off/step%noise == 0 {
					r.readOne(f, size/2+off*5, p[:512], want[:512])
				}
			}
			noises := float64(each/step/noise) * 0.010
			share := 32 << 20 / 100e6 / (time.Since(start).Seconds() - noises)
			s := r.ahead.Stats()
			t.Logf("%d streams: %.0f%% of the bandwidth, up to %d READs in flight, %+v", streams, 100*share, far.flew(), s)
			if share < 0.6 || s.Misses > 200 {
				t.Errorf("%d streams: %.0f%% of the bandwidth, %+v", streams, 100*share, s)
			}
			r.ok(f.Close(t.Context()))
		})
	}
}

// TestReaderStops: no more is wasted than was read.
func TestReaderStops(t *testing.T) {
	for _, read := range []uint64{3 * unit, 1 << 20, 10 << 20} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := newFar(t, 64<<20, 10*ms, 100e6, Options{})
			f, _ := r.open("f", vfs.OpenHow{})
			r.readTo(f, 0, read, unit)
			time.Sleep(time.Second)
			r.ok(f.Close(t.Context()))
			s := r.ahead.Stats()
			t.Logf("after %d bytes: %d wasted", read, s.Wasted)
			if s.Wasted > read || s.Wasted > 4<<20 {
				t.Errorf("after %d bytes: %d wasted", read, s.Wasted)
			}
		})
	}
}

// TestPairs reads two in a row, again and again: it is learned that this is no
// sequence.
func TestPairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newFar(t, 1<<30, ms, 100e6, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		p, want := make([]byte, 4096), make([]byte, 4096)
		const pairs = 500
		for i := range uint64(pairs) {
			off := i * 7919 * 4096 % (1 << 30)
			r.readOne(f, off, p, want)
			r.readOne(f, off+4096, p, want)
		}
		time.Sleep(time.Second)
		if s := r.ahead.Stats(); s.Bytes > 10*unit {
			t.Errorf("%d READs ahead", s.Bytes/unit)
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestAheadBounds: what is held stays within the bounds, and comes up to them;
// files that are not read any more make room.
func TestAheadBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each, total, read = 8 * unit, 20 * unit, 16 << 20
		r, _ := newFar(t, 1<<30, 50*ms, 1e9, Options{File: each, Total: total})
		files := make([]vfs.File, 4)
		for i := range files {
			files[i], _ = r.open("f", vfs.OpenHow{})
		}
		var most int64
		readAll := func(files []vfs.File, from, to uint64) int64 {
			most = 0
			for off := from; off < to; off += unit {
				for _, f := range files {
					r.readTo(f, off, off+unit, unit)
					most = max(most, r.ahead.Stats().Held)
				}
			}
			return most
		}
		if held := readAll(files[:1], 0, read); held > each || held < each-unit {
			t.Errorf("%d bytes held by a file, the bound is %d", held, each)
		}
		if held := readAll(files, read, 2*read); held > total || held < total-4*unit {
			t.Errorf("%d bytes held, the bound is %d", held, total)
		}
		// The others stand still now, and the last has their room.
		time.Sleep(2 * maxIdle)
		if held := readAll(files[3:], 2*read, 3*read); held > total {
			t.Errorf("%d bytes held, the bound is %d", held, total)
		}
		if held := r.ahead.Stats().Held; held > each || held < each-unit {
			t.Errorf("%d bytes held by the only file that is read, the bound is %d", held, each)
		}
		for _, f := range files {
			r.ok(f.Close(t.Context()))
		}
	})
}

// TestParallelReaders: a reader with several large reads under way gets them straight
// into its buffers.
func TestParallelReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readers, each = 4, 50
		r, far := newFar(t, 1<<30, 10*ms, 100e6, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		var mu sync.Mutex
		var wg sync.WaitGroup
		next := uint64(0)
		for range readers {
			wg.Go(func() {
				p, want := make([]byte, unit), make([]byte, unit)
				for range each {
					mu.Lock()
					off := next
					next += unit
					mu.Unlock()
					r.readOne(f, off, p, want)
				}
			})
		}
		wg.Wait()
		if n := len(far.asked()); n != readers*each {
			t.Errorf("%d READs for %d reads", n, readers*each)
		}
		if s := r.ahead.Stats(); s.Bytes != 0 {
			t.Errorf("%+v", s)
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestSplit reads much at once.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 16<<20 + 1000
		r, far := newFar(t, size, 10*ms, 100e6, Options{File: -1})
		f, _ := r.open("f", vfs.OpenHow{})
		p, want := make([]byte, 8<<20), make([]byte, 8<<20)
		r.readOne(f, 0, p, want)
		start := time.Now()
		r.readOne(f, 8<<20, p, want)
		share := 8 << 20 / 100e6 / time.Since(start).Seconds()
		if share < 0.7 {
			t.Errorf("%.0f%% of the bandwidth", 100*share)
		}
		t.Logf("%.0f%% of the bandwidth, up to %d READs in flight", 100*share, far.flew())
		n, eof, err := f.ReadAt(t.Context(), p, 15<<20, nil)
		content(want, 15<<20)
		if n != 1<<20+1000 || !eof || err != nil || string(p[:n]) != string(want[:n]) {
			t.Errorf("at the end: %d, %v, %v", n, eof, err)
		}
		n, eof, err = f.ReadAt(t.Context(), p, size, nil)
		if n != 0 || !eof || err != nil {
			t.Errorf("behind the end: %d, %v, %v", n, eof, err)
		}
		r.ok(f.Close(t.Context()))
		if s := r.ahead.Stats(); s.Bytes != 0 {
			t.Errorf("read ahead though it is off: %+v", s)
		}
	})
}

// TestSplitError: what comes before the part that failed is kept.
func TestSplitError(t *testing.T) {
	r := newRig(t, memfs.Options{ReadMax: 4096}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	data := pattern(100_000)
	r.write(f, 0, data)
	r.ok(r.commit(f))
	reads := 0
	r.setFault(func(_ context.Context, op string) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if op == "read" {
			if reads++; reads > 3 {
				return vfs.ErrIO
			}
		}
		return nil
	})
	p := make([]byte, len(data))
	n, _, err := f.ReadAt(t.Context(), p, 0, nil)
	if n > 3*4096 || n%4096 != 0 || !errors.Is(err, vfs.ErrIO) || string(p[:n]) != string(data[:n]) {
		t.Errorf("%d, %v", n, err)
	}
	r.ok(f.Close(t.Context()))
	r.wantBelow(h, data)
}

// TestAheadIsDropped changes a file while bytes of it are held, and reads what
// is there then: with dirty bytes above, and alone.
func TestAheadIsDropped(t *testing.T) {
	const size = 4 << 20
	for _, tt := range []struct {
		name   string
		change func(r *rig, f vfs.File, want []byte) []byte
	}{
		{"write", func(r *rig, f vfs.File, want []byte) []byte {
			p := pattern(300_000)
			r.write(f, 1<<20, p)
			r.ok(r.commit(f))
			copy(want[1<<20:], p)
			return want
		}},
		{"write by another open", func(r *rig, _ vfs.File, want []byte) []byte {
			g, _ := r.open("f", vfs.OpenHow{})
			r.write(g, 1<<20, []byte("new"))
			r.ok(r.commit(g))
			r.ok(g.Close(r.t.Context()))
			copy(want[1<<20:], "new")
			return want
		}},
		{"stable write", func(r *rig, f vfs.File, want []byte) []byte {
			_, err := f.WriteAt(r.t.Context(), []byte("new"), 1<<20+5, vfs.FileSync, new(vfs.Written))
			r.ok(err)
			copy(want[1<<20+5:], "new")
			return want
		}},
		{"truncate", func(r *rig, f vfs.File, want []byte) []byte {
			_, err := f.Truncate(r.t.Context(), 1<<20+7)
			r.ok(err)
			return want[:1<<20+7]
		}},
		{"open and truncate", func(r *rig, _ vfs.File, _ []byte) []byte {
			g, _ := r.open("f", vfs.OpenHow{Trunc: true})
			r.ok(g.Close(r.t.Context()))
			return nil
		}},
		{"append", func(r *rig, f vfs.File, want []byte) []byte {
			r.write(f, size, []byte("more"))
			r.ok(r.commit(f))
			return append(want, "more"...)
		}},
	} {
		for i := range 4 {
			flying, alone := i%2 > 0, i/2 > 0
			name := tt.name + " when it is there"
			if flying {
				name = tt.name + " while it is on its way"
			}
			if alone {
				name += ", alone"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, far := newFar(t, 0, ms, 1e9, Options{})
					if alone {
						r.alone()
					}
					f, h := r.open("f", vfs.OpenHow{})
					want := pattern(size)
					r.write(f, 0, want)
					r.ok(r.commit(f))
					got := make([]byte, size+100)
					before := 1<<20 - unit // what is held then reaches over the change
					if tt.name == "append" {
						before = size - 3*unit
					}
					for off := 0; off < before; off += unit {
						if flying && off+unit >= before {
							far.line.SetDelay(50 * ms) // longer than the change takes
						}
						_, _, err := f.ReadAt(t.Context(), got[off:off+unit], uint64(off), nil)
						r.ok(err)
					}
					if !flying {
						time.Sleep(100 * ms)
					}
					if s := r.ahead.Stats(); s.Held == 0 {
						t.Errorf("nothing was read ahead: the test is of no use: %+v", s)
					}
					want = tt.change(r, f, want)
					n, eof, err := vfs.ReadFull(t.Context(), f, got[before:], uint64(before))
					r.ok(err)
					exp := want[min(before, len(want)):]
					if !eof || string(got[before:before+n]) != string(exp) {
						t.Errorf("%d bytes, want %d; eof %v", n, len(exp), eof)
					}
					r.ok(f.Close(t.Context()))
					r.wantBelow(h, want)
				})
			})
		}
	}
}

// TestWriteUnderWay: while a WRITE is under way nothing is read ahead where it writes, since
// that would be handed out when it has returned.
func TestWriteUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := newFar(t, 0, ms, 1e9, Options{})
		r.alone()
		f, _ := r.open("f", vfs.OpenHow{})
		want := pattern(4 << 20)
		r.write(f, 0, want)
		let := make(chan struct{})
		r.setFault(func(_ context.Context, op string) error {
			if op == "write" {
				<-let
			}
			return nil
		})
		var wg sync.WaitGroup
		wg.Go(func() { r.write(f, 1<<20, []byte("new")) })
		synctest.Wait()
		p := make([]byte, unit)
		for off := uint64(0); off < 1<<20; off += unit {
			_, _, err := f.ReadAt(t.Context(), p, off, nil)
			r.ok(err)
			time.Sleep(100 * ms)
		}
		for _, s := range far.asked() {
			if s.from < 1<<20+3 && s.to > 1<<20 {
				t.Errorf("READ of [%d, %d)", s.from, s.to)
			}
		}
		close(let)
		wg.Wait()
		copy(want[1<<20:], "new")
		n, _, err := f.ReadAt(t.Context(), p, 1<<20, nil)
		if err != nil || n == 0 || string(p[:n]) != string(want[1<<20:][:n]) {
			t.Errorf("%d bytes, %v: not what was written", n, err)
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestChangeByOthers: attributes that come with a READ tell that the file has
// changed, and nothing read before is handed out. Opening anew never uses what
// another open has read ahead.
func TestChangeByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := newFar(t, 16<<20, 10*ms, 100e6, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		r.readTo(f, 0, 2<<20, unit)
		time.Sleep(time.Second)
		far.asked()
		g, _ := r.open("f", vfs.OpenHow{})
		r.readTo(g, 2<<20, 2<<20+unit, unit)
		if asked := far.asked(); len(asked) != 1 || asked[0].from != 2<<20 {
			t.Errorf("another open: READs %v", asked)
		}
		r.ok(g.Close(t.Context()))

		far.mu.Lock()
		far.mtime = far.mtime.Add(time.Second)
		far.mu.Unlock()
		held := r.ahead.Stats().Held
		p, want := make([]byte, 4096), make([]byte, 4096)
		r.readOne(f, 15<<20, p, want) // is not held
		if now := r.ahead.Stats(); held == 0 || now.Held != 0 {
			t.Errorf("%d bytes held before, %d after the change", held, now.Held)
		}
		r.readTo(f, 2<<20, 4<<20, unit)
		time.Sleep(2 * maxFresh)
		far.asked()
		r.readTo(f, 4<<20, 4<<20+unit, unit)
		if asked := far.asked(); len(asked) == 0 || asked[0].from > 4<<20 && asked[len(asked)-1].from > 4<<20 {
			t.Errorf("what was read long ago is handed out: READs %v", asked)
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestReadAheadCancelled: a reader that waits for what is on its way gives up
// with its context; a READ ahead that hangs does not hold up Close.
func TestReadAheadCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := newFar(t, 16<<20, ms, 100e6, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		r.readTo(f, 0, 1<<20, unit)
		far.line.SetDelay(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for i := range uint64(40) {
			wg.Go(func() {
				p := make([]byte, unit)
				off := 1<<20 + i*unit
				want := make([]byte, unit)
				content(want, off)
				n, _, err := f.ReadAt(ctx, p, off, nil)
				if err == nil && string(p[:n]) != string(want[:n]) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%d, %v", n, err)
				}
			})
		}
		wg.Wait()
		start := time.Now()
		r.ok(f.Close(t.Context()))
		if took := time.Since(start); took > 0 {
			t.Errorf("Close took %v", took)
		}
	})
}

// TestReadAllocs: a read that goes straight through allocates nothing here.
func TestReadAllocs(t *testing.T) {
	r := newRig(t, memfs.Options{}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	r.write(f, 0, pattern(1<<20))
	r.ok(r.commit(f))
	below, _, err := r.below.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	r.ok(err)
	p := make([]byte, 4096)
	read := func(f vfs.File) float64 {
		var i uint64
		return testing.AllocsPerRun(1000, func() {
			i++
			if _, _, err := f.ReadAt(t.Context(), p, i*7919*4096%(1<<20), nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	if base, got := read(below), read(f); got > base {
		t.Errorf("%v allocations a read, %v without the wrapper", got, base)
	}
	r.ok(below.Close(t.Context()))
	r.ok(f.Close(t.Context()))
}
