package writeback

import (
	"context"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/vfs"
)

// WriteAt copies p and returns, unless how asks for more: then it writes p below. If ctx ends
// while it waits for room, the n bytes that it has accepted stay accepted.
func (f *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (n int, err error) {
	if err := f.begin(vfs.ShareWrite); err != nil {
		return 0, err
	}
	defer f.end()
	switch {
	case how > vfs.FileSync:
		return 0, vfs.ErrInval
	case off > f.max || uint64(len(p)) > f.max-off:
		return 0, vfs.ErrFBig
	case how != vfs.Unstable:
		return f.writeThrough(ctx, p, off, how, w)
	}
	return f.writeBehind(ctx, p, nil, off, w)
}

var _ bufpool.Writer = (*file)(nil)

// WriteBuffer implements bufpool.Writer. b is shared if one WRITE carries all of it, and
// copied otherwise.
func (f *file) WriteBuffer(ctx context.Context, b *bufpool.Buffer, off uint64) error {
	if err := f.begin(vfs.ShareWrite); err != nil {
		return err
	}
	defer f.end()
	if off > f.max || uint64(len(b.B)) > f.max-off {
		return vfs.ErrFBig
	}
	var w vfs.Written
	_, err := f.writeBehind(ctx, b.B, b, off, &w)
	return err
}

// writeBehind accepts p, which are the bytes of from if that is not nil.
func (f *file) writeBehind(ctx context.Context, p []byte, from *bufpool.Buffer, off uint64, w *vfs.Written) (n int, err error) {
	if from != nil && (len(p) > f.n.left(off) || cap(p) != bufpool.Size(len(p))) {
		from = nil // too large for one WRITE, or more memory than would be charged
	}
	for n < len(p) {
		k, err := f.accept(ctx, p[n:], from, off+uint64(n))
		if err != nil {
			return n, err
		}
		n += k
	}
	*w = vfs.Written{Committed: vfs.Unstable, Verf: f.n.s.opt.Verifier}
	return n, nil
}

// writeThrough writes p below at once, after what is dirty there has been sent.
func (f *file) writeThrough(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (n int, err error) {
	ctx, done := f.within(ctx)
	defer done()
	var since uint64
	err = f.n.fence(ctx, off, off+uint64(len(p)), func() (uint64, uint64, error) {
		if err := f.failed(); err != nil {
			return 0, 0, err // f has failed while this call waited
		}
		since = f.n.s.stableCount.Load()
		n, err = f.inner.WriteAt(ctx, p, off, how, w)
		end := off + uint64(max(n, 0))
		f.n.replaced(off, end)
		return off, end, err
	})
	f.n.grow(since, &w.WCC.After)
	w.Verf = f.n.s.opt.Verifier
	return n, err
}

// accept takes as much of p as one WRITE carries: a copy, or from itself if that is not nil.
func (f *file) accept(ctx context.Context, p []byte, from *bufpool.Buffer, off uint64) (int, error) {
	for {
		n, room, err := f.tryAccept(ctx, p, from, off)
		if n > 0 || err != nil {
			return n, err
		}
		within, done := f.within(ctx)
		err = f.n.s.awaitRoom(within, f.n, room)
		done()
		if err != nil && ctx.Err() != nil {
			return 0, err
		}
	}
}

// tryAccept is accept without a wait for room: if it takes nothing, room is how many bytes it
// needs. A piece does not reach over a multiple of the size of a WRITE. So the WRITEs of a
// sequence are full and aligned, wherever it began.
func (f *file) tryAccept(ctx context.Context, p []byte, from *bufpool.Buffer, off uint64) (took, room int, err error) {
	n := f.n
	n.mu.Lock()
	defer n.mu.Unlock()
	p = p[:min(len(p), n.left(off))]
	end := off + uint64(len(p))
	free := func() bool { return f.err != nil || f.ctx.Err() != nil || !n.blocked(off, end) }
	if err := n.await(ctx, free); err != nil {
		return 0, 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	if f.err != nil {
		return 0, 0, f.err
	}
	if f.ctx.Err() != nil {
		return 0, 0, vfs.ErrInval // closed, by a Close that gave up
	}
	t := n.tailAt(f, off)
	room = bufpool.Size(len(p))
	if t != nil {
		room = bufpool.Size(len(t.buf.B) + len(p))
	}
	if !n.s.reserve(n, room) {
		return 0, room, nil
	}
	n.cut(off, end)
	if t != nil {
		n.append(t, p)
	} else {
		if from == nil {
			from = n.s.copied(p)
		} else {
			from.Share()
		}
		t = n.newPiece(f, from, off, n.next())
		n.insert(t)
		n.addTail(t)
	}
	n.s.charge(n, -room)
	n.sendFull(t)
	n.changed()
	return len(p), 0, nil
}

// left is how many bytes fit in the WRITE that off is in.
func (n *node) left(off uint64) int { return n.wsize - int(off&uint64(n.wsize-1)) }

// tailAt is the tail of f that ends at off, and may go on there, or nil.
func (n *node) tailAt(f *file, off uint64) *piece {
	if n.left(off) == n.wsize {
		return nil
	}
	for _, t := range n.tails {
		if t.file == f && t.end() == off {
			return t
		}
	}
	return nil
}

// addTail makes t, which is queued, a tail. n.mu is held.
func (n *node) addTail(t *piece) {
	if len(n.tails) == maxTails {
		n.ready = append(n.ready, n.tails[0])
		n.tails = append(n.tails[:0], n.tails[1:]...)
	}
	n.tails = append(n.tails, t)
}

// sendFull sends the tail t if nothing more fits. n.mu is held.
func (n *node) sendFull(t *piece) {
	if n.left(t.end()) == n.wsize {
		for i, q := range n.tails {
			if q == t {
				n.tails = append(n.tails[:i], n.tails[i+1:]...)
				n.ready = append(n.ready, t)
				break
			}
		}
	}
	n.pump()
}
