package sim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Crash is a power failure: the tree becomes what the disk may hold afterwards, and that is
// stable. No call may be in flight, and descriptors from before should be closed: they may
// refer to lost objects.
func (d *Disk) Crash(loss Loss) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	onProcess(func() { err = d.crash(loss) })
	d.off = 0
	if err != nil {
		return fmt.Errorf("sim: crash: %w", err)
	}
	return nil
}

// lostName is a change that does not survive.
type lostName struct {
	dir  *inode
	name string
	old  *inode
}

// crash restores names in two rounds, since one may be in the way of another: first it removes
// all lost ones, then it puts the stable ones back.
func (d *Disk) crash(loss Loss) error {
	all := d.sorted()
	lost := d.draw(all, loss)
	var errs []error
	for _, l := range lost {
		errs = append(errs, d.takeOut(l))
	}
	for _, l := range lost {
		errs = append(errs, d.putBack(l))
	}
	for _, i := range all {
		errs = append(errs, d.turnBack(i, loss))
	}
	for _, i := range all {
		errs = append(errs, unix.Close(i.fd))
	}
	clear(d.inodes)
	return errors.Join(append(errs, d.clearShadow())...)
}

func (d *Disk) survives(loss Loss) bool { return loss == LoseSome && d.rand.IntN(2) == 0 }

// draw chooses the names that are lost.
func (d *Disk) draw(all []*inode, loss Loss) (lost []lostName) {
	for _, i := range all {
		for _, name := range i.changedNames() {
			c := i.names[name]
			if !c.group.drawn {
				c.group.drawn, c.group.survives = true, d.survives(loss)
			}
			if !c.group.survives {
				lost = append(lost, lostName{i, name, c.old})
			}
		}
	}
	return lost
}

// takeOut removes what a lost change has put there. A directory moves to the shadow directory:
// it may have had another name, or be lost with its entries.
func (d *Disk) takeOut(l lostName) error {
	fd, err := lookup(l.dir.fd, l.name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	st, err := stat(fd)
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.Unlinkat(l.dir.fd, l.name, 0)
	}
	name := d.shadowName()
	if err := unix.Renameat(l.dir.fd, l.name, int(d.shadow.Fd()), name); err != nil {
		return err
	}
	if i := d.inodes[keyOf(&st)]; i != nil {
		i.shadow = name
	}
	return nil
}

func (d *Disk) putBack(l lostName) error {
	if l.old == nil {
		return nil
	}
	shadow := int(d.shadow.Fd())
	if !l.old.isDir() {
		return unix.Linkat(shadow, l.old.shadow, l.dir.fd, l.name, 0)
	}
	if l.old.shadow == "" {
		return nil // A directory has one name, and its newer one survives.
	}
	err := unix.Renameat(shadow, l.old.shadow, l.dir.fd, l.name)
	l.old.shadow = ""
	return err
}

// turnBack restores the stable content and attributes of i.
func (d *Disk) turnBack(i *inode, loss Loss) error {
	var errs []error
	if i.data != nil {
		errs = append(errs, d.turnBackData(i, loss))
	}
	if a := i.attr; a != nil && !d.survives(loss) {
		errs = append(errs, unix.Fchownat(i.fd, "", a.uid, a.gid, unix.AT_EMPTY_PATH))
		if i.mode&unix.S_IFMT != unix.S_IFLNK {
			errs = append(errs, unix.Chmod(procPath(i.fd), a.mode), a.turnBackLists(i.fd))
		}
		errs = append(errs, setTimes(i.fd, a.atime, a.mtime))
	}
	return errors.Join(errs...)
}

func setTimes(fd int, atime, mtime unix.Timespec) error {
	return unix.UtimesNanoAt(fd, "", []unix.Timespec{atime, mtime}, unix.AT_EMPTY_PATH)
}

func (d *Disk) turnBackData(i *inode, loss Loss) error {
	f, err := i.open(unix.O_RDWR)
	if err != nil {
		return err
	}
	st, err := stat(i.fd)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	size := i.data.size
	if d.survives(loss) {
		size = st.Size
	}
	err = errors.Join(
		f.Truncate(size),
		d.turnBackPages(i.data, f, min(size, st.Size), size, loss),
		d.zeroPages(f, i.data.size, min(size, st.Size), loss),
	)
	// The chosen pages carry no time of their own: the old one comes back.
	err = errors.Join(err, setTimes(i.fd, unix.Timespec{Nsec: unix.UTIME_OMIT}, i.data.mtime))
	return errors.Join(err, f.Close())
}

// turnBackPages writes the saved pages back, as far as they are lost. If the file was
// truncated, the truncation is lost, and all that it removed comes back.
func (d *Disk) turnBackPages(s *savedData, f *os.File, now, size int64, loss Loss) error {
	for page := int64(0); page*pageSize < s.size; page++ {
		b := s.pages[page]
		if b == nil || page*pageSize >= size {
			continue
		}
		if whole := page*pageSize+int64(len(b)) <= now || now == size; whole && d.survives(loss) {
			continue
		}
		if _, err := f.WriteAt(b[:min(int64(len(b)), size-page*pageSize)], page*pageSize); err != nil {
			return err
		}
	}
	return nil
}

// zeroPages writes zeros over lost bytes in [from, to), after the stable end, if the new size survives.
func (d *Disk) zeroPages(f *os.File, from, to int64, loss Loss) error {
	for off := from; off < to; {
		next := min((off/pageSize+1)*pageSize, to)
		if !d.survives(loss) {
			if _, err := f.WriteAt(make([]byte, next-off), off); err != nil {
				return err
			}
		}
		off = next
	}
	return nil
}

// clearShadow removes shadow entries that are not needed any more.
func (d *Disk) clearShadow() error {
	names, err := os.ReadDir(d.shadow.Name())
	if err != nil {
		return err
	}
	for _, e := range names {
		err = errors.Join(err, os.RemoveAll(filepath.Join(d.shadow.Name(), e.Name())))
	}
	return err
}
