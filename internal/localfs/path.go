//go:build linux

package localfs

import "golang.org/x/sys/unix"

// openPath opens name in dirfd as a mere reference: nothing is read, no device
// woken, and a symbolic link is itself.
func openPath(dirfd int, name string, flags int) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
		return err
	})
	return fd, err
}

// reopen opens what fd refers to with other flags, under the credentials of the
// calling thread. O_NONBLOCK makes a lease of another program an EAGAIN, which
// the client tries again, instead of a thread that waits.
func reopen(fd, flags int) (n int, err error) {
	err = again(func() (err error) {
		n, err = unix.Open(procPath(fd), flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		return err
	})
	return n, err
}

// beneath reports whether the directory fd lies in the tree, now. It is asked
// each time and not remembered: programs of this host may move a directory out,
// and no cache would learn of it.
//
// The kernel's own idea of the two paths is compared first, which costs one
// readlink. Where that is no proof (the root was renamed, the path is longer
// than a page, the process is in a chroot), the way up is walked.
func (h *host) beneath(fd int) (bool, error) {
	var buf [unix.PathMax]byte
	n, err := unix.Readlink(procPath(fd), buf[:])
	if err == nil && n < len(buf) && within(h.rootPath, buf[:n]) {
		// The root's own path is what it was when h.rootPath was read, unless
		// someone has renamed it; then the name may be another directory's.
		if m, err := unix.Readlink(h.rootLink, buf[:]); err == nil && string(buf[:m]) == h.rootPath {
			return true, nil
		}
	}
	return h.walkUp(fd)
}

// within reports whether the absolute path p is dir or below it.
func within(dir string, p []byte) bool {
	if len(p) < len(dir) || string(p[:len(dir)]) != dir {
		return false
	}
	return len(p) == len(dir) || p[len(dir)] == '/' || dir == "/"
}

// walkUp goes from the directory fd to its parent and on, until it meets the
// root of the tree (true) or that of the world (false).
func (h *host) walkUp(fd int) (bool, error) {
	var st, up stat
	if err := st.statFD(fd); err != nil {
		return false, fail("statx", err)
	}
	at, own := fd, false // own: at is ours to close
	defer func() {
		if own {
			_ = unix.Close(at)
		}
	}()
	for range maxDepth {
		if st.Ino == h.rootIno && st.dev() == h.rootDev {
			return true, nil
		}
		next, err := openPath(at, "..", unix.O_DIRECTORY)
		if err != nil {
			return false, fail("open ..", err)
		}
		if own {
			_ = unix.Close(at)
		}
		at, own = next, true
		if err := up.statFD(at); err != nil {
			return false, fail("statx", err)
		}
		if up.Ino == st.Ino && up.dev() == st.dev() {
			return false, nil
		}
		st = up
	}
	return false, nil
}

// foreign reports whether st is on another mount than the root, and not to be
// served. The mount tells more than the device: bind mounts share a device, and
// the layers of an overlay or the subvolumes of btrfs have several in one mount.
func (h *host) foreign(st *stat) bool {
	if h.o.CrossMounts {
		return false
	}
	if st.Mask&unix.STATX_MNT_ID != 0 && h.rootMount != 0 {
		return st.Mnt_id != h.rootMount
	}
	return st.dev() != h.rootDev
}
