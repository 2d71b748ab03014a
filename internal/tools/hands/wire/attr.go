package wire

import (
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// attrs are the attributes that an Attr has: those of NFSv3, but for a device's number.
const attrs = vfs.MaskV3 &^ vfs.MaskRdev

// Set makes a what v is.
func (a *Attr) Set(v *vfs.Attr) {
	*a = Attr{
		Valid: uint32(v.Valid & attrs), Type: uint32(v.Type), Mode: v.Mode, Nlink: v.Nlink, Uid: v.UID, Gid: v.GID,
		Size: v.Size, Used: v.Used, Fileid: v.FileID, Fsid: v.FSID, Atime: stamp(v.Atime), Mtime: stamp(v.Mtime), Ctime: stamp(v.Ctime),
	}
}

// VFS is what a stands for. A regular file has no device number: with all others, that is known, too.
func (a *Attr) VFS() vfs.Attr {
	v := vfs.Attr{
		Valid: vfs.Mask(a.Valid) & attrs, Type: vfs.Type(a.Type), Mode: a.Mode & 0o7777, Nlink: a.Nlink, UID: a.Uid, GID: a.Gid,
		Size: a.Size, Used: a.Used, FileID: a.Fileid, FSID: a.Fsid, Atime: a.Atime.time(), Mtime: a.Mtime.time(), Ctime: a.Ctime.time(),
	}
	v.Change = uint64(v.Ctime.UnixNano())
	if v.Has(attrs) && v.Type == vfs.TypeReg {
		v.Valid |= vfs.MaskRdev
	}
	return v
}

func stamp(t time.Time) Time { return Time{t.Unix(), uint32(t.Nanosecond())} }

func (t Time) time() time.Time { return time.Unix(t.Seconds, int64(t.Nanoseconds)) }

// SetIdentity notes which object a belongs to, if that is known.
func (i *Identity) SetIdentity(a *vfs.Attr) {
	*i = Identity{}
	if a != nil && a.Has(vfs.MaskFSID|vfs.MaskFileID) {
		*i = Identity{true, a.FSID, a.FileID}
	}
}

// Is reports whether a may belong to the object.
func (i *Identity) Is(a *vfs.Attr) bool {
	return !i.Known || !a.Has(vfs.MaskFSID|vfs.MaskFileID) || i.Fsid == a.FSID && i.Fileid == a.FileID
}
