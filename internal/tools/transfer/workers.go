package transfer

import (
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// workers are the goroutines that move the chunks of one file, DefaultWindow at first. Each
// chunk that comes from another host adds one, up to MaxWindow. That is a bound of the memory
// and nothing else: how many calls a server gets at once its client finds out
// (internal/client/pace), and for that some have to wait there. Of near bytes more at once
// would cost memory and caches, and bring nothing.
type workers struct {
	o      *Options
	chunks uint64 // of the file
	work   func() // moves chunks until there are none

	wg   sync.WaitGroup
	mu   sync.Mutex
	size int
}

// run returns when all of them have ended.
func (c *workers) run() {
	c.size = int(min(uint64(c.o.window()), c.chunks))
	for range c.size {
		c.wg.Go(c.work)
	}
	c.wg.Wait()
}

// moved adds a worker after a chunk of the files from. At a bound it adds none.
func (c *workers) moved(from ...vfs.File) {
	if c == nil || c.o.Window > 0 || !c.o.Budget.ample() || allNear(from) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size < MaxWindow && uint64(c.size) < c.chunks {
		c.size++
		c.wg.Go(c.work)
	}
}

// allNear reports whether the bytes of all files are near.
func allNear(files []vfs.File) bool {
	for _, f := range files {
		if n, ok := vfs.As[vfs.Near](f); !ok || !n.Near() {
			return false
		}
	}
	return true
}
