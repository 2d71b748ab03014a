package vfs

import (
	"context"
	"fmt"
	"io"
)

// ReadFull reads from f at off until p is full or the file ends, and returns
// how much came and whether the end was reached. A peer that answers nothing
// and no end is [io.ErrNoProgress]; one that claims more than was asked for is
// [ErrServerFault].
func ReadFull(ctx context.Context, f File, p []byte, off uint64) (n int, eof bool, err error) {
	for n < len(p) {
		m, end, err := f.ReadAt(ctx, p[n:], off+uint64(n), nil)
		if m < 0 || m > len(p)-n {
			return n, false, fmt.Errorf("read of %d bytes answered %d: %w", len(p)-n, m, ErrServerFault)
		}
		n += m
		if err != nil || end {
			return n, end, err
		}
		if m == 0 {
			return n, false, io.ErrNoProgress
		}
	}
	return n, false, nil
}

// WriteFull writes all of p to f at off. w holds what the last write said;
// Committed is the weakest and, if the verifier changed on the way, Unstable
// under the first verifier, so that a Commit cannot match it. A peer that takes
// nothing is [io.ErrShortWrite]; one that claims to have taken more than there
// was is [ErrServerFault].
func WriteFull(ctx context.Context, f File, p []byte, off uint64, how Stability, w *Written) (n int, err error) {
	first := true
	var all Written
	for n < len(p) {
		m, err := f.WriteAt(ctx, p[n:], off+uint64(n), how, w)
		if m < 0 || m > len(p)-n {
			return n, fmt.Errorf("write of %d bytes answered %d: %w", len(p)-n, m, ErrServerFault)
		}
		n += m
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.ErrShortWrite
		}
		if first {
			all, first = *w, false
			continue
		}
		all.merge(w)
		*w = all
	}
	return n, nil
}

// merge makes w the judgement over itself and the later write o.
func (w *Written) merge(o *Written) {
	w.Committed = min(w.Committed, o.Committed)
	if w.Verf != o.Verf {
		w.Committed = Unstable
	}
	w.WCC.After = o.WCC.After
}
