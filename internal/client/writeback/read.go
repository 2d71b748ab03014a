package writeback

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// ReadAt returns dirty bytes where there are any, and asks below for the rest.
func (f *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if err := f.begin(vfs.ShareRead); err != nil {
		return 0, false, err
	}
	defer f.end()
	// A read from memory makes no call that would notice that ctx has ended.
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	dirty, end := f.n.copyDirty(p, off)
	if len(dirty) == 0 && end <= off {
		n, eof, err = f.inner.ReadAt(ctx, p, off, post)
	} else {
		if post != nil {
			*post = vfs.Attr{}
		}
		r := reader{ctx: ctx, f: f, p: p, off: off, end: end, post: post}
		eof, err = r.read(dirty)
		n = r.n
	}
	if post != nil {
		post.Size = max(post.Size, end)
	}
	return n, eof, err
}

// copyDirty copies the dirty bytes of [off, off+len(p)) to their places in p. It returns where
// they are, and where the last dirty byte of the file ends. It comes before the read below: bytes
// that become stable during that read are dropped here, and may be missing there.
func (n *node) copyDirty(p []byte, off uint64) (dirty []span, end uint64) {
	if !n.dirty.Load() {
		return nil, 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	to := off + uint64(len(p))
	if to < off {
		return nil, n.dirtyEnd()
	}
	for _, q := range n.overlapping(off, to) {
		s := span{max(off, q.off), min(to, q.end())}
		copy(p[s.from-off:s.to-off], q.buf.B[s.from-q.off:])
		dirty = append(dirty, s)
	}
	return dirty, n.dirtyEnd()
}

// reader puts a read together, of dirty bytes and what is below.
type reader struct {
	ctx   context.Context
	f     *file
	p     []byte
	off   uint64 // of p
	end   uint64 // of the dirty bytes: the file is at least so long
	post  *vfs.Attr
	n     int  // how much of p is filled
	short bool // a read below brought less than was asked for, and not the end
	ended bool // the file below ends before off+n
}

// read fills what is missing of p, in which the dirty bytes are at their places.
func (r *reader) read(dirty []span) (eof bool, err error) {
	for _, d := range dirty {
		if err := r.below(d.from); err != nil || r.short {
			return false, err
		}
		r.n = int(d.to - r.off)
	}
	if err := r.below(r.off + uint64(len(r.p))); err != nil || r.short {
		return false, err
	}
	return r.atEnd()
}

// below fills p up to the position to. Behind the end of the file below, but
// before the dirty end, there is a hole.
func (r *reader) below(to uint64) error {
	at := r.off + uint64(r.n)
	if at >= to {
		return nil
	}
	gap := r.p[r.n : to-r.off]
	if r.ended {
		r.hole(gap, at)
		return nil
	}
	k, eof, err := r.f.inner.ReadAt(r.ctx, gap, at, r.post)
	r.n += k
	if err != nil {
		return err
	}
	switch {
	case eof:
		r.ended = true
		r.hole(gap[k:], at+uint64(k))
	case k < len(gap):
		r.short = true
	}
	return nil
}

// hole fills p, which is at off, with zeros as far as the file reaches.
func (r *reader) hole(p []byte, off uint64) {
	if off >= r.end {
		return
	}
	k := min(uint64(len(p)), r.end-off)
	clear(p[:k])
	r.n += int(k)
}

// atEnd reports whether the file ends where the read did. If no read below has told that, it reads
// one more byte.
func (r *reader) atEnd() (bool, error) {
	at := r.off + uint64(r.n)
	if at < r.end || len(r.p) == 0 {
		return false, nil
	}
	if r.ended || r.n < len(r.p) {
		return true, nil
	}
	if r.n > 0 && at > r.end {
		return false, nil // it would have been told
	}
	k, eof, err := r.f.inner.ReadAt(r.ctx, make([]byte, 1), at, nil)
	if err != nil {
		return false, err
	}
	return k == 0 && eof, nil
}
