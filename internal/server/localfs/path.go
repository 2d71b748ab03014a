//go:build linux

package localfs

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxUps bounds how far up a directory can be checked in one step. Deeper ones
// cost three system calls for each directory above them.
const maxUps = 64

// ups is maxUps times "../" and a NUL: its tails are the ways up.
var ups = func() (b [3*maxUps + 1]byte) {
	for i := range maxUps {
		copy(b[3*i:], "../")
	}
	return b
}()

// beneath reports whether the directory d lies in the tree, now. It is asked each
// time and its answer not remembered: programs of this host may move a directory
// out, and no cache would learn of it. Only how far up the root was the last time
// is kept: if it is there still, one statx proves it.
func (h *host) beneath(d *fdcache.Desc) (bool, error) {
	if n := int(d.Depth.Load()); n > 0 {
		var st linux.Stat
		if st.Statx(d.FD, &ups[3*(maxUps-n)], 0) == nil && h.isRoot(&st) {
			return true, nil
		}
	}
	n, err := h.walkUp(d.FD)
	if errors.Is(err, vfs.ErrAccess) {
		return h.pathBeneath(d.FD)
	}
	if n > 0 && n <= maxUps {
		d.Depth.Store(int32(n))
	}
	return n >= 0, err
}

// notBeneath is how far below the root a directory is that is not.
const notBeneath = -1

// walkUp goes from the directory fd to its parent and on, and tells after how
// many steps it has met the root of the tree.
func (h *host) walkUp(fd int) (int, error) {
	var st, up linux.Stat
	if err := st.Of(fd); err != nil {
		return notBeneath, linux.Fail("statx", err)
	}
	at := fd
	defer func() {
		if at != fd {
			_ = unix.Close(at)
		}
	}()
	for n := range maxDepth {
		if h.isRoot(&st) {
			return n, nil
		}
		next, err := linux.OpenPath(at, "..", unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			return notBeneath, nil // moved out of what is bound into the tree
		}
		if err != nil {
			return notBeneath, linux.Fail("open ..", err)
		}
		if at != fd {
			_ = unix.Close(at)
		}
		at = next
		if err := up.Of(at); err != nil {
			return notBeneath, linux.Fail("statx", err)
		}
		if up.Ino == st.Ino && up.Dev() == st.Dev() && up.Mnt_id == st.Mnt_id {
			return notBeneath, nil // the root of the world is above itself
		}
		st = up
	}
	return notBeneath, nil
}

func (h *host) isRoot(st *linux.Stat) bool {
	return st.Ino == h.rootIno && st.Dev() == h.rootDev && (h.rootMount == 0 || st.Mnt_id == h.rootMount)
}

// pathBeneath compares the kernel's own idea of where fd and the root are. It
// is for directories that this process may not search, from which no way leads
// up; nothing in them can be reached.
func (h *host) pathBeneath(fd int) (bool, error) {
	var path, root [unix.PathMax]byte
	n, err := unix.Readlink(linux.ProcPath(fd), path[:])
	if err != nil {
		return false, linux.Fail("readlink", err)
	}
	m, err := unix.Readlink(linux.ProcPath(h.rootFD), root[:])
	if err != nil {
		return false, linux.Fail("readlink", err)
	}
	rest, ok := bytes.CutPrefix(path[:n], root[:m])
	return ok && n < len(path) && (len(rest) == 0 || rest[0] == '/' || m == 1), nil
}

// foreign reports whether st is on another mount than the root, and not to be
// served. The mount tells more than the device: bind mounts share a device, and
// the layers of an overlay or the subvolumes of btrfs have several in one mount.
func (h *host) foreign(st *linux.Stat) bool {
	if st.Mask&unix.STATX_MNT_ID == 0 || h.rootMount == 0 {
		return !h.o.CrossMounts && st.Dev() != h.rootDev
	}
	_, ok := h.mountKey(st.Mnt_id)
	return !ok
}
