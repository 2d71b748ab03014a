package localio

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/nfsbox/nfsbox/vfs"
)

// WriteAt writes by a descriptor, or below. The verifier of a write is read before
// anything of it happens: should what it writes be lost between here and the
// reply, that carries the old one, and a commit tells another.
func (f *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (n int, err error) {
	if err := f.use(ctx, vfs.ShareWrite); err != nil {
		return 0, err
	}
	if off > math.MaxInt64-maxIO || len(p) == 0 || how > vfs.FileSync {
		return f.writeBelow(ctx, p, off, how, w)
	}
	if err := f.settle(ctx); err != nil {
		return 0, err
	}
	var cause error
	if !f.n.remote() {
		if g := f.grant(ctx, vfs.ShareWrite, f.small(vfs.ShareWrite, len(p), off)); g != nil {
			n, done, err := g.write(ctx, p[:min(len(p), maxIO)], off, how, w)
			g.leave()
			if done {
				return n, err
			}
			cause = err
		}
	}
	if err := f.remote(ctx, vfs.ShareWrite, cause); err != nil {
		return 0, err
	}
	f.write.used.Store(true)
	return f.writeBelow(ctx, p, off, how, w)
}

// settle has what is in doubt over the network committed, where that is not allowed: no
// write by a descriptor may overtake it.
func (f *file) settle(ctx context.Context) error {
	if f.fs.s.o.Mode != Require || !f.n.remote() {
		return nil
	}
	if err := f.commitBelow(ctx, new(vfs.Written)); err != nil {
		return fmt.Errorf("localio: commit what may be under way over the network: %w", err)
	}
	return nil
}

// write writes what it can of p, and fills w. If it is not done, with or without
// an error, the server is to be asked.
func (g *grant) write(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (k int, done bool, err error) {
	n := g.n
	*w = vfs.Written{Committed: how, Verf: n.verifier()}
	if err := n.s.gate.enter(ctx); err != nil {
		return 0, true, err
	}
	failed := n.failed.Load()
	k, err = pwrite(g.fd, p, off)
	if k > 0 {
		n.wrote(g)
		n.grow(off + uint64(k))
		g.ops.Add(1)
		g.bytes.Add(uint64(k))
	}
	if how == vfs.Unstable && k > 0 {
		g.after(&w.WCC.After)
	}
	n.s.gate.leave()
	switch {
	case err != nil:
		// The disk may have failed under what was written before as well.
		n.lost()
		return 0, decided(err), fail("pwrite", err)
	case how == vfs.Unstable || k == 0:
		return k, k > 0, nil
	}
	if _, err := n.sync(ctx, how == vfs.FileSync); err != nil {
		return 0, true, err
	}
	// The flight that took these bytes may have ended before they were looked for.
	if fl := n.failed.Load(); fl != failed {
		return 0, true, fl.err
	}
	g.after(&w.WCC.After)
	return k, true, nil
}

// after tells the attributes, if they can be had.
func (g *grant) after(a *vfs.Attr) {
	var st stat
	if st.statFD(g.fd) == nil {
		g.n.size.Store(st.Size)
		st.attr(g.named(), a)
	}
}

// writeBelow writes over the network. What comes of it is noted even if the file is
// closed meanwhile.
func (f *file) writeBelow(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	s := f.fs.s
	n := s.enter(f.n.h)
	defer s.drop(n)
	verf := n.verifier()
	k, err := f.below.WriteAt(ctx, p, off, how, w)
	switch {
	case err != nil && undecided(err):
		n.unanswered()
	case err == nil && k > 0:
		if w.Committed == vfs.Unstable {
			n.answered(w.Verf)
		}
		n.grow(off + uint64(k))
		s.hear()
	}
	w.Verf = verf
	return k, err
}

// undecided reports whether a write that failed so may still be carried out.
func undecided(err error) bool {
	if errors.Is(err, vfs.ErrUnknownOutcome) {
		return true
	}
	_, ok := vfs.StatusOf(err)
	return !ok
}
