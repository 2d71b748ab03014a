//go:build linux

package localfs

import (
	"bytes"
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
//	byte    file system: 0, that of the root; 1, that of the key that follows
//	uint64  the key of a mount below the root, big endian; not of the root's
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

// kernelHead is the size of what precedes the kernel's part on the root's file
// system, and keySize what more there is on others. There, handles of maxKernelHandle
// bytes are too large; overlayfs' still fit.
const (
	kernelHead = 6
	keySize    = 8
)

// rawHandle is struct file_handle.
type rawHandle struct {
	bytes uint32
	typ   int32
	f     [maxKernelHandle]byte
}

// errNoHandles says why a handle was too large for us.
var errNoHandles = errors.New("the handles of this file system are too large")

// nameToHandle is name_to_handle_at(2), and tells the mount. name ends in a NUL.
func (r *rawHandle) nameToHandle(dirfd int, name *byte, flags int) (mountID uint64, err error) {
	var mount int32
	r.bytes = maxKernelHandle
	_, _, e := unix.Syscall6(unix.SYS_NAME_TO_HANDLE_AT, uintptr(dirfd), uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(r)), uintptr(unsafe.Pointer(&mount)), uintptr(flags), 0)
	switch e {
	case 0:
		return uint64(mount), nil
	case unix.EOVERFLOW:
		return 0, errNoHandles
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

// open is open_by_handle_at(2).
func (r *rawHandle) open(mount, flags int) (fd int, err error) {
	for range maxUnborn {
		if fd, err = r.openOnce(mount, flags); !errors.Is(err, unix.ENOMEM) {
			break
		}
		time.Sleep(unbornPause)
	}
	return fd, err
}

func (r *rawHandle) openOnce(mount, flags int) (int, error) {
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

// pack makes a vfs.Handle of r, on the mount of that key.
func (r *rawHandle) pack(key uint64) (vfs.Handle, error) {
	var buf [kernelHead + maxKernelHandle]byte
	b := append(buf[:0], handleKernel, 0)
	if key != 0 {
		b[1] = 1
		b = binary.BigEndian.AppendUint64(b, key)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(r.typ))
	if len(b)+int(r.bytes) > len(buf) {
		return vfs.Handle{}, errNoHandles
	}
	return vfs.MakeHandle(append(b, r.f[:r.bytes]...))
}

// unpack is the reverse of pack, for bytes of unknown origin.
func (r *rawHandle) unpack(x vfs.Handle) (key uint64, err error) {
	b := x.Bytes()
	if len(b) > kernelHead+maxKernelHandle || len(b) < kernelHead || b[0] != handleKernel || b[1] > 1 {
		return 0, vfs.ErrBadHandle
	}
	crossed := b[1] == 1
	if b = b[2:]; crossed {
		if len(b) <= keySize {
			return 0, vfs.ErrBadHandle
		}
		key, b = binary.BigEndian.Uint64(b), b[keySize:]
	}
	if len(b) <= kernelHead-2 || crossed && key == 0 {
		return 0, vfs.ErrBadHandle
	}
	r.typ = int32(binary.BigEndian.Uint32(b))
	r.bytes = uint32(copy(r.f[:], b[kernelHead-2:]))
	return key, nil
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

// of is the handle of what name is in fd. What is mounted there and not served is
// ErrNoEnt.
func (k *kernelHandles) of(fd int, name *byte, flags int) (vfs.Handle, error) {
	var r rawHandle
	id, err := r.nameToHandle(fd, name, flags)
	if err != nil {
		return vfs.Handle{}, fail("name_to_handle_at", err)
	}
	key, ok := k.h.mountKey(id)
	if !ok && k.h.rootMount != 0 {
		return vfs.Handle{}, vfs.ErrNoEnt
	}
	return r.pack(key)
}

func (k *kernelHandles) open(x vfs.Handle, st *stat) (int, error) {
	fd, err := k.reach(x, st)
	if err != nil {
		return -1, err
	}
	if err := k.confirm(x, fd); err != nil {
		return -1, closing(fd, err)
	}
	return fd, nil
}

// reach is open for a handle that was made by of, and not by a stranger.
func (k *kernelHandles) reach(x vfs.Handle, st *stat) (int, error) {
	var r rawHandle
	key, err := r.unpack(x)
	if err != nil {
		return -1, err
	}
	fd := -1
	switch {
	case key == 0:
		fd, err = r.open(k.mount, unix.O_PATH)
	case k.h.mounts == nil:
		err = vfs.ErrStale // mounts are no longer crossed
	default:
		fd, err = k.h.mounts.open(key, &r)
	}
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
	if err != nil {
		return -1, closing(fd, err)
	}
	return fd, nil
}

// reopen is reopen of what is in the cache, so that its handle is confirmed. Where it
// can, it goes by the handle, which spares the kernel the way through /proc.
func (k *kernelHandles) reopen(d *desc, flags int) (int, error) {
	var r rawHandle
	if key, err := r.unpack(d.key.h); err != nil || key != 0 {
		return reopen(d.fd, flags)
	}
	return r.open(k.mount, flags|unix.O_NONBLOCK|unix.O_NOCTTY)
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
	x, err := k.of(dir.fd, cName(name), 0)
	if err != nil && k.hides(dir, name) {
		err = vfs.ErrNoEnt // also if there are no handles on what is mounted there
	}
	return x, 0, err
}

// cName is name with a NUL behind it. Names in a listing's buffer have theirs already.
func cName(name []byte) *byte {
	if cap(name) == len(name) || name[:len(name)+1][len(name)] != 0 {
		name = append(name[:len(name):len(name)], 0)
	}
	return &name[:1][0]
}

// hides reports whether name in dir is a mount point that is not served.
func (k *kernelHandles) hides(dir *desc, name []byte) bool {
	var st stat
	name = bytes.TrimSuffix(name, emptyName[:])
	if st.statAt(dir.fd, string(name)) != nil || !k.h.foreign(&st) {
		return false
	}
	k.h.hide(string(name), &st)
	return true
}

func (k *kernelHandles) find(dir *desc, name string, fd int, _ *stat) (vfs.Handle, bool) {
	x, _, err := k.bind(dir, []byte(name), fd, nil)
	return x, err == nil
}

func (k *kernelHandles) expect(*desc, string, vfs.Handle) (mark, bool, error) {
	return 0, false, nil
}

func (k *kernelHandles) unbind(*desc, string, vfs.Handle, bool) {}
func (k *kernelHandles) touched(*desc) (mark, error)            { return 0, nil }
func (k *kernelHandles) lost(vfs.Handle)                        {}
func (k *kernelHandles) whileMoving(f func() error) error       { return f() }
func (k *kernelHandles) settle(mark) error                      { return nil }
func (k *kernelHandles) close() error                           { return closing(k.mount, nil) }
