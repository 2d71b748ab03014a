package vfs

import (
	"context"
	"fmt"
	"io"
)

// ReadFull reads from f at off until p is full or the file ends. It returns how much
// came and whether the end was reached. If the peer returns no bytes and no end, that
// is [io.ErrNoProgress]; if it claims more than was asked for, [ErrServerFault].
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

// WriteFull writes all of p to f at off. w covers all its writes: Committed is the
// weakest, and WCC goes from before the first to after the last. If the verifier
// changed on the way, w is Unstable under the first one, so that no Commit matches it.
// If the peer takes nothing, that is [io.ErrShortWrite]; if it claims more than it was
// given, [ErrServerFault].
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

// merge adds the later write o to w.
func (w *Written) merge(o *Written) {
	w.Committed = min(w.Committed, o.Committed)
	if w.Verf != o.Verf {
		w.Committed = Unstable
	}
	w.WCC.After = o.WCC.After
}
