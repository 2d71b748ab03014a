package sim

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// change is a name whose state is not stable.
type change struct {
	old   *inode // what the name stands for when stable, pinned; nil: nothing
	group *group
}

// group makes changes survive a crash together or not at all.
type group struct {
	drawn, survives bool
}

// edit is a change of one name in progress.
type edit struct {
	d     *Disk
	dir   *inode
	name  string
	known bool   // the name was changed before: its stable state is recorded
	old   *inode // the object of the name now, or nil; pinned
	stand string // the name in the shadow directory of the directory that is removed
}

// begin prepares to change name in dirfd. If removesDir, an empty directory of that name is
// about to be removed. It moves to the shadow directory, and an empty copy takes its place and
// is removed instead, so that the call itself has the same result.
func (d *Disk) begin(dirfd int, name string, removesDir bool) (*edit, error) {
	dir, base, err := d.parent(dirfd, name)
	if err != nil {
		return nil, err
	}
	_, known := dir.names[base]
	e := &edit{d: d, dir: dir, name: base, known: known}
	fd, err := lookup(dir.fd, base)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.EINVAL) {
		return e, nil
	}
	if err != nil {
		return nil, errors.Join(err, d.release(dir))
	}
	e.old, _, err = d.get(fd)
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return nil, errors.Join(err, d.release(dir))
	}
	// A directory without a stable name may really be removed.
	replaceable := removesDir && e.old.isDir() && (!known || e.old.pins > 0)
	if err := d.pin(e.old); err != nil {
		return nil, err
	}
	if replaceable {
		err = e.standIn()
	}
	return e, err
}

func (d *Disk) parent(dirfd int, name string) (*inode, string, error) {
	if dirfd != unix.AT_FDCWD {
		dir, _, err := d.get(dirfd)
		return dir, name, err
	}
	fd, err := unix.Open(filepath.Dir(name), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", err
	}
	dir, _, err := d.get(fd)
	return dir, filepath.Base(name), errors.Join(err, unix.Close(fd))
}

// standIn exchanges an empty directory for one that looks like it.
func (e *edit) standIn() error {
	empty, err := isEmpty(e.old.fd)
	if err != nil || !empty {
		return err
	}
	st, err := stat(e.old.fd)
	if err != nil {
		return err
	}
	shadow, name := int(e.d.shadow.Fd()), e.d.shadowName()
	if err := unix.Mkdirat(shadow, name, 0o700); err != nil {
		return err
	}
	if err := unix.Fchownat(shadow, name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if err := unix.Fchmodat(shadow, name, st.Mode&0o7777, 0); err != nil {
		return err
	}
	if err := e.exchange(name); err != nil {
		return err
	}
	e.stand = name
	return nil
}

func (e *edit) exchange(name string) error {
	return unix.Renameat2(int(e.d.shadow.Fd()), name, e.dir.fd, e.name, unix.RENAME_EXCHANGE)
}

func isEmpty(dirfd int) (bool, error) {
	fd, err := unix.Open(procPath(dirfd), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	buf := make([]byte, 64<<10)
	n, err := unix.ReadDirent(fd, buf)
	_, count, _ := unix.ParseDirent(buf[:max(n, 0)], -1, nil)
	return count == 0, errors.Join(err, unix.Close(fd))
}

// end is commit or cancel, as err says.
func (e *edit) end(err error) error {
	if err != nil {
		return e.cancel()
	}
	return e.commit()
}

// commit records that the call has changed the name.
func (e *edit) commit() error {
	if e.old != nil && e.stand != "" {
		e.old.shadow = e.stand
	}
	if !e.known {
		e.dir.names[e.name] = &change{old: e.old, group: new(group)}
		return nil
	}
	if e.old != nil {
		return e.d.unpin(e.old)
	}
	return nil
}

// cancel undoes begin: the call has failed.
func (e *edit) cancel() error {
	var errs []error
	if e.stand != "" {
		errs = append(errs, e.exchange(e.stand), unix.Unlinkat(int(e.d.shadow.Fd()), e.stand, unix.AT_REMOVEDIR))
	}
	if e.old != nil {
		errs = append(errs, e.d.unpin(e.old))
	}
	return errors.Join(append(errs, e.d.release(e.dir))...)
}

// markFresh records that the name's object is new.
func (e *edit) markFresh() error {
	fd, err := lookup(e.dir.fd, e.name)
	if err != nil {
		return err
	}
	i, _, err := e.d.get(fd)
	if err == nil {
		i.fresh = true
	}
	return errors.Join(err, unix.Close(fd))
}

// tie makes a rename survive a crash whole or not at all, unless only one of its directories is synced.
func (d *Disk) tie(source, target *edit) error {
	from, to := source.dir.names[source.name], target.dir.names[target.name]
	if from == nil || to == nil {
		return errors.New("a renamed name is not noted as changed")
	}
	gone, kept := to.group, from.group
	for _, i := range d.inodes {
		for _, c := range i.names {
			if c.group == gone {
				c.group = kept
			}
		}
	}
	return nil
}
