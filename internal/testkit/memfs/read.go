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
