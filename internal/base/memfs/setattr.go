package memfs

import (
	"context"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/vfs"
)

// SetAttr changes everything that is asked for, or nothing.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	if err := f.begin(ctx, "setattr", h); err != nil {
		return vfs.WCC{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(h)
	if err != nil {
		return vfs.WCC{}, err
	}
	pre := n.pre()
	if guard != nil && !guard.Equal(n.ctime) {
		return f.wcc(n, pre), vfs.ErrNotSync
	}
	if err := f.maySet(n, set); err != nil {
		return f.wcc(n, pre), err
	}
	f.set(n, set)
	return f.wcc(n, pre), nil
}

// maySet is nil if the caller may set all of that on n.
func (f *FS) maySet(n *inode, set *vfs.SetAttr) error {
	if set.Valid&vfs.MaskSize != 0 {
		if err := f.mayResize(n, set.Size); err != nil {
			return err
		}
	}
	if set.Valid&vfs.MaskMode != 0 {
		if n.typ == vfs.TypeSymlink {
			return vfs.ErrNotSupp
		}
		if !f.owns(n) {
			return vfs.ErrPerm
		}
	}
	if err := f.mayGive(n, set); err != nil {
		return err
	}
	return f.mayDate(n, set)
}

func (f *FS) mayResize(n *inode, size uint64) error {
	switch {
	case n.typ == vfs.TypeDir:
		return vfs.ErrIsDir
	case n.typ != vfs.TypeReg:
		return vfs.ErrInval
	case size > MaxFileSize:
		return vfs.ErrFBig
	}
	return f.may(n, mayWrite)
}

// mayGive is about owner and group: only the superuser gives files away, and
// an owner chooses among the groups that are its own.
func (f *FS) mayGive(n *inode, set *vfs.SetAttr) error {
	if set.Valid&vfs.MaskUID != 0 && !f.super() && (set.UID != n.uid || f.who.UID != n.uid) {
		return vfs.ErrPerm
	}
	if set.Valid&vfs.MaskGID != 0 && !(f.owns(n) && (f.inGroup(set.GID) || set.GID == n.gid)) {
		return vfs.ErrPerm
	}
	return nil
}

// mayDate is about times: any time is the owner's to set, now is that of
// everyone who may write.
func (f *FS) mayDate(n *inode, set *vfs.SetAttr) error {
	if f.owns(n) {
		return nil
	}
	atime, mtime := set.Valid&vfs.MaskAtime != 0, set.Valid&vfs.MaskMtime != 0
	if atime && !set.AtimeNow || mtime && !set.MtimeNow {
		return vfs.ErrPerm
	}
	if atime || mtime {
		return f.may(n, mayWrite)
	}
	return nil
}

// settable are the fields that set looks at.
const settable = vfs.MaskMode | vfs.MaskUID | vfs.MaskGID | vfs.MaskSize | vfs.MaskAtime | vfs.MaskMtime

// set does what maySet has allowed. Owner comes before mode, because giving a
// file away takes its set-uid bit, and a mode that is asked for at once is meant.
func (f *FS) set(n *inode, set *vfs.SetAttr) {
	if set.Valid&settable == 0 {
		return
	}
	now := f.now()
	f.changed(n, now)
	if set.Valid&vfs.MaskSize != 0 {
		f.resize(n, set.Size, now)
	}
	if set.Valid&vfs.MaskUID != 0 {
		n.uid = set.UID
		n.unprivilege()
	}
	if set.Valid&vfs.MaskGID != 0 {
		n.gid = set.GID
		n.unprivilege()
	}
	if set.Valid&vfs.MaskMode != 0 {
		n.mode = set.Mode & 0o7777
		if !f.inGroup(n.gid) {
			n.mode &^= setGID
		}
		if n.acl.Access != nil {
			n.acl.Access = posixacl.Chmod(n.acl.Access, n.mode)
		}
	}
	if set.Valid&vfs.MaskAtime != 0 {
		n.atime = f.pick(now, set.Atime, set.AtimeNow)
	}
	if set.Valid&vfs.MaskMtime != 0 {
		n.mtime = f.pick(now, set.Mtime, set.MtimeNow)
	}
}

func (f *FS) pick(now, given time.Time, useNow bool) time.Time {
	if useNow {
		return now
	}
	return given.Truncate(f.opt.TimeDelta)
}

// resize sets a regular file's size, which the caller may.
func (f *FS) resize(n *inode, size uint64, now time.Time) {
	f.pages -= uint64(len(n.content.pages))
	n.content.truncate(size)
	f.pages += uint64(len(n.content.pages))
	if !f.super() {
		n.unprivilege()
	}
	f.modified(n, now)
}
