package dirfs

import (
	"context"
	"math"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// SetAttr implements vfs.FS.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (wcc vfs.WCC, err error) {
	if err := f.begin(ctx); err != nil {
		return wcc, err
	}
	defer f.end()
	x, o, err := f.take(h)
	if err != nil {
		return wcc, err
	}
	defer f.leave(o.s)
	defer x.close()
	wcc.Before = preAttr(&o.st)
	if guard != nil && !guard.Equal(o.st.Ctime) {
		return wcc, vfs.ErrNotSync
	}
	if set.Valid&vfs.MaskSize != 0 {
		if err := f.setSize(&o, set.Size); err != nil {
			return wcc, err
		}
	}
	err = x.set(set, &o.st)
	var after stat
	if x.stat(&after) == nil {
		wcc.After = after.Attr
	}
	return wcc, err
}

func preAttr(st *stat) vfs.PreAttr {
	return vfs.PreAttr{
		Valid: vfs.MaskSize | vfs.MaskChange | vfs.MaskMtime | vfs.MaskCtime,
		Size:  st.Size, Change: st.Change, Mtime: st.Mtime, Ctime: st.Ctime,
	}
}

// set changes all attributes that the argument names, except the size. The owner comes before the
// mode, because it clears set-id bits. The times come last.
func (x *hostObject) set(set *vfs.SetAttr, st *stat) error {
	if err := x.setOwner(set, st); err != nil {
		return err
	}
	if set.Valid&vfs.MaskMode != 0 {
		if err := fail("chmod", x.chmod(set.Mode&0o7777)); err != nil {
			return err
		}
	}
	if set.Valid&(vfs.MaskAtime|vfs.MaskMtime) == 0 {
		return nil
	}
	return fail("utimensat", x.utimes(set))
}

// setOwner changes owner and group. It leaves out ids that the object already has: even that
// may be refused.
func (x *hostObject) setOwner(set *vfs.SetAttr, st *stat) error {
	uid, gid := -1, -1
	if set.Valid&vfs.MaskUID != 0 && set.UID != st.UID {
		uid = int(set.UID)
	}
	if set.Valid&vfs.MaskGID != 0 && set.GID != st.GID {
		gid = int(set.GID)
	}
	if uid == -1 && gid == -1 {
		return nil
	}
	return fail("chown", x.chown(uid, gid))
}

// setSize opens the file to truncate it.
func (f *FS) setSize(o *place, size uint64) error {
	switch o.st.Type {
	case vfs.TypeReg:
	case vfs.TypeDir:
		return vfs.ErrIsDir
	default:
		return vfs.ErrInval
	}
	if size > math.MaxInt64 {
		return vfs.ErrFBig
	}
	file, _, err := o.openFile(os.O_WRONLY)
	if err != nil {
		return err
	}
	err = fail("truncate", file.Truncate(int64(size)))
	if cerr := file.Close(); err == nil {
		err = fail("close", cerr)
	}
	return err
}
