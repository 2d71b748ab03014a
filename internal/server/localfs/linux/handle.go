//go:build linux

package linux

import (
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MaxHandle bounds the kernel's part of a handle, in bytes, so that the whole fits an NFSv3
// handle beside the export's seal. Overlayfs needs 32. A file system that needs more is
// served with the map of handles.
const MaxHandle = 45

// RawHandle is struct file_handle.
type RawHandle struct {
	Size  uint32
	Type  int32
	Bytes [MaxHandle]byte
}

// ErrNoHandles says that the kernel's handle has more than MaxHandle bytes.
var ErrNoHandles = errors.New("the handles of this file system are too large")

// NameToHandle is name_to_handle_at(2). It fills r, and returns the number of the mount.
// name ends in a NUL.
func (r *RawHandle) NameToHandle(dirfd int, name *byte, flags int) (mountID uint64, err error) {
	var mount int32
	r.Size = MaxHandle
	_, _, e := unix.Syscall6(unix.SYS_NAME_TO_HANDLE_AT, uintptr(dirfd), uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(r)), uintptr(unsafe.Pointer(&mount)), uintptr(flags), 0)
	switch e {
	case 0:
		return uint64(mount), nil
	case unix.EOVERFLOW:
		return 0, ErrNoHandles
	}
	return 0, e
}

// While an inode number is being given to a new object, an old handle with that
// number is answered with ENOMEM, as if memory were short (iget_locked of Linux
// returns nothing, and file systems take that for want of memory). It is over as
// soon as the new object has been made, and the handle is then stale.
const (
	// maxUnborn bounds how often a handle is tried again for it. Beyond, memory
	// is short indeed, and the caller gets ErrBusy.
	maxUnborn = 20
	// unbornPause is the time between two tries.
	unbornPause = time.Millisecond
)

// Open is open_by_handle_at(2), on the mount in which a file is open as mount.
func (r *RawHandle) Open(mount, flags int) (fd int, err error) {
	for range maxUnborn {
		if fd, err = r.openOnce(mount, flags); !errors.Is(err, unix.ENOMEM) {
			break
		}
		time.Sleep(unbornPause)
	}
	return fd, err
}

func (r *RawHandle) openOnce(mount, flags int) (int, error) {
	for {
		fd, _, e := unix.Syscall(unix.SYS_OPEN_BY_HANDLE_AT, uintptr(mount), uintptr(unsafe.Pointer(r)),
			uintptr(flags|unix.O_NOFOLLOW|unix.O_CLOEXEC))
		switch e {
		case 0:
			return int(fd), nil
		case unix.EINTR:
		default:
			return -1, e
		}
	}
}

// CName is name with a NUL behind it. A name in a listing's buffer has one already, and is
// not copied.
func CName(name []byte) *byte {
	if cap(name) == len(name) || name[:len(name)+1][len(name)] != 0 {
		name = append(name[:len(name):len(name)], 0)
	}
	return &name[:1][0]
}

// FIDOnly is AT_HANDLE_FID of name_to_handle_at(2), Linux 6.5. The handle need not be good
// for open_by_handle_at(2), and takes no privilege.
const FIDOnly = 0x200

// Sum is a checksum of r (FNV-1a).
func (r *RawHandle) Sum() int64 {
	sum := uint64(14695981039346656037)
	for _, b := range r.Bytes[:r.Size] {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	return int64((sum ^ uint64(uint32(r.Type))) * 1099511628211)
}
