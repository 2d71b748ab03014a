//go:build linux

package localfs

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// Rights as mode bits have them.
const (
	mayExec  = 1
	mayWrite = 2
	mayRead  = 4
)

// Access implements vfs.FS.
func (v *FS) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	var attr vfs.Attr
	if err := v.begin(ctx, classMeta); err != nil {
		return 0, attr, err
	}
	defer v.end(classMeta)
	d, err := v.object(h)
	if err != nil {
		return 0, attr, err
	}
	defer v.fds.Unpin(d)
	var st linux.Stat
	if err := v.stat(d, &st); err != nil {
		return 0, attr, err
	}
	v.attr(&st, &attr)
	var got vfs.Access
	for _, r := range [...]struct {
		may  uint32
		bits vfs.Access
	}{
		{mayRead, vfs.AccessRead},
		{mayWrite, vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete},
		{mayExec, vfs.AccessLookup | vfs.AccessExecute},
	} {
		bits := r.bits & want & meaningful(&st)
		if bits == 0 || r.may == mayWrite && v.o.ReadOnly {
			continue
		}
		if r.may == mayWrite && st.Is(unix.S_IFDIR) {
			r.may |= mayExec // no name can be changed where none can be reached
		}
		err := v.reaches(d, &st, r.may)
		if err == nil {
			got |= bits
		} else if s, _ := vfs.StatusOf(err); s != vfs.ErrAccess && s != vfs.ErrROFS {
			return 0, attr, err
		}
	}
	return got, attr, nil
}

// meaningful are the rights that mean something for an object of st's type.
func meaningful(st *linux.Stat) vfs.Access {
	const file = vfs.AccessRead | vfs.AccessModify | vfs.AccessExtend
	switch {
	case st.Is(unix.S_IFDIR):
		return file | vfs.AccessLookup | vfs.AccessDelete
	case st.Is(unix.S_IFREG):
		return file | vfs.AccessExecute
	}
	return file
}

// reaches is what ACCESS answers by: the kernel's word if it can be asked as the
// caller, or as the process for the process itself.
func (v *FS) reaches(d *fdcache.Desc, st *linux.Stat, want uint32) error {
	if v.who.Caller == nil || v.who.Super && !v.creds.Able() {
		return v.ask(d, want)
	}
	return v.permits(d, st, want)
}

// permits returns nil if the caller has all rights in want on the object that
// st describes, else ErrAccess. It decides by the mode bits, without a system
// call; only where an access control list stands behind them, and the caller is
// not the owner, whom it does not concern, the kernel is asked.
//
// The process itself (a nil caller) was checked by the kernel when the
// descriptor was opened.
func (v *FS) permits(d *fdcache.Desc, st *linux.Stat, want uint32) error {
	c := v.who.Caller
	if v.who.Super {
		if c == nil || want&mayExec == 0 || st.Is(unix.S_IFDIR) || st.Mode&0o111 != 0 {
			return nil
		}
		return vfs.ErrAccess
	}
	mode := uint32(st.Mode)
	if c.UID == st.Uid {
		return grants(mode>>6, want)
	}
	group, other := grants(mode>>3, want), grants(mode, want)
	if group != nil && other != nil {
		// With a list, the group's bits are the mask over all named entries.
		return vfs.ErrAccess
	}
	if hasACL(d, st) {
		if !v.who.Switched {
			// The kernel cannot be asked as a user that the process cannot act for, and
			// no caller gets more than the list gives.
			return vfs.ErrAccess
		}
		return v.ask(d, want)
	}
	if c.InGroup(st.Gid) {
		return group
	}
	return other
}

func grants(bits, want uint32) error {
	if bits&want == want {
		return nil
	}
	return vfs.ErrAccess
}

// ask has the kernel check the caller's rights, faccessat2(2).
func (v *FS) ask(d *fdcache.Desc, want uint32) error {
	return v.as(func() error {
		return linux.Fail("faccessat2", unix.Faccessat2(d.FD, "", want, unix.AT_EMPTY_PATH|unix.AT_EACCESS))
	})
}

// hasACL reports whether d has a POSIX access control list beyond its mode. The
// answer holds as long as the ctime, which every change of the list moves. Where
// inodes are stamped by the kernel's coarse clock (before Linux 6.13), two changes
// within one of its ticks have one ctime: while that is young, nothing is kept.
func hasACL(d *fdcache.Desc, st *linux.Stat) bool {
	now := int64(st.Change()) << 1
	if was := d.ACL.Load(); was != 0 && was&^1 == now {
		return was&1 != 0
	}
	var tick unix.Timespec
	settled := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &tick) == nil && int64(st.Change()) < tick.Nano()
	err := getxattr(d, linux.XattrAccess)
	has := int64(1)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) {
		has = 0
	}
	if settled {
		d.ACL.Store(now | has)
	}
	return has != 0
}

// getxattr asks for an attribute by its name alone. What is O_PATH has to be asked
// by way of /proc.
func getxattr(d *fdcache.Desc, name string) (err error) {
	if d.Use == fdcache.Path {
		_, err = unix.Getxattr(linux.ProcPath(d.FD), name, nil)
	} else {
		_, err = unix.Fgetxattr(d.FD, name, nil)
	}
	return err
}

// owns reports whether the caller owns the object, or stands above owners.
func (v *FS) owns(st *linux.Stat) bool { return v.who.Super || v.who.Caller.UID == st.Uid }

// mayReadData is the check of a READ. As in Linux nfsd, the owner may read and
// write whatever the mode says, because NFSv3 has no open at which a mode of
// zero could have been outlived; and a caller that may run a file may read it, because
// the client must to run it.
func (v *FS) mayReadData(d *fdcache.Desc, st *linux.Stat) error {
	if v.owns(st) {
		return nil
	}
	err := v.permits(d, st, mayRead)
	if err == nil {
		return nil
	}
	if v.permits(d, st, mayExec) == nil {
		return nil
	}
	return err
}

// mayWriteData is the check of a WRITE and of a change of size.
func (v *FS) mayWriteData(d *fdcache.Desc, st *linux.Stat) error {
	if v.owns(st) {
		return nil
	}
	return v.permits(d, st, mayWrite)
}

// sticky refuses what the sticky bit of the directory dir protects from callers
// who own neither it nor the object, where the kernel cannot.
func (v *FS) sticky(dir, st *linux.Stat) error {
	if v.who.Switched || dir.Mode&unix.S_ISVTX == 0 || v.owns(dir) || v.owns(st) {
		return nil
	}
	return vfs.ErrPerm
}

// dirFor returns the pinned descriptor of the directory x, and its attributes, if
// the caller has all the rights in want.
func (v *FS) dirFor(x vfs.Handle, st *linux.Stat, want uint32) (*fdcache.Desc, error) {
	d, err := v.dir(x)
	if err != nil {
		return nil, err
	}
	if err = v.stat(d, st); err == nil {
		err = v.permits(d, st, want)
	}
	if err != nil {
		v.fds.Unpin(d)
		return nil, err
	}
	return d, nil
}

// mayChange fills st with the attributes of the directory d, in which the caller is
// about to change a name. The rights in want are checked only where the kernel will
// not: for callers whom the process cannot become.
func (v *FS) mayChange(d *fdcache.Desc, st *linux.Stat, want uint32) error {
	if err := v.stat(d, st); err != nil || v.who.Switched {
		return err
	}
	return v.permits(d, st, want)
}
