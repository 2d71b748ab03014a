//go:build linux

package fdcache

import (
	"math/rand/v2"
	"os"
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

// opened is how many descriptors this process has.
func opened(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func number(i int) vfs.Handle {
	x, _ := vfs.MakeHandle([]byte{9, byte(i), byte(i >> 8)})
	return x
}

// TestCacheUnderFire has everybody do everything at once to a small cache, and
// looks whether a descriptor is open while it is pinned, and closed in the end.
func TestCacheUnderFire(t *testing.T) {
	before := opened(t)
	const bound, handles, workers, rounds = 24, 64, 8, 3000
	var orphans atomic.Int64
	c := New(bound, func(*Desc) { orphans.Add(1) })
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for range rounds {
				x, u := number(r.IntN(handles)), Use(r.IntN(3))
				d := c.Get(x, u)
				if d == nil {
					var err error
					if d, err = c.Put(x, u, devNull(t), unix.S_IFREG); err != nil {
						continue // all are in use
					}
				}
				if d.H != x || d.Use != u {
					t.Errorf("asked for %v, got %v", x, d.Key)
				}
				if _, err := unix.FcntlInt(uintptr(d.FD), unix.F_GETFD, 0); err != nil {
					t.Errorf("a pinned descriptor: %v", err)
				}
				switch r.IntN(8) {
				case 0, 1:
					c.Dirty.Add(d)
				case 2:
					c.Forget(x)
				case 3:
					if o := c.Dirty.PinOldest(); o != nil {
						c.Dirty.Clean(o)
						c.Unpin(o)
					}
				}
				c.Unpin(d)
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
	if err := c.Close(func(d *Desc) error { return nil }); err != nil {
		t.Error(err)
	}
	if c.Dirty.n.Load() != 0 || c.Dirty.oldest != nil || c.Dirty.newest != nil {
		t.Error("something is still dirty")
	}
	if after := opened(t); after != before {
		t.Errorf("%d descriptors were open before, %d after", before, after)
	}
}

// TestCacheEvictsTheIdle keeps what is used and what is dirty.
func TestCacheEvictsTheIdle(t *testing.T) {
	c := New(4, func(*Desc) {})
	hot, dirty := number(1000), number(1001)
	for _, x := range []vfs.Handle{hot, dirty} {
		d, err := c.Put(x, Write, devNull(t), unix.S_IFREG)
		if err != nil {
			t.Fatal(err)
		}
		if x == dirty {
			c.Dirty.Add(d)
		}
		if x != hot {
			c.Unpin(d)
		}
	}
	for i := range 100 {
		d, err := c.Put(number(i), Path, devNull(t), unix.S_IFREG)
		if err != nil {
			t.Fatal(err)
		}
		c.Unpin(d)
	}
	for _, x := range []vfs.Handle{hot, dirty} {
		d := c.Get(x, Write)
		if d == nil {
			t.Fatalf("%v was evicted", x)
		}
		c.Unpin(d)
	}
	d := c.Get(hot, Write)
	c.Unpin(d)
	c.Unpin(d) // the pin of the first loop
	if err := c.Close(func(*Desc) error { return nil }); err != nil {
		t.Error(err)
	}
}

// TestCacheAllocs: what is open is found and given back without garbage.
func TestCacheAllocs(t *testing.T) {
	c := New(4, func(*Desc) {})
	x := number(1)
	d, err := c.Put(x, Path, devNull(t), unix.S_IFREG)
	if err != nil {
		t.Fatal(err)
	}
	c.Unpin(d)
	if n := testing.AllocsPerRun(100, func() { c.Unpin(c.Get(x, Path)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := c.Close(func(*Desc) error { return nil }); err != nil {
		t.Error(err)
	}
}
