package nfsserver

import (
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// Object is what a call was about, as its arguments say, which nobody has checked.
type Object struct {
	Handle vfs.Handle // as clients have it; zero: none
	Name   string     // in the directory Handle; "": the call was about Handle itself
	Path   string     // of MOUNT, which has no handle
}

// IsZero reports whether the arguments name nothing.
func (o *Object) IsZero() bool { return o.Handle.IsZero() && o.Path == "" }

// ObjectOf reads from the arguments of a call what it was about. Of a call about two objects
// it is the first. It is for [Options].Observe.
func ObjectOf(c *oncrpc.Served) (o Object) {
	if c.Proc == nil || c.Proc.Number == 0 {
		return o
	}
	d := xdr.NewDecoder(c.Args)
	switch c.Proc.Program {
	case mount3.MOUNT_V3.Number:
		if n := c.Proc.Number; n == mount3.MOUNTPROC3_MNT.Number || n == mount3.MOUNTPROC3_UMNT.Number {
			o.Path = string(d.Opaque("dirpath", mount3.MNTPATHLEN))
		}
	case nfs3.NFS_V3.Number, nfsacl3.NFS_ACL_V3.Number:
		h, err := vfs.MakeHandle(d.Opaque("handle", vfs.MaxHandleV3))
		if err != nil || d.Err() != nil {
			return o
		}
		o.Handle = h
		if c.Proc.Program == nfs3.NFS_V3.Number && hasName(c.Proc) {
			o.Name = string(d.Opaque("name", vfs.MaxName))
		}
	}
	return o
}

// hasName reports whether the arguments of an NFS procedure begin with a diropargs3.
func hasName(p *xdr.Proc) bool {
	switch p.Number {
	case nfs3.NFSPROC3_LOOKUP.Number, nfs3.NFSPROC3_CREATE.Number, nfs3.NFSPROC3_MKDIR.Number, nfs3.NFSPROC3_SYMLINK.Number,
		nfs3.NFSPROC3_MKNOD.Number, nfs3.NFSPROC3_REMOVE.Number, nfs3.NFSPROC3_RMDIR.Number, nfs3.NFSPROC3_RENAME.Number:
		return true
	}
	return false
}
