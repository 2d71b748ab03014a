//go:build linux

package localfs

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/identity"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
)

// Who writes.
//
// To take on the identity of a caller for the length of one write costs six
// system calls, more than all the rest of a small WRITE. What the kernel makes of
// the writer's identity is little, since the right to write was decided by
// the call that opened the file:
//
//   - The set-uid and set-gid bits fall when a process writes that has not got
//     CAP_FSETID. Root has. A set-gid bit without the right to execute stays if the
//     writer is in the group of the file.
//   - A quota does not bind a process with CAP_SYS_RESOURCE. (Blocks are charged to the
//     owner of the file, whatever user writes.) The same capability, and the user id 0
//     itself, open the blocks that ext4 and f2fs reserve for root.
//   - File capabilities (the attribute security.capability) go whatever user writes.
//
// So a write is made as the caller if the file has such a bit, if the process
// has that capability, or if the disk has not much more left than the reserve;
// and on what is mounted below the root, whose room nobody looks at.
// Everybody else's write is made by the thread as it is. A server should give up
// CAP_SYS_RESOURCE at its start; one that keeps it pays on each write.

// asWriter runs f, which writes to a descriptor, as the caller.
func (v *FS) asWriter(f func() error) error {
	if !v.foreignWriter() {
		return f()
	}
	return v.creds.As(v.who, identity.Wholly, f)
}

// foreignWriter reports whether the kernel may make a difference between the
// caller, who writes, and this process.
func (v *FS) foreignWriter() bool { return v.creds.Foreign(v.who) }

// identityMatters reports whether a write to a file with the attributes st has to
// be made as the caller.
func (v *FS) identityMatters(st *linux.Stat) bool {
	return v.foreignWriter() &&
		(st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 || v.creds.Has(unix.CAP_SYS_RESOURCE) ||
			st.Mnt_id != v.rootMount || v.nearReserve())
}

// reserve knows whether there is room enough on the disk for nobody to come
// near the blocks that are root's.
type reserve struct {
	writes atomic.Int32 // that may be made before the next look
	near   atomic.Bool
}

const (
	// reserveLook is the number of writes after which one looks at the disk
	// again. Programs of this host, too, fill it meanwhile: what so many writes
	// bring is the most that the reserve can lose to others than root.
	reserveLook = 256
	// reserveRoom is how much room there has to be beside the reserve: twice what
	// is written before the next look.
	reserveRoom = 2 * reserveLook * MaxIO
)

// nearReserve reports whether the root's file system is nearly full but for what
// is reserved.
func (h *host) nearReserve() bool {
	r := &h.reserve
	if r.writes.Add(-1) >= 0 {
		return r.near.Load()
	}
	near := true
	var st unix.Statfs_t
	if err := unix.Fstatfs(h.rootFD, &st); err == nil {
		near = st.Bfree != st.Bavail && st.Bavail*uint64(max(st.Frsize, 1)) < reserveRoom
	}
	r.near.Store(near)
	r.writes.Store(reserveLook)
	return near
}
