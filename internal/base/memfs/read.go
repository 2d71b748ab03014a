package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// ReadAt reads at most Options.ReadMax bytes. The end is reached if nothing is
// left behind what was read (RFC 1813, section 3.3.6).
func (o *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if err := o.fs.begin(ctx, "read", o.h); err != nil {
		return 0, false, err
	}
	n, eof, err = o.read(p, off, post)
	if err == nil {
		o.fs.accessed(o.n)
	}
	return n, eof, err
}

func (o *file) read(p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	o.fs.mu.RLock()
	defer o.fs.mu.RUnlock()
	if err := o.use(vfs.ShareRead); err != nil {
		return 0, false, err
	}
	p = p[:min(len(p), int(o.fs.opt.ReadMax))]
	n = o.n.content.read(p, off)
	if post != nil {
		*post = o.fs.attr(o.n)
	}
	return n, off >= o.n.content.size || o.n.content.size-off == uint64(n), nil
}

// Readlink returns the target as it was given to Create.
func (f *FS) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	if err := f.begin(ctx, "readlink", h); err != nil {
		return "", vfs.Attr{}, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.get(h)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	if n.typ != vfs.TypeSymlink {
		return "", f.attr(n), vfs.ErrInval
	}
	return n.target, f.attr(n), nil
}

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
