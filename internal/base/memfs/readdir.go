package memfs

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// dirPageBytes is the size of a page of a listing if the caller gives none.
	dirPageBytes = 64 << 10
	// dirPageEntries bounds the entries of a page, and with them the memory of
	// a listing. What is beyond comes with the next page.
	dirPageEntries = 128
	// entryOverhead is what an entry takes in a page beside its name.
	entryOverhead = 24
)

// found is an entry of a page.
type found struct {
	name   string
	cookie uint64
	fileID uint64
	handle vfs.Handle
	attr   vfs.Attr
}

// listing is a ReadDir under way.
type listing struct {
	fs    *FS
	dir   vfs.Handle
	want  vfs.Mask
	bytes int    // of a page
	after uint64 // cookie of the entry last listed
	until uint64 // cookie of the last entry to be listed
	page  []found
}

// ReadDir lists dir in the order in which the names were made. What is made
// after the iteration's start is not in it: a caller that renames all that is
// listed comes to an end.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		l := listing{fs: f, dir: dir, want: want, bytes: int(orDefault(maxBytes, dirPageBytes)), after: from.Cookie}
		if err := l.start(from); err != nil {
			yield(nil, err)
			return
		}
		e := vfs.Entry{Next: vfs.Pos{Verf: f.dirVerf()}}
		for {
			if err := l.next(ctx); err != nil {
				yield(nil, err)
				return
			}
			for i := range l.page {
				l.page[i].fill(&e)
				if !yield(&e, nil) {
					return
				}
			}
			if len(l.page) == 0 {
				return
			}
		}
	}
}

// dirVerf is the verifier of all cookies, which never lose their meaning.
func (t *tree) dirVerf() (v vfs.Verifier) {
	binary.BigEndian.PutUint64(v[:], t.opt.ID)
	return v
}

func (l *listing) start(from vfs.Pos) error {
	f := l.fs
	f.mu.RLock()
	defer f.mu.RUnlock()
	d, err := f.getDir(l.dir)
	if err != nil {
		return err
	}
	l.until = d.dir.last
	if from.Cookie != 0 && (from.Verf != f.dirVerf() || from.Cookie > d.dir.last) {
		return vfs.ErrBadCookie
	}
	return nil
}

// next fills the next page; an empty one is the end.
func (l *listing) next(ctx context.Context) error {
	f := l.fs
	if err := f.begin(ctx, "readdir", l.dir); err != nil {
		return err
	}
	f.mu.RLock()
	d, err := f.getDir(l.dir)
	if err == nil {
		err = f.may(d, mayRead)
	}
	if err == nil {
		err = l.gather(d.dir)
	}
	f.mu.RUnlock()
	if err == nil {
		f.accessed(d)
	}
	return err
}

// gather copies as many entries as fit a page. The caller holds mu.
func (l *listing) gather(d *directory) error {
	l.page = l.page[:0]
	room := l.bytes
	for _, e := range d.behind(l.after) {
		if e.cookie > l.until || len(l.page) == dirPageEntries {
			break
		}
		if e.node == nil {
			continue
		}
		if room -= len(e.name) + entryOverhead; room < 0 {
			if len(l.page) == 0 {
				return vfs.ErrTooSmall
			}
			break
		}
		l.page = append(l.page, l.entry(e))
		l.after = e.cookie
	}
	return nil
}

func (l *listing) entry(e *dirent) found {
	x := found{name: e.name, cookie: e.cookie, fileID: e.node.num}
	if l.want&vfs.MaskHandle != 0 {
		x.handle = l.fs.handle(e.node)
	}
	if l.want&^vfs.MaskHandle != 0 {
		x.attr = l.fs.attr(e.node)
	}
	return x
}

// fill lends the entry to an iteration's step.
func (x *found) fill(e *vfs.Entry) {
	e.Name = append(e.Name[:0], x.name...)
	e.FileID = x.fileID
	e.Next.Cookie = x.cookie
	e.Handle, e.Attr = x.handle, x.attr
}
