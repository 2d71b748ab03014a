package iofs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"iter"
	"slices"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// io/fs lists a directory from its beginning, or not at all. So an entry's cookie is a hash of
// its name, and entries come in the order of their cookies: whatever is created and removed,
// the rest of a listing are the names with larger hashes. Each batch of them takes a pass over
// the whole directory, of which only that batch is kept.
const (
	// maxBatch is how many entries one pass yields.
	maxBatch = 4096
	// maxNames bounds the names of a directory; one that has more, or has no end, cannot be
	// listed.
	maxNames = 1 << 22
	// maxRecent bounds the directories whose last batch is kept. At the bound one of them
	// goes, and is read again.
	maxRecent = 8
	// namesAtOnce is how many names a directory is asked for at once.
	namesAtOnce = 512
	// firstCookie leaves the smaller ones to servers, which give them to "." and "..".
	firstCookie = 3
)

// listed is an entry of a directory.
type listed struct {
	cookie uint64
	fs.DirEntry
}

// batch is the entries with cookies above after, up to its last; more follow.
type batch struct {
	after uint64
	list  []listed
	more  bool
}

// recent are the last batches of directories, so that a page that ends within one costs no
// further pass. A listing that begins reads anew, and what was read before that is never
// used behind it: it may lack what has been created since.
type recent struct {
	mu      sync.Mutex
	begun   uint64 // listings
	batches map[string]*batch
}

// begin returns what to give to keep.
func (r *recent) begin(p string, after uint64) (begun uint64, b *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after == 0 {
		r.begun++
		delete(r.batches, p)
	}
	b = r.batches[p]
	if b == nil || after < b.after || b.more && after >= b.list[len(b.list)-1].cookie {
		return r.begun, nil
	}
	return r.begun, b
}

// keep remembers a batch, unless a listing has begun since its pass began.
func (r *recent) keep(p string, begun uint64, b *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun != begun {
		return
	}
	for other := range r.batches {
		if len(r.batches) < maxRecent || r.batches[p] != nil {
			break
		}
		delete(r.batches, other)
	}
	r.batches[p] = b
}

func (f *from) ReadDir(ctx context.Context, dir vfs.Handle, at vfs.Pos, want vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		p, a, err := f.dir(ctx, dir)
		if err == nil && !f.may(&a, mayRead) {
			err = vfs.ErrAccess
		}
		if err == nil && at.Cookie != 0 && at.Verf != vfs.Verifier(f.id) {
			err = vfs.ErrBadCookie
		}
		if err == nil {
			err = f.list(ctx, p, at.Cookie, want, func(e *vfs.Entry) bool { return yield(e, nil) })
			if errors.Is(err, fs.ErrNotExist) {
				err = vfs.ErrStale
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// list yields the entries of p behind a cookie, until yield is false.
func (f *from) list(ctx context.Context, p string, after uint64, want vfs.Mask, yield func(*vfs.Entry) bool) error {
	for {
		begun, b := f.recent.begin(p, after)
		if b == nil {
			var err error
			if b, err = f.pass(ctx, p, after); err != nil {
				return err
			}
			f.recent.keep(p, begun, b)
		}
		start := after
		for _, l := range b.list {
			if l.cookie <= start {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			after = l.cookie
			if e, ok := f.entry(p, l, want); ok && !yield(e) {
				return nil
			}
		}
		if !b.more {
			return nil
		}
	}
}

// entry is l as an entry of p. It is none if it has gone meanwhile.
func (f *from) entry(dir string, l listed, want vfs.Mask) (*vfs.Entry, bool) {
	p, err := below(dir, l.Name())
	if err != nil {
		return nil, false
	}
	e := &vfs.Entry{
		Name: []byte(l.Name()), FileID: f.spotOf(p).fileID(), Next: vfs.Pos{Cookie: l.cookie, Verf: vfs.Verifier(f.id)},
	}
	if want&^vfs.MaskHandle != 0 {
		if e.Attr, err = f.listedAttr(p, l); errors.Is(err, fs.ErrNotExist) {
			return nil, false
		} else if err != nil {
			e.Attr = vfs.Attr{} // who asks for them gets the error
		}
	}
	if want&vfs.MaskHandle != 0 {
		e.Handle, _ = f.handle(p, maxListedSpots)
	}
	return e, true
}

func (f *from) listedAttr(p string, l listed) (vfs.Attr, error) {
	if l.Type()&fs.ModeSymlink != 0 && f.links == nil {
		return f.stat(p) // of what it leads to, as everywhere
	}
	info, err := l.Info()
	if err != nil {
		return vfs.Attr{}, err
	}
	return f.attr(p, info)
}

// pass reads the directory p once, for the first entries behind a cookie.
func (f *from) pass(ctx context.Context, p string, after uint64) (*batch, error) {
	b := &batch{after: after}
	err := f.names(ctx, p, func(d fs.DirEntry) {
		if name := d.Name(); fs.ValidPath(name) && vfs.CheckName(name) == nil && d.Type()&fs.ModeIrregular == 0 {
			if c := maphash.String(f.seed, name)>>1 | firstCookie; c > after {
				b.add(listed{c, d})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	b.cut()
	return b, nil
}

// add keeps memory within two batches.
func (b *batch) add(l listed) {
	if b.more && l.cookie > b.list[maxBatch-1].cookie {
		return
	}
	if b.list = append(b.list, l); len(b.list) == 2*maxBatch {
		b.cut()
	}
}

// cut sorts the list, and leaves a batch of it. A name that the directory has twice is one.
func (b *batch) cut() {
	slices.SortFunc(b.list, func(x, y listed) int {
		return cmp.Or(cmp.Compare(x.cookie, y.cookie), cmp.Compare(x.Name(), y.Name()))
	})
	b.list = slices.CompactFunc(b.list, func(x, y listed) bool { return x.cookie == y.cookie && x.Name() == y.Name() })
	if len(b.list) > maxBatch {
		clear(b.list[maxBatch:])
		b.list, b.more = b.list[:maxBatch], true
	}
}

// names calls each with all entries of p.
func (f *from) names(ctx context.Context, p string, each func(fs.DirEntry)) (err error) {
	file, err := f.fsys.Open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	dir, ok := file.(fs.ReadDirFile)
	if !ok {
		all, err := fs.ReadDir(f.fsys, p)
		for _, d := range all {
			each(d)
		}
		return err
	}
	for n := 0; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		some, err := dir.ReadDir(namesAtOnce)
		if n += len(some); n > maxNames {
			return fmt.Errorf("%s: more than %d names: %w", p, maxNames, vfs.ErrFBig)
		}
		for _, d := range some {
			each(d)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil && len(some) == 0:
			return fmt.Errorf("%s: %w", p, io.ErrNoProgress)
		case err != nil:
			return err
		}
	}
}
