package sim

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// pageSize is the unit in which overwritten bytes are saved, and survive.
	pageSize = 4096
	// toEnd is a length that reaches the end of any file.
	toEnd = math.MaxInt64
)

type inodeKey struct{ dev, ino uint64 }

func keyOf(st *unix.Stat_t) inodeKey { return inodeKey{uint64(st.Dev), st.Ino} }

// inode is the record of an object with unstable state. Its descriptor keeps the inode number
// from being used again.
type inode struct {
	key  inodeKey
	fd   int // O_PATH
	seq  int // order of discovery, which makes crashes reproducible
	mode uint32

	// fresh: no fsync has followed yet in the directory where it was created.
	fresh bool
	// pins counts the changed names that stood for this object when stable.
	pins int
	// shadow is the name of a pinned object in the shadow directory: a further link of a file, or
	// the only name of a removed directory.
	shadow string

	attr  *savedAttr         // if unstable: what is stable
	data  *savedData         // likewise
	names map[string]*change // of a directory: the changed names
}

func (i *inode) isDir() bool { return i.mode&unix.S_IFMT == unix.S_IFDIR }

func (i *inode) changedNames() []string { return slices.Sorted(maps.Keys(i.names)) }

// savedAttr are the stable attributes.
type savedAttr struct {
	mode         uint32
	uid, gid     int
	atime, mtime unix.Timespec
	lists        [len(listNames)][]byte // access control lists; nil: none
}

// savedData is the stable content, as far as it differs from the current one.
type savedData struct {
	size  int64
	pages map[int64][]byte // by number; cut at size
	mtime unix.Timespec
}

func stat(fd int) (st unix.Stat_t, err error) {
	err = unix.Fstatat(fd, "", &st, unix.AT_EMPTY_PATH)
	return st, err
}

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// find returns the record of fd's object, or nil if all of it is stable.
func (d *Disk) find(fd int) (*inode, error) {
	st, err := stat(fd)
	if err != nil {
		return nil, err
	}
	return d.inodes[keyOf(&st)], nil
}

// get returns the record of fd's object. The caller calls release after it has recorded something.
func (d *Disk) get(fd int) (*inode, unix.Stat_t, error) {
	st, err := stat(fd)
	if err != nil {
		return nil, st, err
	}
	if i := d.inodes[keyOf(&st)]; i != nil {
		return i, st, nil
	}
	own, err := unix.Open(procPath(fd), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, st, err
	}
	d.created++
	i := &inode{key: keyOf(&st), fd: own, seq: d.created, mode: st.Mode, names: make(map[string]*change)}
	d.inodes[i.key] = i
	return i, st, nil
}

// release drops a record in which nothing is recorded any more.
func (d *Disk) release(i *inode) error {
	if i.fresh || i.pins > 0 || i.attr != nil || i.data != nil || len(i.names) > 0 || d.inodes[i.key] != i {
		return nil
	}
	delete(d.inodes, i.key)
	return unix.Close(i.fd)
}

// sorted lists the records in the order of their discovery.
func (d *Disk) sorted() []*inode {
	return slices.SortedFunc(maps.Values(d.inodes), func(a, b *inode) int { return a.seq - b.seq })
}

// pin keeps i alive whatever happens to its names.
func (d *Disk) pin(i *inode) error {
	if i.pins == 0 && !i.isDir() {
		name := d.shadowName()
		err := unix.Linkat(unix.AT_FDCWD, procPath(i.fd), int(d.shadow.Fd()), name, unix.AT_SYMLINK_FOLLOW)
		if err != nil {
			return fmt.Errorf("link into the shadow directory: %w", err)
		}
		i.shadow = name
	}
	i.pins++
	return nil
}

// unpin ends a pin of i, and drops the record if no name is left.
func (d *Disk) unpin(i *inode) error {
	i.pins--
	if i.pins > 0 {
		return nil
	}
	var err error
	if i.shadow != "" {
		err = os.RemoveAll(filepath.Join(d.shadow.Name(), i.shadow))
		i.shadow = ""
	}
	return errors.Join(err, d.reap(i))
}

// reap drops the record of i if i has no name left: it cannot be found after a crash.
func (d *Disk) reap(i *inode) error {
	st, err := stat(i.fd)
	if err != nil {
		return err
	}
	if st.Nlink > 0 || i.pins > 0 {
		return d.release(i)
	}
	i.fresh, i.attr, i.data = false, nil, nil
	names := i.names
	i.names = nil
	var errs []error
	for _, c := range names {
		if c.old != nil {
			errs = append(errs, d.unpin(c.old))
		}
	}
	return errors.Join(append(errs, d.release(i))...)
}

func (d *Disk) shadowName() string {
	d.created++
	return strconv.Itoa(d.created)
}

// saveAttr saves the stable attributes of fd's object before they change.
func (d *Disk) saveAttr(fd int) error {
	i, st, err := d.get(fd)
	if err != nil {
		return err
	}
	if i.attr == nil {
		i.attr = &savedAttr{
			mode: st.Mode & 0o7777, uid: int(st.Uid), gid: int(st.Gid),
			atime: st.Atim, mtime: st.Mtim,
		}
		return i.attr.saveLists(i.fd)
	}
	return nil
}

// saveData saves the stable content of [off, off+n) before it changes.
func (d *Disk) saveData(fd int, off, n int64) error {
	i, st, err := d.get(fd)
	if err != nil {
		return err
	}
	if i.data == nil {
		i.data = &savedData{size: st.Size, pages: make(map[int64][]byte), mtime: st.Mtim}
	}
	end := i.data.size
	if n < end-off {
		end = off + n
	}
	if off < 0 || off >= end {
		return nil
	}
	f, err := i.open(unix.O_RDONLY)
	if err != nil {
		return err
	}
	for page := off / pageSize; page*pageSize < end && err == nil; page++ {
		if i.data.pages[page] == nil {
			err = i.data.save(f, page)
		}
	}
	return errors.Join(err, f.Close())
}

// save saves one page.
func (s *savedData) save(f *os.File, page int64) error {
	b := make([]byte, min(pageSize, s.size-page*pageSize))
	if _, err := f.ReadAt(b, page*pageSize); err != nil && err != io.EOF {
		return err
	}
	s.pages[page] = b
	return nil
}

// open opens a regular file in spite of its permission bits.
func (i *inode) open(flags int) (*os.File, error) {
	f, err := os.OpenFile(procPath(i.fd), flags, 0)
	if !errors.Is(err, os.ErrPermission) {
		return f, err
	}
	st, err := stat(i.fd)
	if err != nil {
		return nil, err
	}
	if err := unix.Chmod(procPath(i.fd), st.Mode&0o7777|0o600); err != nil {
		return nil, err
	}
	f, err = os.OpenFile(procPath(i.fd), flags, 0)
	return f, errors.Join(err, unix.Chmod(procPath(i.fd), st.Mode&0o7777))
}

// settle makes all of i stable: its names, if it is a directory, and the
// attributes of the objects that are new there.
func (d *Disk) settle(i *inode) error {
	var errs []error
	i.attr, i.data = nil, nil
	for _, name := range i.changedNames() {
		errs = append(errs, d.settleName(i, name))
	}
	return errors.Join(append(errs, d.release(i))...)
}

func (d *Disk) settleName(dir *inode, name string) error {
	c := dir.names[name]
	delete(dir.names, name)
	var errs []error
	fd, err := lookup(dir.fd, name)
	switch {
	case err == nil:
		i, err := d.find(fd)
		if i != nil && i.fresh {
			i.fresh, i.attr = false, nil
			errs = append(errs, d.release(i))
		}
		errs = append(errs, err, unix.Close(fd))
	case !errors.Is(err, unix.ENOENT):
		errs = append(errs, err)
	}
	if c.old != nil {
		errs = append(errs, d.unpin(c.old))
	}
	return errors.Join(errs...)
}

func lookup(dirfd int, name string) (int, error) {
	return unix.Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}
