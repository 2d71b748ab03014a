package writeback

import (
	"context"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Appender = (*file)(nil)

// Append implements vfs.Appender. Calls that append to an object take turns, each for
// as long as it takes to ask for the size and to accept p. The server itself is asked: a size
// that is kept may be from before another client appended.
func (f *file) Append(ctx context.Context, p []byte, how vfs.Stability, w *vfs.Written) (off uint64, n int, err error) {
	if err := f.begin(vfs.ShareWrite); err != nil {
		return 0, 0, err
	}
	defer f.end()
	ctx, done := f.within(ctx)
	defer done()
	select {
	case f.n.turn <- struct{}{}:
		defer func() { <-f.n.turn }()
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	attr, err := f.view.Anew().GetAttr(ctx, f.n.h, vfs.MaskSize)
	if err == nil && !attr.Has(vfs.MaskSize) {
		err = fmt.Errorf("the size was not sent: %w", vfs.ErrServerFault)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("where the file ends: %w", err)
	}
	n, err = vfs.WriteFull(ctx, f, p, attr.Size, how, w)
	return attr.Size, n, err
}
