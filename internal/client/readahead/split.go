package readahead

import (
	"context"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// split is a read of more than a READ carries, by several at once, straight into
// the caller's buffer.
type split struct {
	f    *file
	p    []byte
	off  uint64
	post *vfs.Attr
	wg   sync.WaitGroup

	mu     sync.Mutex
	flying int
	next   int // the unit that is to be read next
	stop   int // the first that is not full; those behind are of no use
	n      int // bytes of it
	eof    bool
	err    error
}

// read makes the READs. It returns what came before the first of them that failed, was short, or
// met the end of the file. Nothing is asked for behind the end of the file, as far as that is
// known. If the file has grown, the read is a short one.
func (r *split) read(ctx context.Context) (n int, eof bool, err error) {
	unit := r.f.unit()
	r.f.n.mu.Lock()
	end := r.f.ahead.end
	r.f.n.mu.Unlock()
	r.stop = (len(r.p) + unit - 1) / unit
	if end > r.off {
		r.stop = int(min(uint64(r.stop), (end-r.off-1)/uint64(unit)+1))
	}
	r.start(ctx)
	r.wg.Wait()
	return min(r.stop*unit, len(r.p)) + r.n, r.eof, r.err
}

// start starts READs as long as there may be more in flight.
func (r *split) start(ctx context.Context) {
	r.f.n.mu.Lock()
	most := min(r.f.ahead.split.units(), maxSplit)
	r.f.n.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.flying < most && r.next < r.stop {
		i := r.next
		r.next++
		r.flying++
		r.wg.Go(func() { r.unit(ctx, i) })
	}
}

// unit reads unit i, and starts what may be in flight after it.
func (r *split) unit(ctx context.Context, i int) {
	var post vfs.Attr
	from := i * r.f.unit()
	p := r.p[from:min(from+r.f.unit(), len(r.p))]
	k, eof, err := r.f.fill(ctx, p, r.off+uint64(from), &post)
	r.mu.Lock()
	r.flying--
	if r.post != nil {
		*r.post = post
	}
	if (k < len(p) || eof || err != nil) && i < r.stop {
		r.stop, r.n, r.eof, r.err = i, k, eof, err
	}
	more := r.next < r.stop
	r.mu.Unlock()
	n := r.f.n
	n.mu.Lock()
	r.f.ahead.split.moved(k, r.f.unit(), maxSplit, more)
	n.mu.Unlock()
	if more {
		r.start(ctx)
	}
}
