package nfsserver

import (
	"fmt"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
)

// StatusOf is the status with which the results of a call begin, in the words of its
// protocol, such as NFS3ERR_STALE; nil: they begin with none, or there are none. It is
// for [Options].Observe.
func StatusOf(c *oncrpc.Served) fmt.Stringer {
	if c.Proc == nil || c.Failed || c.BytesOut == 0 || c.Proc.Number == 0 {
		return nil
	}
	switch c.Proc.Program {
	case nfs3.NFS_V3.Number, nfsacl3.NFS_ACL_V3.Number:
		return nfs3.Nfsstat3(c.Result)
	case mount3.MOUNT_V3.Number:
		if c.Proc.Version == mount3.MOUNT_V3.Version && c.Proc.Number == mount3.MOUNTPROC3_MNT.Number {
			return mount3.Mountstat3(c.Result)
		}
	}
	return nil
}
