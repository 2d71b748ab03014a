package nfsserver

import (
	"fmt"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
)

// StatusOf returns the status of a call's results, as its protocol names it, such as
// NFS3ERR_STALE. It is nil if there are no results, or none with a status. It is for
// [Options].Observe.
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
