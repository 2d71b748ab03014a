package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

func (o *file) NextData(ctx context.Context, off uint64) (uint64, error) {
	return o.seek(ctx, off, (*data).nextData)
}

func (o *file) NextHole(ctx context.Context, off uint64) (uint64, error) {
	return o.seek(ctx, off, (*data).nextHole)
}

func (o *file) seek(ctx context.Context, off uint64, next func(*data, uint64) (uint64, error)) (uint64, error) {
	if err := o.fs.begin(ctx, "seek", o.h); err != nil {
		return 0, err
	}
	o.fs.mu.RLock()
	defer o.fs.mu.RUnlock()
	if err := o.use(vfs.ShareRead); err != nil {
		return 0, err
	}
	return next(&o.n.content, off)
}
