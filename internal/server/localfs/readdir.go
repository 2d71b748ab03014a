//go:build linux

package localfs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// cookieVerf goes with every cookie. It never changes: cookies are the file
// system's own (d_off), which mean the same place for as long as it lives.
var cookieVerf = vfs.Verifier{'d', '_', 'o', 'f', 'f', 0, 0, 1}

// ReadDir implements vfs.FS. A listing of names alone does not look at the
// objects, and so shows the name of a mount point that is otherwise hidden.
func (v *FS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		l := v.newLister(want)
		err := l.open(ctx, dir, from, maxBytes)
		for err == nil {
			var n int
			if n, err = l.fill(ctx); err != nil || n == 0 {
				break
			}
			for i := range n {
				if !yield(&l.batch[i], nil) {
					l.close()
					return
				}
			}
		}
		l.close()
		if err != nil {
			yield(nil, err)
		}
	}
}

// lister is one listing in progress. It owns a descriptor, whose offset is the
// place, one buffer of directory entries and one batch of what they became.
type lister struct {
	v     *FS
	d     *fdcache.Desc
	dir   linux.Dir
	want  vfs.Mask
	buf   *bufpool.Buffer // of dir
	batch []vfs.Entry     // of space: looked at with one place, and waited for together
	space [mapBatch]vfs.Entry
	st    linux.Stat
}

// newLister takes a lister of the pool: most of it is room for entries.
func (v *FS) newLister(want vfs.Mask) *lister {
	l, _ := v.listers.Get().(*lister)
	if l == nil {
		l = &lister{}
	}
	l.v, l.dir.FD, l.want = v, -1, want
	return l
}

// Sizes, by rough guesses: what an entry with attributes and handle takes of a
// page, and the part of the page's size, one in so many, that is read of the
// directory at a time. Its own entries are a third as long, so a page takes a few
// reads; what is read or looked at beyond the page was in vain.
const (
	minDirent  = 4 << 10
	guessEntry = 200
	guessTimes = 16
	pageBatch  = 8
)

// open gets everything ready to list from the place after from.
func (l *lister) open(ctx context.Context, dir vfs.Handle, from vfs.Pos, maxBytes uint32) (err error) {
	v := l.v
	if err := v.begin(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	if from.Cookie != 0 && from.Verf != cookieVerf || from.Cookie > math.MaxInt64 {
		return vfs.ErrBadCookie
	}
	if l.d, err = v.dirFor(dir, &l.st, mayRead); err != nil {
		return err
	}
	if l.dir.FD, err = linux.Reopen(l.d.FD, unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		l.dir.FD = -1
		return linux.Fail("open", err)
	}
	if from.Cookie != 0 {
		if _, err := unix.Seek(l.dir.FD, int64(from.Cookie), unix.SEEK_SET); err != nil {
			return fmt.Errorf("localfs: seek in a directory: %s: %w", err.Error(), vfs.ErrBadCookie)
		}
	}
	if l.want != 0 {
		// A caller that may read a directory but not search it gets the names.
		if err := v.permits(l.d, &l.st, mayExec); errors.Is(err, vfs.ErrAccess) {
			l.want = 0
		} else if err != nil {
			return err
		}
	}
	size := direntBuffer
	if maxBytes != 0 {
		size = int(min(maxBytes, direntBuffer))
	}
	l.batch = l.space[:pageBatch]
	if l.want&vfs.MaskHandle != 0 {
		if v.mode == HandlesMap {
			l.batch = l.space[:max(min(mapBatch, size/guessEntry), 1)]
		}
		if maxBytes != 0 {
			size = int(min(maxBytes/guessTimes, direntBuffer))
		}
	}
	l.buf = v.bufs.Get(max(size, minDirent))
	l.dir.Buf = l.buf.B
	return nil
}

func (l *lister) close() {
	if l.dir.FD >= 0 {
		_ = unix.Close(l.dir.FD) // it was read only: nothing can be lost
	}
	if l.buf != nil {
		l.buf.Release()
	}
	v := l.v
	if l.d != nil {
		v.release(l.d)
	}
	l.v, l.d, l.dir, l.buf, l.batch = nil, nil, linux.Dir{FD: -1}, nil, nil
	v.listers.Put(l)
}

// fill makes the next batch and returns how many entries it has; 0 is the end.
func (l *lister) fill(ctx context.Context) (n int, err error) {
	if err := l.v.begin(ctx, classMeta); err != nil {
		return 0, err
	}
	defer l.v.end(classMeta)
	var last handlemap.LSN
	for n < len(l.batch) {
		if l.dir.Empty() {
			if n > 0 {
				break
			}
			if err := l.dir.Read(); err != nil || l.dir.Empty() {
				return 0, err
			}
		}
		d, err := l.dir.Next()
		if err != nil {
			return 0, err
		}
		if string(d.Name) == "." || string(d.Name) == ".." {
			continue
		}
		m, ok, err := l.entry(&d, &l.batch[n])
		if err != nil {
			return 0, err
		}
		if ok {
			last = max(last, m)
			n++
		}
	}
	return n, l.v.handles.WaitStable(last)
}

// entry makes e of d. ok is false if there is nothing to show: the object has
// vanished meanwhile, or is hidden.
func (l *lister) entry(d *linux.Dirent, e *vfs.Entry) (m handlemap.LSN, ok bool, err error) {
	*e = vfs.Entry{Name: d.Name, FileID: d.Ino, Next: vfs.Pos{Cookie: d.Off, Verf: cookieVerf}}
	if l.want == 0 {
		return 0, true, nil
	}
	switch m, err = l.look(d, e); {
	case err == nil:
	case errors.Is(err, vfs.ErrNoEnt), errors.Is(err, vfs.ErrStale):
		return 0, false, nil
	default:
		return 0, false, err
	}
	if l.v.foreign(&l.st) {
		l.v.hide(string(d.Name), &l.st)
		return 0, false, nil
	}
	e.FileID = l.st.Ino
	l.v.attr(&l.st, &e.Attr)
	return m, true, nil
}

// look finds out about the object that d names. The handle is taken before the
// attributes: if those are of the inode that the directory named in the first
// place, then so is the handle between the two. Where they are not (renamed
// meanwhile, an overlay, a mount point) the object is held while it is asked.
func (l *lister) look(d *linux.Dirent, e *vfs.Entry) (m handlemap.LSN, err error) {
	h := l.v.handles
	handle := l.want&vfs.MaskHandle != 0
	if handle && l.v.mode == HandlesKernel {
		if e.Handle, _, err = h.Bind(l.d, d.Name, -1, nil); err != nil {
			return 0, err
		}
	}
	if err := l.st.Statx(l.d.FD, &d.Name[0], unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, linux.Fail("statx", err)
	}
	if l.v.foreign(&l.st) || !handle {
		return 0, nil
	}
	if l.v.mode == HandlesMap {
		e.Handle, m, err = h.Bind(l.d, d.Name, -1, &l.st)
		if errors.Is(err, handlemap.ErrFull) {
			err = nil // the name and the attributes are there: a client looks up what it wants to open
		}
		return m, err
	}
	if l.st.Ino == d.Ino {
		return 0, nil
	}
	fd, err := linux.OpenPath(l.d.FD, string(d.Name), 0)
	if err != nil {
		return 0, linux.Fail("open", err)
	}
	if err = linux.Fail("statx", l.st.Of(fd)); err == nil {
		e.Handle, m, err = h.Bind(l.d, d.Name, fd, &l.st)
	}
	return m, linux.Close(fd, err)
}
