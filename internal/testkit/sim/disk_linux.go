package sim

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Loss says how much of the unsynced data a crash loses.
type Loss int

// Losses.
const (
	LoseAll  Loss = iota // nothing survives that was not synced
	LoseSome             // a part survives, chosen by the seed
)

// Disk is a disk that loses unsynced data: a [Sys] that remembers, for every change, the state
// before, until a sync makes the change stable. See the package's documentation.
//
// All methods may be called concurrently; calls run one after another. The calls themselves run
// on the caller's thread with its credentials, the bookkeeping with those of the process. Syncs
// do not reach the Sys below, where nothing can be lost.
type Disk struct {
	inner  Sys
	rand   *Rand
	shadow *os.File // the directory of removed objects

	mu      sync.Mutex
	inodes  map[inodeKey]*inode
	created int // inodes and shadow names, ever
	calls   int
	off     int // the call at which the power fails; 0: never
	fault   func(op string) error
}

// NewDisk returns a disk on which everything that exists is stable. shadow is a directory
// outside of what is served, on the same file system. It is made if it does not exist, and must
// be empty.
func NewDisk(inner Sys, shadow string, seed uint64) (*Disk, error) {
	if err := os.MkdirAll(shadow, 0o700); err != nil {
		return nil, fmt.Errorf("sim: shadow directory: %w", err)
	}
	names, err := os.ReadDir(shadow)
	if err != nil {
		return nil, fmt.Errorf("sim: shadow directory: %w", err)
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("sim: shadow directory %s is not empty", shadow)
	}
	f, err := os.Open(shadow)
	if err != nil {
		return nil, fmt.Errorf("sim: shadow directory: %w", err)
	}
	return &Disk{inner: inner, rand: NewRand(seed), shadow: f, inodes: make(map[inodeKey]*inode)}, nil
}

// Close makes everything stable and closes the shadow directory.
func (d *Disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	onProcess(func() { err = d.syncAll() })
	return errors.Join(err, d.shadow.Close())
}

// Calls is the number of calls so far, with syncs: one run of a test counts the places at which
// the next runs can cut the power.
func (d *Disk) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// PowerOff lets the next n calls pass. All further ones fail with EIO and change nothing, until Crash.
func (d *Disk) PowerOff(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = d.calls + n + 1
}

// SetFault calls fault before every call, with the call's name in lower case ("fsync",
// "pwrite"). If it returns an error, the call fails with that and does nothing. nil ends this.
func (d *Disk) SetFault(fault func(op string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

// change runs one call: prepare saves the state before, call runs on the caller's thread, and
// done gets call's error.
func (d *Disk) change(op string, prepare func() error, call func() error, done func(err error) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.admit(op); err != nil {
		return err
	}
	var err error
	if onProcess(func() { err = prepare() }); err != nil {
		return fmt.Errorf("sim: before %s: %w", op, err)
	}
	err = call()
	var after error
	if onProcess(func() { after = done(err) }); after != nil {
		return fmt.Errorf("sim: after %s: %w", op, after)
	}
	return err
}

// admit counts a call, and returns an error if it must not be made.
func (d *Disk) admit(op string) error {
	d.calls++
	if d.off > 0 && d.calls >= d.off {
		return syscall.EIO
	}
	if d.fault != nil {
		return d.fault(op)
	}
	return nil
}

// onProcess runs f on a thread with the credentials of the process. A caller that has changed
// its thread's is locked to that thread, so f runs on another.
func onProcess(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// Openat creates a regular file.
func (d *Disk) Openat(dirfd int, name string, flags int, mode uint32) (fd int, err error) {
	err = d.create("openat", dirfd, name, func() (err error) {
		fd, err = d.inner.Openat(dirfd, name, flags, mode)
		return err
	})
	return fd, err
}

// Mkdirat creates a directory.
func (d *Disk) Mkdirat(dirfd int, name string, mode uint32) error {
	return d.create("mkdirat", dirfd, name, func() error { return d.inner.Mkdirat(dirfd, name, mode) })
}

// Symlinkat creates a symbolic link.
func (d *Disk) Symlinkat(target string, dirfd int, name string) error {
	return d.create("symlinkat", dirfd, name, func() error { return d.inner.Symlinkat(target, dirfd, name) })
}

// Mknodat creates a node.
func (d *Disk) Mknodat(dirfd int, name string, mode uint32, dev uint64) error {
	return d.create("mknodat", dirfd, name, func() error { return d.inner.Mknodat(dirfd, name, mode, dev) })
}

func (d *Disk) create(op string, dirfd int, name string, call func() error) error {
	var e *edit
	return d.change(op,
		func() (err error) { e, err = d.begin(dirfd, name, false); return err },
		call,
		func(err error) error {
			if err != nil {
				return e.cancel()
			}
			return errors.Join(e.commit(), e.markFresh())
		})
}

// Linkat makes a further name of an object.
func (d *Disk) Linkat(fromfd int, dirfd int, name string) error {
	var e *edit
	return d.change("linkat",
		func() (err error) { e, err = d.begin(dirfd, name, false); return err },
		func() error { return d.inner.Linkat(fromfd, dirfd, name) },
		func(err error) error { return e.end(err) })
}

// Unlinkat removes a name.
func (d *Disk) Unlinkat(dirfd int, name string, flags int) error {
	var e *edit
	return d.change("unlinkat",
		func() (err error) { e, err = d.begin(dirfd, name, flags&unix.AT_REMOVEDIR != 0); return err },
		func() error { return d.inner.Unlinkat(dirfd, name, flags) },
		func(err error) error { return e.end(err) })
}

// Renameat moves a name. Between the names of one object it does nothing, as
// rename(2) does not.
func (d *Disk) Renameat(fromfd int, from string, tofd int, to string) error {
	return d.rename("renameat", fromfd, from, tofd, to, d.inner.Renameat)
}

// noReplacer is a [Sys] with a rename that replaces nothing.
type noReplacer interface {
	RenameatNoReplace(fromfd int, from string, tofd int, to string) error
}

// RenameatNoReplace is Renameat, but EEXIST if the new name exists. It is EINVAL if the Sys
// below lacks it.
func (d *Disk) RenameatNoReplace(fromfd int, from string, tofd int, to string) error {
	inner, ok := d.inner.(noReplacer)
	if !ok {
		return unix.EINVAL
	}
	return d.rename("renameat2", fromfd, from, tofd, to, inner.RenameatNoReplace)
}

func (d *Disk) rename(op string, fromfd int, from string, tofd int, to string,
	call func(fromfd int, from string, tofd int, to string) error) error {
	var source, target *edit
	return d.change(op,
		func() (err error) {
			if source, err = d.begin(fromfd, from, false); err != nil {
				return err
			}
			isDir := source.old != nil && source.old.isDir()
			if target, err = d.begin(tofd, to, isDir); err != nil {
				return errors.Join(err, source.cancel())
			}
			return nil
		},
		func() error { return call(fromfd, from, tofd, to) },
		func(err error) error {
			if err != nil || source.old == target.old {
				return errors.Join(target.cancel(), source.cancel())
			}
			err = errors.Join(source.commit(), target.commit())
			return errors.Join(err, d.tie(source, target))
		})
}

// Pwrite writes data.
func (d *Disk) Pwrite(fd int, p []byte, off int64) (n int, err error) {
	err = d.change("pwrite",
		func() error { return d.saveData(fd, off, int64(len(p))) },
		func() error { n, err = d.inner.Pwrite(fd, p, off); return err },
		func(error) error { return nil })
	return n, err
}

// Ftruncate sets a file's size.
func (d *Disk) Ftruncate(fd int, size int64) error {
	return d.change("ftruncate",
		func() error { return d.saveData(fd, size, toEnd) },
		func() error { return d.inner.Ftruncate(fd, size) },
		func(error) error { return nil })
}

// Fallocate reserves or frees space.
func (d *Disk) Fallocate(fd int, mode uint32, off, n int64) error {
	reach := n
	if mode&(unix.FALLOC_FL_COLLAPSE_RANGE|unix.FALLOC_FL_INSERT_RANGE) != 0 {
		reach = toEnd
	}
	return d.change("fallocate",
		func() error { return d.saveData(fd, off, reach) },
		func() error { return d.inner.Fallocate(fd, mode, off, n) },
		func(error) error { return nil })
}

// Fchmod sets permission bits.
func (d *Disk) Fchmod(fd int, mode uint32) error {
	return d.changeAttr("fchmod", fd, func() error { return d.inner.Fchmod(fd, mode) })
}

// Fchown sets owner and group.
func (d *Disk) Fchown(fd int, uid, gid int) error {
	return d.changeAttr("fchown", fd, func() error { return d.inner.Fchown(fd, uid, gid) })
}

// Futimens sets times.
func (d *Disk) Futimens(fd int, atimeSec, atimeNsec, mtimeSec, mtimeNsec int64) error {
	return d.changeAttr("futimens", fd, func() error {
		return d.inner.Futimens(fd, atimeSec, atimeNsec, mtimeSec, mtimeNsec)
	})
}

func (d *Disk) changeAttr(op string, fd int, call func() error) error {
	return d.change(op, func() error { return d.saveAttr(fd) }, call, func(error) error { return nil })
}

// Fdatasync makes a file's data and size stable, and no other attribute.
func (d *Disk) Fdatasync(fd int) error {
	return d.sync("fdatasync", func() error {
		i, err := d.find(fd)
		if i == nil {
			return err
		}
		i.data = nil
		return d.release(i)
	})
}

// Fsync makes all of a file stable, or the names in a directory.
func (d *Disk) Fsync(fd int) error {
	return d.sync("fsync", func() error {
		i, err := d.find(fd)
		if i == nil {
			return err
		}
		return d.settle(i)
	})
}

// Syncfs makes everything stable.
func (d *Disk) Syncfs(int) error { return d.sync("syncfs", d.syncAll) }

func (d *Disk) sync(op string, f func() error) error {
	return d.change(op, f, func() error { return nil }, func(error) error { return nil })
}

func (d *Disk) syncAll() error {
	var errs []error
	for _, i := range d.sorted() {
		if d.inodes[i.key] == i {
			errs = append(errs, d.settle(i))
		}
	}
	return errors.Join(errs...)
}

// Unsynced lists, for messages and assertions, what a crash could lose now.
func (d *Disk) Unsynced() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for _, i := range d.sorted() {
		if i.data != nil {
			list = append(list, fmt.Sprintf("data of inode %d", i.key.ino))
		}
		if i.attr != nil {
			list = append(list, fmt.Sprintf("attributes of inode %d", i.key.ino))
		}
		for _, name := range i.changedNames() {
			list = append(list, fmt.Sprintf("name %q in directory %d", name, i.key.ino))
		}
	}
	return list
}
