//go:build linux

package localfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// kernelHandles are those of name_to_handle_at(2). A handle is
//
//	byte    version: handleKernel
//	byte    file system: 0, that of the root
//	uint32  the kernel's handle type, big endian
//	bytes   the kernel's handle
//
// It survives restarts and renames and needs no memory. It does not say whether
// the object lies in the tree: for directories localfs looks, for other objects
// the export's seal must show that the handle was handed out here.
type kernelHandles struct {
	h     *host
	mount int // open for reading: open_by_handle_at(2) refuses O_PATH here
}

// kernelHead is the size of what precedes the kernel's part.
const kernelHead = 6

// rawHandle is struct file_handle.
type rawHandle struct {
	bytes uint32
	typ   int32
	f     [maxKernelHandle]byte
}

// errNoHandles says why a handle was too large for us.
var errNoHandles = errors.New("the handles of this file system are too large")

// nameToHandle is name_to_handle_at(2). name ends in a NUL.
func (r *rawHandle) nameToHandle(dirfd int, name *byte, flags int) error {
	var mount int32
	r.bytes = maxKernelHandle
	_, _, e := unix.Syscall6(unix.SYS_NAME_TO_HANDLE_AT, uintptr(dirfd), uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(r)), uintptr(unsafe.Pointer(&mount)), uintptr(flags), 0)
	switch e {
	case 0:
		return nil
	case unix.EOVERFLOW:
		return errNoHandles
	}
	return e
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

// open is open_by_handle_at(2).
func (r *rawHandle) open(mount int) (fd int, err error) {
	for range maxUnborn {
		if fd, err = r.openOnce(mount); !errors.Is(err, unix.ENOMEM) {
			break
		}
		time.Sleep(unbornPause)
	}
	return fd, err
}

func (r *rawHandle) openOnce(mount int) (int, error) {
	for {
		fd, _, e := unix.Syscall(unix.SYS_OPEN_BY_HANDLE_AT, uintptr(mount), uintptr(unsafe.Pointer(r)),
			unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
		switch e {
		case 0:
			return int(fd), nil
		case unix.EINTR:
		default:
			return -1, e
		}
	}
}

// pack makes a vfs.Handle of r.
func (r *rawHandle) pack() (vfs.Handle, error) {
	var b [kernelHead + maxKernelHandle]byte
	b[0] = handleKernel
	binary.BigEndian.PutUint32(b[2:], uint32(r.typ))
	n := copy(b[kernelHead:], r.f[:min(r.bytes, maxKernelHandle)])
	return vfs.MakeHandle(b[:kernelHead+n])
}

// unpack is the reverse of pack, for bytes of unknown origin.
func (r *rawHandle) unpack(x vfs.Handle) error {
	b := x.Bytes()
	if len(b) <= kernelHead || len(b) > kernelHead+maxKernelHandle || b[0] != handleKernel || b[1] != 0 {
		return vfs.ErrBadHandle
	}
	r.typ = int32(binary.BigEndian.Uint32(b[2:]))
	r.bytes = uint32(copy(r.f[:], b[kernelHead:]))
	return nil
}

// newKernelHandles tries whether the kernel's handles work here: containers
// often lack CAP_DAC_READ_SEARCH, and overlayfs often the feature.
func newKernelHandles(h *host) (*kernelHandles, error) {
	mount, err := reopen(h.rootFD, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fail("open", err)
	}
	k := &kernelHandles{h: h, mount: mount}
	x, err := k.root()
	if err != nil {
		return nil, closing(mount, err)
	}
	var st stat
	fd, err := k.open(x, &st)
	if err != nil {
		return nil, closing(mount, fmt.Errorf("open_by_handle_at: %w", err))
	}
	return k, closing(fd, nil)
}

func (k *kernelHandles) root() (vfs.Handle, error) {
	return k.of(k.h.rootFD, &emptyName[0], unix.AT_EMPTY_PATH)
}

func (k *kernelHandles) of(fd int, name *byte, flags int) (vfs.Handle, error) {
	var r rawHandle
	if err := r.nameToHandle(fd, name, flags); err != nil {
		return vfs.Handle{}, fail("name_to_handle_at", err)
	}
	return r.pack()
}

func (k *kernelHandles) open(x vfs.Handle, st *stat) (int, error) {
	var r rawHandle
	if err := r.unpack(x); err != nil {
		return -1, err
	}
	fd, err := r.open(k.mount)
	switch {
	case err == nil:
	case errors.Is(err, unix.ESTALE), errors.Is(err, unix.ENOENT):
		return -1, vfs.ErrStale
	case errors.Is(err, unix.EINVAL):
		return -1, vfs.ErrBadHandle
	default:
		return -1, fail("open_by_handle_at", err)
	}
	if err = fail("statx", st.statFD(fd)); err == nil && st.Nlink == 0 {
		err = vfs.ErrStale
	}
	if err == nil {
		err = k.confirm(x, fd)
	}
	if err != nil {
		return -1, closing(fd, err)
	}
	return fd, nil
}

// confirm checks that x is the handle that the kernel gives fd, and not just one
// that it takes: ext4 takes a generation of zero, or none, for any.
func (k *kernelHandles) confirm(x vfs.Handle, fd int) error {
	y, err := k.of(fd, &emptyName[0], unix.AT_EMPTY_PATH)
	if err == nil && x != y {
		return vfs.ErrStale
	}
	return err
}

func (k *kernelHandles) bind(dir *desc, name []byte, fd int, _ *stat) (vfs.Handle, mark, error) {
	if fd >= 0 {
		x, err := k.of(fd, &emptyName[0], unix.AT_EMPTY_PATH)
		return x, 0, err
	}
	// Names in a listing's buffer have their NUL behind them already.
	if cap(name) == len(name) || name[:len(name)+1][len(name)] != 0 {
		name = append(name[:len(name):len(name)], 0)
	}
	x, err := k.of(dir.fd, &name[:1][0], 0)
	return x, 0, err
}

func (k *kernelHandles) find(dir *desc, name string, fd int, _ *stat) (vfs.Handle, bool) {
	x, _, err := k.bind(dir, []byte(name), fd, nil)
	return x, err == nil
}

func (k *kernelHandles) expect(*desc, string, vfs.Handle) (mark, bool, error) {
	return 0, false, nil
}

func (k *kernelHandles) unbind(*desc, string, vfs.Handle, bool) {}
func (k *kernelHandles) whileMoving(f func() error) error       { return f() }
func (k *kernelHandles) settle(mark) error                      { return nil }
func (k *kernelHandles) close() error                           { return closing(k.mount, nil) }
