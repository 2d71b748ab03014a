//go:build linux

package localfs

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// SetAttr implements vfs.FS.
func (v *FS) SetAttr(ctx context.Context, x vfs.Handle, set *vfs.SetAttr, guard *time.Time) (wcc vfs.WCC, err error) {
	if err := v.beginChange(ctx, classMeta); err != nil {
		return wcc, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return wcc, err
	}
	defer v.fds.Unpin(d)
	defer v.unlock(v.lock(d))
	var st linux.Stat
	if err := v.stat(d, &st); err != nil {
		return wcc, err
	}
	wcc.Before = v.before(&st)
	defer v.after(d, &wcc.After)
	if guard != nil && !guard.Equal(linux.TimeOf(st.Ctime)) {
		return wcc, vfs.ErrNotSync
	}
	if err = v.setAttrs(d, &st, set); err == nil {
		err = v.touched(d)
	}
	if set.Valid&(vfs.MaskMode|vfs.MaskUID|vfs.MaskGID) != 0 {
		v.changed(x, &st, vfs.ChangeRights, err)
	}
	return wcc, err
}

// setAttrs changes what set names. What is most likely to be refused comes
// first, so that a refusal leaves nothing changed; the size comes before the
// times, which it would move, and the owner before the mode, whose set-uid bits
// it would clear.
func (v *FS) setAttrs(d *fdcache.Desc, st *linux.Stat, set *vfs.SetAttr) error {
	if err := v.maySet(d, st, set); err != nil {
		return err
	}
	if err := v.setOwner(d, st, set); err != nil {
		return err
	}
	if set.Valid&vfs.MaskSize != 0 {
		if err := v.setSize(d, set.Size); err != nil {
			return err
		}
	}
	if set.Valid&vfs.MaskMode != 0 {
		mode := v.settable(set.Mode&07777, st, set)
		err := v.as(func() error { return linux.Fail("chmod", v.sys.Fchmod(d.FD, mode)) })
		if err != nil {
			return err
		}
	}
	return v.setTimes(d, st, set)
}

// maySet checks what can be checked beforehand. The kernel checks again.
func (v *FS) maySet(d *fdcache.Desc, st *linux.Stat, set *vfs.SetAttr) error {
	if set.Valid&vfs.MaskSize != 0 {
		switch d.Kind {
		case unix.S_IFREG:
		case unix.S_IFDIR:
			return vfs.ErrIsDir
		default:
			return vfs.ErrInval
		}
		if err := v.mayWriteData(d, st); err != nil {
			return err
		}
	}
	if v.owns(st) {
		return nil
	}
	if set.Valid&(vfs.MaskMode|vfs.MaskUID|vfs.MaskGID) != 0 || explicitTimes(set) {
		return vfs.ErrPerm
	}
	if set.Valid&(vfs.MaskAtime|vfs.MaskMtime) != 0 {
		return v.permits(d, st, mayWrite)
	}
	return nil
}

func explicitTimes(set *vfs.SetAttr) bool {
	return set.Valid&vfs.MaskAtime != 0 && !set.AtimeNow || set.Valid&vfs.MaskMtime != 0 && !set.MtimeNow
}

// noChange is the id that chown(2) leaves as it is.
const noChange = -1

// setOwner gives the object away. Ids that it has already are left alone: even
// that would be refused to a caller that may not.
func (v *FS) setOwner(d *fdcache.Desc, st *linux.Stat, set *vfs.SetAttr) error {
	uid, gid := noChange, noChange
	if set.Valid&vfs.MaskUID != 0 && set.UID != st.Uid {
		uid = int(set.UID)
	}
	if set.Valid&vfs.MaskGID != 0 && set.GID != st.Gid {
		gid = int(set.GID)
	}
	if uid == noChange && gid == noChange {
		return nil
	}
	return v.as(func() error { return linux.Fail("chown", v.sys.Fchown(d.FD, uid, gid)) })
}

func (v *FS) setSize(d *fdcache.Desc, size uint64) error {
	w, err := v.data(d.H, fdcache.Write)
	if err != nil {
		return err
	}
	defer v.fds.Unpin(w)
	return v.truncate(w, size)
}

// setTimes sets what set asks for. A caller that owns nothing may set the clock's time if
// it may write, which maySet has checked. The kernel would want the owner if only one of
// the two times is asked for, so then it is not asked as the caller.
func (v *FS) setTimes(d *fdcache.Desc, st *linux.Stat, set *vfs.SetAttr) error {
	asec, ansec := timeArg(set.Valid&vfs.MaskAtime != 0, set.AtimeNow, set.Atime)
	msec, mnsec := timeArg(set.Valid&vfs.MaskMtime != 0, set.MtimeNow, set.Mtime)
	if ansec == unix.UTIME_OMIT && mnsec == unix.UTIME_OMIT {
		return nil
	}
	f := func() error { return linux.Fail("utimensat", v.sys.Futimens(d.FD, asec, ansec, msec, mnsec)) }
	if !v.owns(st) {
		return f()
	}
	return v.as(f)
}

func timeArg(set, now bool, t time.Time) (sec, nsec int64) {
	switch {
	case !set:
		return 0, unix.UTIME_OMIT
	case now:
		return 0, unix.UTIME_NOW
	}
	return t.Unix(), int64(t.Nanosecond())
}
