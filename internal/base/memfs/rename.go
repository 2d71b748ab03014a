package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Rename moves a name, in all the cases of rename(2).
func (f *FS) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	if err := f.begin(ctx, "rename", fromDir); err != nil {
		return from, to, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	src, err := f.getDir(fromDir)
	if err != nil {
		return from, to, err
	}
	dst, err := f.getDir(toDir)
	if err != nil {
		return from, to, err
	}
	preSrc, preDst := src.pre(), dst.pre()
	err = f.rename(&move{src: src, dst: dst, from: fromName, to: toName})
	return f.wcc(src, preSrc), f.wcc(dst, preDst), err
}

// move is a rename: the name from in src becomes the name to in dst.
type move struct {
	src, dst *inode
	from, to string
	n        *inode // what is moved
	old      *inode // what it replaces, or nil
}

func (f *FS) rename(m *move) error {
	for _, name := range [...]string{m.from, m.to} {
		if err := vfs.CheckName(name); err != nil {
			return err
		}
	}
	n, err := f.find(m.src, m.from)
	if err != nil {
		return err
	}
	if err := f.may(m.dst, mayExec); err != nil {
		return err
	}
	m.n, m.old = n, m.dst.dir.lookup(m.to)
	if m.old == m.n {
		return nil // two names of one object stay as they are, says POSIX
	}
	if err := f.mayMove(m); err != nil {
		return err
	}
	if err := m.check(); err != nil {
		return err
	}
	f.move(m)
	return nil
}

// mayMove is nil if the caller has the rights for m.
func (f *FS) mayMove(m *move) error {
	if err := f.mayTake(m.src, m.n); err != nil {
		return err
	}
	if err := f.may(m.dst, mayWrite); err != nil {
		return err
	}
	if m.old != nil {
		if err := f.mayTake(m.dst, m.old); err != nil {
			return err
		}
	}
	if m.n.dir != nil && m.src != m.dst { // its ".." will change
		return f.may(m.n, mayWrite)
	}
	return nil
}

func (m *move) check() error {
	if m.n.dir != nil && holds(m.n, m.dst) {
		return vfs.ErrInval // into its own subtree
	}
	if m.dst.nlink == 0 {
		return vfs.ErrStale
	}
	switch {
	case m.old == nil:
		return nil
	case m.old.dir != nil && m.n.dir == nil:
		return vfs.ErrIsDir
	case m.old.dir == nil && m.n.dir != nil:
		return vfs.ErrNotDir
	case m.old.dir != nil && len(m.old.dir.names) > 0:
		return vfs.ErrNotEmpty
	}
	return nil
}

// move does it. The entry of a name that is replaced stays, cookie and all: a
// listing finds that name once.
func (f *FS) move(m *move) {
	now := f.now()
	m.src.dir.remove(m.from)
	if m.old != nil {
		m.dst.dir.names[m.to].node = m.n
		f.unlink(m.dst, m.old, now)
	} else {
		m.dst.dir.add(m.to, m.n)
	}
	if m.n.dir != nil {
		m.n.dir.parent = m.dst
		m.src.nlink--
		m.dst.nlink++
	}
	f.changed(m.n, now)
	f.modified(m.src, now)
	if m.dst != m.src {
		f.modified(m.dst, now)
	}
}
