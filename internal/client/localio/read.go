package localio

import (
	"context"
	"math"

	"github.com/nfsbox/nfsbox/vfs"
)

// ReadAt reads by a descriptor, or below.
func (f *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if err := f.use(ctx, vfs.ShareRead); err != nil {
		return 0, false, err
	}
	if off > math.MaxInt64-maxIO || len(p) == 0 {
		return f.below.ReadAt(ctx, p, off, post)
	}
	var cause error
	if g := f.grant(ctx, vfs.ShareRead, f.small(vfs.ShareRead, len(p), off)); g != nil {
		n, eof, err := g.read(ctx, p[:min(len(p), maxIO)], off, post)
		g.leave()
		switch {
		case err == nil:
			return n, eof, nil
		case ctx.Err() != nil:
			return 0, false, ctx.Err()
		case decided(err):
			return 0, false, fail("pread", err)
		}
		cause = err
	}
	if err := f.remote(ctx, vfs.ShareRead, cause); err != nil {
		return 0, false, err
	}
	f.read.used.Store(true)
	n, eof, err = f.below.ReadAt(ctx, p, off, post)
	if err == nil {
		f.fs.s.hear()
	}
	return n, eof, err
}

// read reads at least a byte, or finds the end. An error is ctx's, or the kernel's.
func (g *grant) read(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if len(p) <= promptMax && !g.slow.Load() {
		k, errno := preadNowait(g.fd, p, off)
		switch {
		case k == len(p) && errno == 0:
			g.ops.Add(1)
			g.bytes.Add(uint64(k))
			if post == nil && off+uint64(k) < g.n.size.Load() {
				return k, false, nil
			}
			eof, err = g.atEnd(off+uint64(k), post)
			return k, eof, err
		case errno != 0 && cannotNowait(errno):
			g.slow.Store(true)
		}
		n = k
	}
	if err := g.n.s.gate.enter(ctx); err != nil {
		return 0, false, err
	}
	n, eof, err = g.readOn(p, n, off, post)
	g.n.s.gate.leave()
	return n, eof, err
}

// readOn reads what p lacks after its first n bytes. The caller has a place in the gate.
func (g *grant) readOn(p []byte, n int, off uint64, post *vfs.Attr) (int, bool, error) {
	k, err := pread(g.fd, p[n:], off+uint64(n))
	if err != nil && n == 0 {
		return 0, false, err
	}
	// Bytes that have come are returned; the next read meets the error.
	n += k
	g.ops.Add(1)
	g.bytes.Add(uint64(n))
	if err == nil && n == len(p) && post == nil && off+uint64(n) < g.n.size.Load() {
		return n, false, nil
	}
	eof, err := g.atEnd(off+uint64(n), post)
	// A read of nothing was at the end, though the file may have grown since.
	return n, eof || n == 0, err
}

// atEnd asks for the attributes, and reports whether off is at or after the end.
func (g *grant) atEnd(off uint64, post *vfs.Attr) (bool, error) {
	var st stat
	if err := st.statFD(g.fd); err != nil {
		return false, err
	}
	g.n.size.Store(st.Size)
	if post != nil {
		st.attr(g.named(), post)
	}
	return off >= st.Size, nil
}

// named is the object's identity in attributes.
func (g *grant) named() *identity {
	if id := g.n.id.Load(); id != nil {
		return id
	}
	return &g.id
}
