package readahead

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

const us = time.Microsecond

// TestWhatPays reads a file in a row. Whether anything is read ahead depends on
// how the delay and the time in which the reader thinks compare with the time
// that his bytes take.
func TestWhatPays(t *testing.T) {
	need.Speed(t, "gigabytes that one reader copies in a model")
	for _, tt := range []struct {
		name      string
		delay     time.Duration
		bandwidth float64
		step      int
		think     time.Duration
		ahead     bool
		share     float64 // of what link and reader can do
	}{
		{"1 MiB from near", 100 * us, 3e9, 1 << 20, 0, false, 0.75},
		{"1 MiB from next door", 30 * us, 3e9, 1 << 20, 0, false, 0.85},
		{"1 MiB from far", 10 * ms, 1e9, 1 << 20, 0, true, 0.65},
		{"1 MiB from near, slowly", 100 * us, 100e6, 1 << 20, 0, false, 0.95},
		{"4 MiB from near", 100 * us, 3e9, 4 << 20, 0, false, 0.75},
		// The delay is more than half of such a read.
		{"128 KiB from next door", 50 * us, 3e9, 128 << 10, 0, true, 0.9},
		{"4 KiB from next door", 50 * us, 3e9, 4 << 10, 0, true, 0.9},
		{"1 MiB from near, with work between", 100 * us, 3e9, 1 << 20, ms, true, 0.9},
		{"1 MiB from near, with much work between", 100 * us, 3e9, 1 << 20, 100 * ms, true, 0.99},
		{"1 MiB from near, with little work between", 30 * us, 3e9, 1 << 20, 40 * us, false, 0.8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 256 << 20
				r, far := newFarOf(t, 1<<20, size, tt.delay, tt.bandwidth, Options{})
				f, _ := r.open("f", vfs.OpenHow{})
				p, want := make([]byte, tt.step), make([]byte, tt.step)
				start := time.Now()
				for off := uint64(0); off < size; off += uint64(tt.step) {
					r.readOne(f, off, p, want)
					time.Sleep(tt.think)
				}
				bytes := time.Duration(size / tt.bandwidth * 1e9)
				share := float64(max(bytes, tt.think*time.Duration(size/tt.step))) / float64(time.Since(start))
				s := r.ahead.Stats()
				t.Logf("%.0f%%, %d READs, up to %d in flight, %+v", 100*share, len(far.asked()), far.flew(), s)
				if got := s.Bytes > 0; got != tt.ahead {
					t.Errorf("read ahead: %v, want %v", got, tt.ahead)
				}
				if tt.ahead && s.Hits < 10*s.Misses {
					t.Errorf("%d reads in vain", s.Misses)
				}
				if share < tt.share {
					t.Errorf("%.0f%% of what link and reader can do", 100*share)
				}
				r.ok(f.Close(t.Context()))
			})
		})
	}
}

// TestNoFlapping: neither pauses now and then nor single late replies begin to
// read ahead.
func TestNoFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 30
		r, far := newFarOf(t, 1<<20, size, 50*us, 3e9, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		p, want := make([]byte, 1<<20), make([]byte, 1<<20)
		for i := range uint64(size >> 20) {
			far.line.SetDelay(50 * us)
			switch {
			case i%20 == 19:
				time.Sleep(time.Second)
			case i%7 == 6:
				far.line.SetDelay(5 * ms)
			}
			r.readOne(f, i<<20, p, want)
		}
		if s := r.ahead.Stats(); s.Bytes > 0 {
			t.Errorf("%+v", s)
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestDelayChanges: a file system that gets slow to answer is read ahead of, and
// one that gets quick again is not.
func TestDelayChanges(t *testing.T) {
	need.Speed(t, "gigabytes that one reader copies in a model")
	synctest.Test(t, func(t *testing.T) {
		r, far := newFarOf(t, 1<<20, 1<<40, 50*us, 1e9, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		off := uint64(0)
		p, want := make([]byte, 1<<20), make([]byte, 1<<20)
		// reads returns which part of some reads got what was read ahead.
		reads := func(n int) float64 {
			before := r.ahead.Stats()
			for range n {
				r.readOne(f, off, p, want)
				off += uint64(len(p))
			}
			return float64(r.ahead.Stats().Hits-before.Hits) / float64(n)
		}
		for _, delay := range []time.Duration{50 * us, 10 * ms, 50 * us} {
			far.line.SetDelay(delay)
			reads(1500)
			got := reads(300)
			t.Logf("%v: %.2f", delay, got)
			if delay == 10*ms && got < 0.9 || delay < ms && got > 0.05 {
				t.Errorf("with a delay of %v, %.0f%% of the reads got what was read ahead", delay, 100*got)
			}
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestPays: what has begun goes on where it would not begin.
func TestPays(t *testing.T) {
	for _, tt := range []struct {
		delay, bytes, think time.Duration
		copied              time.Duration // of as many bytes
		begins, stays       bool
	}{
		{10, 100, 0, 0, false, false},
		{28, 100, 0, 0, false, true},
		{40, 100, 0, 0, true, true},
		{100, 10, 0, 0, true, true},
		{0, 100, 20, 0, false, false},
		{0, 100, 28, 0, false, true},
		{0, 100, 60, 0, true, true},
		{0, 100, 100, 0, true, true},
		{40, 100, 0, 12, true, true},
		{40, 100, 0, 18, false, true},
		{40, 100, 0, 22, false, false},
		{40, 100, 100, 40, true, true},
		{100, 10, 0, 40, false, true},
	} {
		readCost := &readCost{delay: tt.delay * us, perByte: float64(tt.bytes) * 1000 / unit}
		var c copied
		for range copyFirst {
			c.took(unit, tt.copied*us)
		}
		begins := (&stream{think: tt.think * us}).pays(readCost, &c, unit)
		stays := (&stream{think: tt.think * us, ahead: true}).pays(readCost, &c, unit)
		if begins != tt.begins || stays != tt.stays {
			t.Errorf("%+v: begins %v, stays %v", tt, begins, stays)
		}
	}
}

// TestCopied: a copy that is quicker counts at once, a slower one a little.
func TestCopied(t *testing.T) {
	var c copied
	for range copyFirst {
		if got := c.bytes(1 << 20); got != 0 {
			t.Errorf("%v before enough is known", got)
		}
		c.took(1<<20, 100*us)
	}
	for _, tt := range []struct{ took, want time.Duration }{{100, 100}, {1000, 113}, {50, 50}, {50, 50}, {1000, 57}} {
		c.took(1<<20, tt.took*us)
		if got := c.bytes(1 << 20); (got - tt.want*us).Abs() > us {
			t.Errorf("after a copy of %v us: %v, want %v us", int(tt.took), got, int(tt.want))
		}
	}
}

// TestCopiedOnce: one copy during which the processor was taken away does not keep
// anything from being read ahead.
func TestCopiedOnce(t *testing.T) {
	far := &readCost{delay: ms, perByte: 1}
	var c copied
	c.took(copyLook, 10*ms)
	if !new(stream).pays(far, &c, copyLook) {
		t.Error("after one copy, that took 10 ms, nothing is read ahead of a server that is 1 ms away")
	}
	for range copyFirst {
		c.took(copyLook, 10*us)
	}
	if got := c.bytes(copyLook); got < 10*us || got > 20*us {
		t.Errorf("then copies took 10 us; believed are %v", got)
	}
}

// TestWholeReadAllocs: a large read in a row of such allocates nothing here, and
// nothing is read ahead for it.
func TestWholeReadAllocs(t *testing.T) {
	const step = 64 << 10
	r, below, f := withCost(t, readCost{delay: 10 * us, perByte: 1})
	base, got := seqAllocs(t, below, step), seqAllocs(t, f, step)
	// A reader whom the machine keeps from reading seems to think.
	if s := r.ahead.Stats(); got > base || s.Hits > s.Misses/20 {
		t.Errorf("%v allocations a read, %v without the wrapper; %+v", got, base, s)
	}
	r.ok(f.Close(t.Context()))
}

// withCost makes a file of which is known what READs take, and opens it with and
// without the wrapper.
func withCost(t *testing.T, known readCost) (r *rig, below, f vfs.File) {
	r = newRig(t, memfs.Options{ReadMax: 64 << 10}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	r.write(f, 0, pattern(16<<20))
	r.ok(r.commit(f))
	below, _, err := r.below.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	r.ok(err)
	t.Cleanup(func() { r.ok(below.Close(t.Context())) })
	known.looked = time.Now().Add(time.Hour)
	r.ahead.s.readCost.Store(&known)
	return r, below, f
}

// seqAllocs is how often a read of a sequence allocates.
func seqAllocs(t *testing.T, f vfs.File, step int) float64 {
	p := make([]byte, step)
	i := uint64(0)
	return testing.AllocsPerRun(2000, func() {
		if _, _, err := f.ReadAt(t.Context(), p, i*uint64(step)%(16<<20), nil); err != nil {
			t.Fatal(err)
		}
		i++
	})
}

// TestShortReplies: where the replies are shorter than was announced, too short to
// look by, reading ahead goes on.
func TestShortReplies(t *testing.T) {
	for _, most := range []int{1000, 6000} {
		synctest.Test(t, func(t *testing.T) {
			r, far := newFar(t, 16<<20, ms, 100e6, Options{})
			r.ahead.FS = &curt{far, most}
			f, _ := r.open("f", vfs.OpenHow{})
			r.readTo(f, 0, 4<<20, unit)
			s := r.ahead.Stats()
			if s.Misses > 600 || s.Hits == 0 {
				t.Errorf("at most %d bytes: %+v", most, s)
			}
			r.ok(f.Close(t.Context()))
		})
	}
}

// curt is an FS whose replies to READs are short.
type curt struct {
	*farFS
	most int
}

type curtFile struct {
	vfs.File
	most int
}

func (c *curt) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, opened, err := c.farFS.Open(ctx, at, how)
	return &curtFile{f, c.most}, opened, err
}

func (c *curtFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	return c.File.ReadAt(ctx, p[:min(len(p), c.most)], off, post)
}

// TestAfter: what a look makes of the times that it saw.
func TestAfter(t *testing.T) {
	known := &readCost{delay: 100 * us, perByte: 1} // a READ of 4 KiB takes 104 us
	for _, tt := range []struct {
		name          string
		before        *readCost
		first, second time.Duration
		alone         bool
		delay, bytes  time.Duration // of 100 KiB
	}{
		{"the first, with others", nil, 200 * us, 300 * us, false, 196 * us, 104 * us},
		{"as known", known, 104096, 202400, true, 100 * us, 102 * us},
		{"one late reply", known, 5 * ms, 202400, true, 115 * us, 86 * us},
		{"quicker", known, 20 * us, 120 * us, true, 16 * us, 104 * us},
		{"quicker, with others", known, 20 * us, 120 * us, false, 16 * us, 104 * us},
		{"slower, with others", known, 10 * ms, 20 * ms, false, 100 * us, 102 * us},
		{"upside down", known, 90 * us, 50 * us, true, 90 * us, 0},
	} {
		got := tt.before.after(lookFirst, 100<<10, tt.first, tt.second, tt.alone)
		bytes := got.bytes(100 << 10)
		if (got.delay-tt.delay).Abs() > 2*us || (bytes-tt.bytes).Abs() > 4*us {
			t.Errorf("%s: a delay of %v, and %v for 100 KiB", tt.name, got.delay, bytes)
		}
	}
}
