package bufpool

import (
	"sync"
	"testing"
)

func TestGet(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, 4096, 1 << 20, 1<<20 + 200, 1 << 21, 1<<21 + 1, 5 << 20} {
		var p Pool
		b := p.Get(n)
		if len(b.B) != n {
			t.Errorf("Get(%d): %d bytes", n, len(b.B))
		}
		if p.Outstanding() != 1 || p.Bytes() < int64(n) || p.Bytes() != int64(Size(n)) {
			t.Errorf("Get(%d): %d buffers of %d bytes are out", n, p.Outstanding(), p.Bytes())
		}
		b.Release()
		if p.Outstanding() != 0 || p.Bytes() != 0 {
			t.Errorf("Release of %d: %d buffers of %d bytes are out", n, p.Outstanding(), p.Bytes())
		}
	}
}

func TestReleaseTwicePanics(t *testing.T) {
	var p Pool
	b := p.Get(10)
	b.Release()
	defer func() {
		if recover() == nil {
			t.Error("a second Release went unnoticed")
		}
	}()
	b.Release()
}

// TestShare: a buffer is lent until the last of its owners has released it.
func TestShare(t *testing.T) {
	var p Pool
	b := p.Get(10)
	for range 2 {
		if b.Share() != b {
			t.Fatal("what is shared is another buffer")
		}
	}
	copy(b.B, "0123456789")
	for range 2 {
		b.Release()
		if p.Outstanding() != 1 || p.Bytes() == 0 || string(b.B) != "0123456789" {
			t.Fatalf("%d out, %d bytes, %q", p.Outstanding(), p.Bytes(), b.B)
		}
	}
	b.Release()
	if p.Outstanding() != 0 || p.Bytes() != 0 {
		t.Errorf("%d out, %d bytes", p.Outstanding(), p.Bytes())
	}
	defer func() {
		if recover() == nil {
			t.Error("one Release too many went unnoticed")
		}
	}()
	b.Release()
}

// TestOneOwner lends from many goroutines and looks for a buffer with two owners.
func TestOneOwner(t *testing.T) {
	var p Pool
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				b := p.Get(i%3000 + 1)
				for j := range b.B {
					b.B[j] = byte(g)
				}
				for j := range b.B {
					if b.B[j] != byte(g) {
						t.Error("somebody else wrote into a lent buffer")
						return
					}
				}
				b.Release()
			}
		})
	}
	wg.Wait()
	if n := p.Outstanding(); n != 0 {
		t.Errorf("%d buffers are still out", n)
	}
}

func TestGetAllocs(t *testing.T) {
	var p Pool
	p.Get(4096).Release()
	if n := testing.AllocsPerRun(100, func() { p.Get(4096).Release() }); n > 0.1 {
		t.Errorf("%v allocations for a buffer of the pool, want 0", n)
	}
}
