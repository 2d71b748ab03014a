//go:build linux

package localfs

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

func devNull(t *testing.T) int {
	fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func number(i int) vfs.Handle {
	x, _ := vfs.MakeHandle([]byte{9, byte(i), byte(i >> 8)})
	return x
}

// TestCacheUnderFire has everybody do everything at once to a small cache, and
// looks whether a descriptor is open while it is pinned, and closed in the end.
func TestCacheUnderFire(t *testing.T) {
	before := openFDs(t)
	const bound, handles, workers, rounds = 24, 64, 8, 3000
	var orphans atomic.Int64
	c := newFDCache(bound, func(*desc) { orphans.Add(1) })
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for range rounds {
				x, u := number(r.IntN(handles)), use(r.IntN(3))
				d := c.get(x, u)
				if d == nil {
					var err error
					if d, err = c.put(x, u, devNull(t), unix.S_IFREG); err != nil {
						continue // all are in use
					}
				}
				if d.key.h != x || d.key.use != u {
					t.Errorf("asked for %v, got %v", x, d.key)
				}
				if _, err := unix.FcntlInt(uintptr(d.fd), unix.F_GETFD, 0); err != nil {
					t.Errorf("a pinned descriptor: %v", err)
				}
				switch r.IntN(8) {
				case 0, 1:
					c.dirt.add(d)
				case 2:
					c.forget(x)
				case 3:
					if o := c.dirt.pinOldest(); o != nil {
						c.dirt.clean(o)
						c.unpin(o)
					}
				}
				c.unpin(d)
			}
		})
	}
	wg.Wait()
	if n := c.open.Load(); n > bound {
		t.Errorf("%d descriptors are open, more than %d", n, bound)
	}
	if c.evicted.Load() == 0 || orphans.Load() == 0 {
		t.Error("nothing was evicted, or nothing dirty was forgotten: the test is too tame")
	}
	if err := c.close(func(d *desc) error { return nil }); err != nil {
		t.Error(err)
	}
	if c.dirt.n.Load() != 0 || c.dirt.oldest != nil || c.dirt.newest != nil {
		t.Error("something is still dirty")
	}
	if after := openFDs(t); after != before {
		t.Errorf("%d descriptors were open before, %d after", before, after)
	}
}

// TestCacheEvictsTheIdle keeps what is used and what is dirty.
func TestCacheEvictsTheIdle(t *testing.T) {
	c := newFDCache(4, func(*desc) {})
	hot, dirty := number(1000), number(1001)
	for _, x := range []vfs.Handle{hot, dirty} {
		d, err := c.put(x, useWrite, devNull(t), unix.S_IFREG)
		if err != nil {
			t.Fatal(err)
		}
		if x == dirty {
			c.dirt.add(d)
		}
		if x != hot {
			c.unpin(d)
		}
	}
	for i := range 100 {
		d, err := c.put(number(i), usePath, devNull(t), unix.S_IFREG)
		if err != nil {
			t.Fatal(err)
		}
		c.unpin(d)
	}
	for _, x := range []vfs.Handle{hot, dirty} {
		d := c.get(x, useWrite)
		if d == nil {
			t.Fatalf("%v was evicted", x)
		}
		c.unpin(d)
	}
	d := c.get(hot, useWrite)
	c.unpin(d)
	c.unpin(d) // the pin of the first loop
	if err := c.close(func(*desc) error { return nil }); err != nil {
		t.Error(err)
	}
}

// TestCacheAllocs: what is open is found and given back without garbage.
func TestCacheAllocs(t *testing.T) {
	c := newFDCache(4, func(*desc) {})
	x := number(1)
	d, err := c.put(x, usePath, devNull(t), unix.S_IFREG)
	if err != nil {
		t.Fatal(err)
	}
	c.unpin(d)
	if n := testing.AllocsPerRun(100, func() { c.unpin(c.get(x, usePath)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := c.close(func(*desc) error { return nil }); err != nil {
		t.Error(err)
	}
}
