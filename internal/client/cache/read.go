package cache

import (
	"context"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// ReadAt reads from the cache what is there, and from below what is not. No attributes come with what
// is read from the cache.
func (f *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	if l := f.current(); l != nil && len(p) > 0 && ctx.Err() == nil && !f.nearBelow() {
		if n, eof, ok := f.hit(l, p, off, post); ok {
			return n, eof, nil
		}
	}
	return f.readSlowly(ctx, p, off, post)
}

func (f *file) nearBelow() bool { return f.near != nil && f.near.Near() }

// hit reads what is there, if the first byte is.
func (f *file) hit(l *lease, p []byte, off uint64, post *vfs.Attr) (n int, eof, ok bool) {
	if off < l.version.Size {
		if f.v.s.past(l) {
			n = l.e.ReadWarm(p, off)
		} else {
			n = l.e.ReadAt(p, off)
		}
		if n == 0 {
			return 0, false, false
		}
		c := &f.v.s.store.Count
		c.Hits.Add(1)
		c.BytesHit.Add(uint64(n))
	}
	if post != nil {
		post.Valid = 0
	}
	f.next.Store(off + uint64(n))
	return n, off+uint64(n) >= l.version.Size, true
}

// readSlowly reads when the first byte is not there, or the server has to be asked first.
func (f *file) readSlowly(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	if len(p) == 0 || f.nearBelow() {
		return f.inner.ReadAt(ctx, p, off, post)
	}
	for range maxTries {
		l := f.current()
		if l == nil {
			var err error
			if l, err = f.validate(ctx); err != nil {
				return 0, false, err
			}
		}
		if l == nil {
			return f.inner.ReadAt(ctx, p, off, post)
		}
		if n, eof, ok := f.hit(l, p, off, post); ok {
			return n, eof, nil
		}
		if f.v.s.past(l) {
			f.v.s.store.Count.Bypassed.Add(1)
			return f.through(ctx, l, p, off, post)
		}
		n, eof, again, err := f.miss(ctx, l, p, off, post)
		if !again {
			return n, eof, err
		}
	}
	return f.inner.ReadAt(ctx, p, off, post)
}

// miss reads from below, and keeps the granules that are worth it. again says that another reader has
// fetched the first one meanwhile.
func (f *file) miss(ctx context.Context, l *lease, p []byte, off uint64, post *vfs.Attr) (n int, eof, again bool, err error) {
	size := uint64(l.e.Granule())
	from := int(off / size)
	start := uint64(from) * size
	end := min(start+size, l.version.Size)
	whole := off == start && uint64(len(p)) >= end-start
	if !whole && !f.worth(l, from, off) {
		n, eof, err = f.through(ctx, l, p, off, post)
		return n, eof, false, err
	}
	to := from
	for whole && to-from+1 < maxRun && end < l.version.Size && min(end+size, l.version.Size)-start <= uint64(len(p)) {
		end = min(end+size, l.version.Size)
		to++
	}
	to, done, wait := f.n.claim(l.e, from, to)
	if wait != nil {
		select {
		case <-wait:
			return 0, false, true, nil
		case <-ctx.Done():
			return 0, false, false, ctx.Err()
		}
	}
	defer f.n.unclaim(l.e, from, to, done)
	if l.e.Has(from) {
		return 0, false, true, nil // it came between the look and the claim
	}
	select {
	case f.v.s.fetches <- struct{}{}:
		defer func() { <-f.v.s.fetches }()
	default:
		n, eof, err = f.through(ctx, l, p, off, post)
		return n, eof, false, err
	}
	end = min(uint64(to+1)*size, l.version.Size)
	f.v.s.store.Count.Misses.Add(1)
	if whole {
		n, eof, err = f.fetch(ctx, l, p[:end-start], start, post)
	} else {
		n, eof, err = f.fetchPart(ctx, l, p, off, start, end, post)
	}
	f.next.Store(off + uint64(n))
	return n, eof, false, err
}

// worth reports whether a granule of which off on is read is worth fetching whole.
func (f *file) worth(l *lease, g int, off uint64) bool {
	size := uint64(l.e.Granule())
	if off%size == 0 || off == f.next.Load() || l.version.Size <= size {
		return true
	}
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	if f.touched[g] {
		return true
	}
	if f.touched == nil || len(f.touched) >= maxTouched {
		f.touched = make(map[int]bool)
	}
	f.touched[g] = true
	return false
}

// through reads from below, and looks whether the file has changed.
func (f *file) through(ctx context.Context, l *lease, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	s := f.v.s
	s.store.Count.Misses.Add(1)
	a, put := s.attr(post)
	defer put()
	start := time.Now()
	n, eof, err := f.inner.ReadAt(ctx, p, off, a)
	s.tookServer(n, start)
	if v := versionOf(a); err == nil && a.Has(versioned) && !v.Equal(&l.version) {
		f.n.gen.Add(1)
	}
	f.next.Store(off + uint64(n))
	return n, eof, err
}

// attr is post, or one of our own if that is nil.
func (s *shared) attr(post *vfs.Attr) (a *vfs.Attr, put func()) {
	if post != nil {
		return post, func() {}
	}
	a, _ = s.attrs.Get().(*vfs.Attr)
	if a == nil {
		a = new(vfs.Attr)
	}
	a.Valid = 0
	return a, func() { s.attrs.Put(a) }
}

// fetchPart fetches the granule [start, end), of which p is a part.
func (f *file) fetchPart(ctx context.Context, l *lease, p []byte, off, start, end uint64, post *vfs.Attr) (int, bool, error) {
	buf := f.v.s.pool.Get(int(end - start))
	defer buf.Release()
	n, eof, err := f.fetch(ctx, l, buf.B, start, post)
	skip := int(off - start)
	if n <= skip {
		if err == nil && !eof {
			return f.inner.ReadAt(ctx, p, off, post) // less came than it had
		}
		return 0, eof, err
	}
	k := copy(p, buf.B[skip:n])
	return k, eof && skip+k == n, nil
}

// fetch reads into p, which begins with a granule and ends with one, at least the first of them, and keeps
// those that came whole. An error is returned only if nothing came.
func (f *file) fetch(ctx context.Context, l *lease, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	s := f.v.s
	settle := f.settleTime(ctx)
	sent, at := s.o.Now(), s.now()
	a, put := s.attr(post)
	defer put()
	same, first := true, min(l.e.Granule(), len(p))
	for n < first && !eof {
		var k int
		a.Valid = 0
		start := time.Now()
		k, eof, err = f.inner.ReadAt(ctx, p[n:], off+uint64(n), a)
		s.tookServer(k, start)
		if err != nil || k == 0 {
			break
		}
		n += k
		same = same && f.is(ctx, a, l)
	}
	end := off + uint64(n)
	switch {
	case n == 0:
		return 0, eof, err
	case !same || eof && end != l.version.Size || !eof && end > l.version.Size:
		f.n.gen.Add(1)
		return n, eof, nil
	case f.n.gen.Load() != l.gen || !f.n.quiet():
		return n, eof, nil
	}
	if !f.settled(l, sent, at, settle) {
		l.e.Doubt()
	}
	f.fill(l, p[:n], off)
	return n, end == l.version.Size, nil
}

// is reports whether the attributes that came with a READ are of l's version. A server that sends none is
// asked.
func (f *file) is(ctx context.Context, a *vfs.Attr, l *lease) bool {
	if !a.Has(versioned) {
		var err error
		if *a, err = f.v.FS.GetAttr(ctx, f.h, vfs.MaskV3); err != nil || !a.Has(versioned) {
			return false
		}
	}
	v := versionOf(a)
	return v.Equal(&l.version)
}

// fill keeps the granules that are whole in p.
func (f *file) fill(l *lease, p []byte, off uint64) {
	size := l.e.Granule()
	for g := int(off / uint64(size)); len(p) > 0; g++ {
		n := min(size, len(p))
		if n < size && off+uint64(n) != l.version.Size {
			return
		}
		l.e.Fill(g, p[:n])
		p, off = p[n:], off+uint64(n)
	}
}
