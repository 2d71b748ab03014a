//go:build linux

package localfs

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// Root implements vfs.FS.
func (v *FS) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	a, err := v.GetAttr(ctx, v.root, vfs.MaskV3)
	return v.root, a, err
}

// GetAttr implements vfs.FS. It returns every attribute that there is. Of what
// is open and has its place in the tree they are in memory.
func (v *FS) GetAttr(ctx context.Context, x vfs.Handle, _ vfs.Mask) (a vfs.Attr, err error) {
	if err := v.ready(ctx); err != nil {
		return a, err
	}
	var st linux.Stat
	if !v.statCached(x, &st) {
		if err := v.statObject(ctx, x, &st); err != nil {
			return a, err
		}
	}
	v.attr(&st, &a)
	return a, nil
}

// statCached fills st with the attributes of x if that surely takes no waiting.
func (v *FS) statCached(x vfs.Handle, st *linux.Stat) bool {
	if !v.attrsInMemory {
		return false
	}
	d := v.fds.GetAny(x)
	if d == nil {
		return false
	}
	defer v.release(d)
	return v.depthHolds(d) && st.Of(d.FD) == nil && st.Nlink > 0
}

// depthHolds reports whether d lies in the tree, if that can be told from how deep it was
// the last time. The directories above an open one are in memory.
func (h *host) depthHolds(d *fdcache.Desc) bool {
	if d.Kind != unix.S_IFDIR || d.H == h.root {
		return true
	}
	n := int(d.Depth.Load())
	var up linux.Stat
	return n > 0 && up.Statx(d.FD, &ups[3*(maxUps-n)], 0) == nil && h.isRoot(&up)
}

func (v *FS) statObject(ctx context.Context, x vfs.Handle, st *linux.Stat) error {
	if err := v.enter(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return err
	}
	defer v.fds.Unpin(d)
	return v.stat(d, st)
}

func (h *host) attr(st *linux.Stat, a *vfs.Attr) {
	*a = vfs.Attr{
		Valid: vfs.MaskV3,
		Type:  linux.TypeOf(st.Mode), Mode: st.Perm(), Nlink: st.Nlink, UID: st.Uid, GID: st.Gid,
		Size: st.Size, Used: st.Blocks * 512, FileID: st.Ino,
		Rdev:   uint64(st.Rdev_major)<<32 | uint64(st.Rdev_minor),
		Change: st.Change(),
		FSID:   [2]uint64{h.fsid, 0},
		Atime:  linux.TimeOf(st.Atime), Mtime: linux.TimeOf(st.Mtime), Ctime: linux.TimeOf(st.Ctime),
	}
	if st.Mnt_id != h.rootMount {
		a.FSID[1], _ = h.mountKey(st.Mnt_id)
	} else if st.Dev() != h.rootDev {
		a.FSID[1] = st.Dev()
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		a.Btime = linux.TimeOf(st.Btime)
		a.Valid |= vfs.MaskBtime
	}
}

func preAttr(st *linux.Stat) vfs.PreAttr {
	return vfs.PreAttr{
		Valid: vfs.MaskSize | vfs.MaskChange | vfs.MaskMtime | vfs.MaskCtime,
		Size:  st.Size, Change: st.Change(), Mtime: linux.TimeOf(st.Mtime), Ctime: linux.TimeOf(st.Ctime),
	}
}

// before is what wcc data says of the time before an operation. Without the
// lock it could be the work of others, and is nothing: of files as soon as
// another process may write to one (OpenHost), which knows no lock of ours.
func (h *host) before(st *linux.Stat) vfs.PreAttr {
	if h.o.LocalWriters || h.locks.lent.Load() && st.Is(unix.S_IFREG) {
		return vfs.PreAttr{}
	}
	return preAttr(st)
}

// after fills a with what d is now, if that can be told.
func (h *host) after(d *fdcache.Desc, a *vfs.Attr) {
	var st linux.Stat
	if st.Of(d.FD) == nil {
		h.attr(&st, a)
	}
}
