package dirfs

import (
	"context"
	"errors"
	"iter"

	"github.com/nfsbox/nfsbox/vfs"
)

// pageBatch is how many entries one call handles.
const pageBatch = 64

// ReadDir implements vfs.FS. A listing of names alone does not stat the objects. While an
// entry is handed out, the listing takes no call of the budget.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		l := f.newLister(want)
		l.pages.from(f, from, maxBytes)
		err := l.start(ctx, dir)
		for err == nil {
			if err = l.fill(ctx); err != nil || len(l.batch) == 0 {
				break
			}
			for i := range l.batch {
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

// lister is one listing.
type lister struct {
	f     *FS
	s     *slot // held
	want  vfs.Mask
	pages pages
	keep  bool // keep the descriptor between pages
	batch []vfs.Entry
	over  bool
}

// newLister takes a lister from the pool, for its space for entries.
func (f *FS) newLister(want vfs.Mask) *lister {
	l, _ := f.listers.Get().(*lister)
	if l == nil {
		l = &lister{batch: make([]vfs.Entry, 0, pageBatch)}
	}
	l.f, l.want, l.over = f, want, false
	return l
}

// start finds the directory.
func (l *lister) start(ctx context.Context, dir vfs.Handle) error {
	if err := l.f.begin(ctx); err != nil {
		return err
	}
	defer l.f.end()
	r, err := parse(dir)
	if err != nil {
		return err
	}
	if l.s, err = l.f.dirSlot(&r); err != nil {
		return err
	}
	l.over = l.s.empty
	select {
	case l.f.lists <- struct{}{}:
		l.keep = true
	default:
	}
	return nil
}

func (l *lister) close() {
	l.pages.close()
	l.pages.rest, l.batch = nil, l.batch[:0]
	if l.keep {
		<-l.f.lists
		l.keep = false
	}
	if l.s != nil {
		l.f.slots.drop(l.s)
		l.s = nil
	}
	l.f.listers.Put(l)
}

// fill makes the next batch. An empty one is the end.
func (l *lister) fill(ctx context.Context) error {
	l.batch = l.batch[:0]
	if l.over {
		return ctx.Err()
	}
	if err := l.f.begin(ctx); err != nil {
		return err
	}
	defer l.f.end()
	d, err := l.f.pin(l.s)
	if err != nil {
		return err
	}
	defer l.f.slots.unpin(l.s)
	if !l.keep {
		defer l.pages.close()
	}
	for len(l.batch) < pageBatch {
		if !l.pages.more() {
			if len(l.batch) > 0 {
				return nil // the batch's names still point into the page
			}
			if l.over, err = l.pages.next(d); err != nil || l.over {
				return fail("list", err)
			}
			continue
		}
		name, ino, at, err := l.pages.take()
		if err != nil {
			return err
		}
		if dots(name) {
			continue
		}
		if err := l.entry(d, name, ino, at); err != nil {
			return err
		}
	}
	return nil
}

// dots reports whether name is "." or "..", which are not listed.
func dots(name []byte) bool { return string(name) == "." || string(name) == ".." }

// entry adds an entry to the batch, unless the object has vanished.
func (l *lister) entry(d *hostDir, name []byte, ino uint64, at vfs.Pos) error {
	if l.want == 0 && ino != 0 {
		l.batch = append(l.batch, vfs.Entry{Name: name, FileID: ino, Next: at})
		return nil
	}
	var st stat
	called := string(name)
	switch err := fail("stat", d.stat(called, &st)); {
	case err == nil:
	case errors.Is(err, vfs.ErrNoEnt):
		return nil
	case errors.Is(err, vfs.ErrAccess):
		// A directory that may be read but not searched shows its names.
		l.batch = append(l.batch, vfs.Entry{Name: name, FileID: ino, Next: at})
		return nil
	default:
		return err
	}
	e := vfs.Entry{Name: name, FileID: st.FileID, Next: at, Attr: st.Attr}
	if l.want&vfs.MaskHandle != 0 {
		e.Handle = l.f.handleOf(l.s, called, &st)
	}
	l.batch = append(l.batch, e)
	return nil
}
