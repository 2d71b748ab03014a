//go:build linux

package localfs

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// PathOf returns the path below the root of an object that is open, as the kernel knows it
// now, without a slash in front; "" is the root. ok is false if the object is not open, or
// lies elsewhere. It is for the operator to read: a file may have further names, and one that
// was removed has " (deleted)" behind its last. It opens nothing and waits for no disk.
func (v *FS) PathOf(x vfs.Handle) (path string, ok bool) {
	d := v.fds.Peek(x)
	if d == nil {
		return "", false
	}
	defer v.release(d)
	root, err := target(v.rootFD)
	if err != nil {
		return "", false
	}
	if path, err = target(d.FD); err != nil {
		return "", false
	}
	if path == root {
		return "", true
	}
	return strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// target is the path of an open descriptor.
func target(fd int) (string, error) {
	var path [unix.PathMax]byte
	n, err := unix.Readlink(linux.ProcPath(fd), path[:])
	return string(path[:max(n, 0)]), err
}
