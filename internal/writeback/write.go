package writeback

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/nfsbox/nfsbox/vfs"
)

// WriteAt copies p and returns, unless how asks for more: then it writes p
// below. If ctx ends while it waits for room, the n bytes that it has accepted
// stay accepted.
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
	for n < len(p) {
		k, err := f.accept(ctx, p[n:], off+uint64(n))
		if err != nil {
			return n, err
		}
		n += k
	}
	*w = vfs.Written{Committed: vfs.Unstable, Verf: f.n.s.opt.Verifier}
	return n, nil
}

// writeThrough writes p below at once; it waits for what is dirty there.
func (f *file) writeThrough(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (n int, err error) {
	err = f.n.fence(ctx, off, off+uint64(len(p)), func() (uint64, uint64, error) {
		n, err = f.inner.WriteAt(ctx, p, off, how, w)
		return off, off + uint64(max(n, 0)), err
	})
	w.Verf = f.n.s.opt.Verifier
	return n, err
}

// accept takes a copy of as much of p as one WRITE carries.
func (f *file) accept(ctx context.Context, p []byte, off uint64) (int, error) {
	for range maxEvictions {
		n, err := f.tryAccept(ctx, p, off)
		if n > 0 || err != nil {
			return n, err
		}
		if err := f.n.makeRoom(ctx); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("other writers took all room for dirty bytes: %w", vfs.ErrBusy)
}

// tryAccept is accept; 0, nil means that there is no room.
func (f *file) tryAccept(ctx context.Context, p []byte, off uint64) (int, error) {
	n := f.n
	n.mu.Lock()
	defer n.mu.Unlock()
	p = p[:min(len(p), n.size)]
	end := off + uint64(len(p))
	if err := n.await(ctx, func() bool { return f.err != nil || !n.blocked(off, end) }); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if f.err != nil {
		return 0, f.err
	}
	if t := n.tail; t != nil && t.file == f && t.end() == off && len(t.buf.B) < n.size {
		return n.extend(t, p[:min(len(p), n.size-len(t.buf.B))]), nil
	}
	return n.add(f, p, off), nil
}

// extend appends p to the tail t, and sends that when it is full. It returns 0
// if there is no room. n.mu is held.
func (n *node) extend(t *piece, p []byte) int {
	room := lent(len(t.buf.B) + len(p))
	if !n.s.reserve(room) {
		return 0
	}
	end := t.end()
	n.cut(end, end+uint64(len(p)))
	n.append(t, p)
	n.s.charge(-room)
	n.sendFull()
	return len(p)
}

// add makes p a new piece, the tail. It returns 0 if there is no room. n.mu is
// held.
func (n *node) add(f *file, p []byte, off uint64) int {
	room := lent(len(p))
	if !n.s.reserve(room) {
		return 0
	}
	n.cut(off, off+uint64(len(p)))
	n.closeTail()
	n.tail = n.newPiece(f, p, off, n.next())
	n.insert(n.tail)
	n.s.charge(-room)
	n.sendFull()
	return len(p)
}

func (n *node) sendFull() {
	if len(n.tail.buf.B) >= n.size {
		n.closeTail()
	}
	n.pump()
}

// lent is the size of the buffer that a pool lends for n bytes, up to its
// largest.
func lent(n int) int { return max(1<<bits.Len(uint(n-1)), 512) }

// reserve charges n bytes if there is room.
func (s *shared) reserve(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirty > 0 && s.dirty+int64(n) > s.opt.MaxDirty {
		return false
	}
	s.dirty += int64(n)
	return true
}

// makeRoom commits an object with dirty bytes: this one, or else any.
func (n *node) makeRoom(ctx context.Context) error {
	if n.end() > 0 {
		return n.commit(ctx)
	}
	var failed error
	for _, other := range n.s.all() {
		if other.end() == 0 {
			continue
		}
		err := other.commit(ctx)
		if err == nil {
			return nil
		}
		failed = fmt.Errorf("making room for dirty bytes: %w", err)
	}
	return failed
}

func (s *shared) all() []*node {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := make([]*node, 0, len(s.nodes))
	for _, n := range s.nodes {
		nodes = append(nodes, n)
	}
	return nodes
}
