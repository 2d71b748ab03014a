//go:build linux

package mounts

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// A descriptor that was opened for reading is not one that can only be read: its
// holder opens it again through /proc for whatever the mode of the file gives it,
// and root for anything; or sets the file's times, mode and attributes by it, or
// makes a link of it. All that fails if the file was opened through a mount that
// is read-only, since the mount goes with the descriptor. So a mount of which
// files are to be handed out sealed gets a double: a clone of the mount that is
// read-only and attached nowhere (open_tree(2), mount_setattr(2)). Attached to
// nothing and held by no descriptor of open_tree's, the double cannot be cloned in
// turn, by a process that holds a file of it, to become writable.
//
// The double refers to the file system, not to the mount that it is a clone of: that
// can be unmounted, and the file system then lives as long as the files that
// were handed out are open.

// Double is the read-only double of one mount. It is made when it is first asked for.
type Double struct {
	mu    sync.Mutex
	fd    int  // of its root, if made
	made  bool // and not closed
	never bool // it cannot be made here
}

// Root returns the root of the double of the mount whose root is open as mount. It is good
// until Close. Where there can be no double it is vfs.ErrNotSupp, and report is told so
// once. opened counts descriptors.
func (s *Double) Root(mount int, opened func(int), report func(error)) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.made:
		return s.fd, nil
	case s.never:
		return -1, vfs.ErrNotSupp
	}
	fd, err := double(mount)
	switch {
	case err == nil:
	case errors.Is(err, vfs.ErrBusy): // short of descriptors or memory
		return -1, err
	default:
		s.never = true
		report(fmt.Errorf("no read-only double of the mount can be made, so files are not handed out sealed: %w", err))
		return -1, vfs.ErrNotSupp
	}
	s.fd, s.made = fd, true
	opened(1)
	return fd, nil
}

// Close closes the double, if there is one; opened counts descriptors.
func (s *Double) Close(opened func(int)) {
	if s.made {
		s.made = false
		_ = unix.Close(s.fd) // it was read only: nothing can be lost
		opened(-1)
	}
}

// double makes a read-only clone of the mount whose root, or a directory in which,
// is open as fd, and opens the same in it.
func double(fd int) (int, error) {
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, fmt.Errorf("open_tree: %w", linux.Fail("open_tree", err))
	}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC,
	})
	if err != nil {
		return -1, linux.Close(tree, fmt.Errorf("mount_setattr: %w", linux.Fail("mount_setattr", err)))
	}
	// O_PATH would do for openat2(2), but not for open_by_handle_at(2).
	in, err := linux.Reopen(tree, unix.O_RDONLY)
	if err != nil {
		return -1, linux.Close(tree, linux.Fail("open", err))
	}
	if err := linux.Close(tree, nil); err != nil {
		return -1, linux.Close(in, err)
	}
	return in, nil
}

// SealedByPath opens the file that is open as d in the double whose root is in. mount is
// the root that it is a double of. It goes by the path that the kernel knows the file by,
// without a symbolic link or a way out, and takes only the very file that st describes.
// linux.IsGone of the error says that it was not there.
func SealedByPath(in, mount, d int, st *linux.Stat) (int, error) {
	var path, top [unix.PathMax]byte
	n, err := unix.Readlink(linux.ProcPath(d), path[:])
	if err != nil {
		return -1, linux.Fail("readlink", err)
	}
	m, err := unix.Readlink(linux.ProcPath(mount), top[:])
	if err != nil {
		return -1, linux.Fail("readlink", err)
	}
	var ref int
	if bytes.Equal(path[:n], top[:m]) { // a file is mounted
		ref, err = linux.Reopen(in, unix.O_PATH)
	} else if rest, ok := bytes.CutPrefix(path[:n], bytes.TrimSuffix(top[:m], []byte("/"))); ok && rest[0] == '/' {
		ref, err = unix.Openat2(in, string(rest[1:]), &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
		})
	} else {
		return -1, vfs.ErrNotSupp
	}
	if err != nil {
		return -1, linux.Fail("openat2", err)
	}
	if ref, err = Same(ref, st); err != nil {
		return -1, err
	}
	fd, err := linux.Reopen(ref, unix.O_RDONLY)
	if err != nil {
		return -1, linux.Close(ref, linux.Fail("open", err))
	}
	if err := linux.Close(ref, nil); err != nil {
		return -1, linux.Close(fd, err)
	}
	return fd, nil
}

// Same returns fd if it is the object that st describes. Else it closes fd, and is
// vfs.ErrStale.
func Same(fd int, st *linux.Stat) (int, error) {
	var is linux.Stat
	if err := is.Of(fd); err != nil {
		return -1, linux.Close(fd, linux.Fail("statx", err))
	}
	if is.Ident() != st.Ident() || is.Dev() != st.Dev() {
		return -1, linux.Close(fd, vfs.ErrStale)
	}
	return fd, nil
}
