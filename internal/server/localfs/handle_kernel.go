//go:build linux

package localfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
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

// handleKernel is the first byte of a handle of the kernel: of what it is made, in which
// version. That of a handle of the map is another.
const handleKernel = 0x01

// kernelHead is the size of what precedes the kernel's part on the root's file
// system, and keySize what more there is on others. There, handles of maxKernelHandle
// bytes are too large; overlayfs' still fit.
const (
	kernelHead = 6
	keySize    = 8
)

// packHandle makes a vfs.Handle of r, on the mount of that key.
func packHandle(r *linux.RawHandle, key uint64) (vfs.Handle, error) {
	var buf [kernelHead + linux.MaxHandle]byte
	b := append(buf[:0], handleKernel, 0)
	if key != 0 {
		b[1] = 1
		b = binary.BigEndian.AppendUint64(b, key)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(r.Type))
	if len(b)+int(r.Size) > len(buf) {
		return vfs.Handle{}, linux.ErrNoHandles
	}
	return vfs.MakeHandle(append(b, r.Bytes[:r.Size]...))
}

func unpackHandle(r *linux.RawHandle, x vfs.Handle) (key uint64, err error) {
	b := x.Bytes()
	if len(b) > kernelHead+linux.MaxHandle || len(b) < kernelHead || b[0] != handleKernel || b[1] > 1 {
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
	r.Type = int32(binary.BigEndian.Uint32(b))
	r.Size = uint32(copy(r.Bytes[:], b[kernelHead-2:]))
	return key, nil
}

// newKernelHandles tries whether the kernel's handles work here: containers
// often lack CAP_DAC_READ_SEARCH, and overlayfs often the feature.
func newKernelHandles(h *host) (*kernelHandles, error) {
	mount, err := linux.Reopen(h.rootFD, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, linux.Fail("open", err)
	}
	k := &kernelHandles{h: h, mount: mount}
	x, err := k.Root()
	if err != nil {
		return nil, linux.Close(mount, err)
	}
	var st linux.Stat
	fd, err := k.Open(x, &st)
	if err != nil {
		return nil, linux.Close(mount, fmt.Errorf("open_by_handle_at: %w", err))
	}
	return k, linux.Close(fd, nil)
}

func (k *kernelHandles) Root() (vfs.Handle, error) {
	return k.of(k.h.rootFD, &linux.EmptyName[0], unix.AT_EMPTY_PATH)
}

// of is the handle of what name is in fd. What is mounted there and not served is
// ErrNoEnt.
func (k *kernelHandles) of(fd int, name *byte, flags int) (vfs.Handle, error) {
	var r linux.RawHandle
	id, err := r.NameToHandle(fd, name, flags)
	if err != nil {
		return vfs.Handle{}, linux.Fail("name_to_handle_at", err)
	}
	key, ok := k.h.mountKey(id)
	if !ok && k.h.rootMount != 0 {
		return vfs.Handle{}, vfs.ErrNoEnt
	}
	return packHandle(&r, key)
}

// Open implements handler. The handle may come from a client, so it is confirmed.
func (k *kernelHandles) Open(x vfs.Handle, st *linux.Stat) (int, error) {
	fd, err := k.reach(x, st)
	if err != nil {
		return -1, err
	}
	if err := k.confirm(x, fd); err != nil {
		return -1, linux.Close(fd, err)
	}
	return fd, nil
}

// reach is Open for a handle that was made by of, and not by a client.
func (k *kernelHandles) reach(x vfs.Handle, st *linux.Stat) (int, error) {
	var r linux.RawHandle
	key, err := unpackHandle(&r, x)
	if err != nil {
		return -1, err
	}
	fd := -1
	switch {
	case key == 0:
		fd, err = r.Open(k.mount, unix.O_PATH)
	case k.h.mounts == nil:
		err = vfs.ErrStale // mounts are no longer crossed
	default:
		fd, err = k.h.mounts.Open(key, &r)
	}
	switch {
	case err == nil:
	case errors.Is(err, unix.ESTALE), errors.Is(err, unix.ENOENT):
		return -1, vfs.ErrStale
	case errors.Is(err, unix.EINVAL):
		return -1, vfs.ErrBadHandle
	default:
		return -1, linux.Fail("open_by_handle_at", err)
	}
	if err = linux.Fail("statx", st.Of(fd)); err == nil && st.Nlink == 0 {
		err = vfs.ErrStale
	}
	if err != nil {
		return -1, linux.Close(fd, err)
	}
	return fd, nil
}

// reopen is reopen of what is in the cache, so that its handle is confirmed. Where it
// can, it goes by the handle, which spares the kernel the way through /proc.
func (k *kernelHandles) reopen(d *fdcache.Desc, flags int) (int, error) {
	var r linux.RawHandle
	if key, err := unpackHandle(&r, d.H); err != nil || key != 0 {
		return linux.Reopen(d.FD, flags)
	}
	return r.Open(k.mount, flags|unix.O_NONBLOCK|unix.O_NOCTTY)
}

// confirm checks that x is the handle that the kernel gives fd, and not just one
// that it takes: ext4 takes a generation of zero, or none, for any.
func (k *kernelHandles) confirm(x vfs.Handle, fd int) error {
	y, err := k.of(fd, &linux.EmptyName[0], unix.AT_EMPTY_PATH)
	if err == nil && x != y {
		return vfs.ErrStale
	}
	return err
}

func (k *kernelHandles) Bind(dir *fdcache.Desc, name []byte, fd int, _ *linux.Stat) (vfs.Handle, handlemap.LSN, error) {
	if fd >= 0 {
		x, err := k.of(fd, &linux.EmptyName[0], unix.AT_EMPTY_PATH)
		return x, 0, err
	}
	x, err := k.of(dir.FD, linux.CName(name), 0)
	if err != nil && k.hides(dir, name) {
		err = vfs.ErrNoEnt // also if there are no handles on what is mounted there
	}
	return x, 0, err
}

// hides reports whether name in dir is a mount point that is not served.
func (k *kernelHandles) hides(dir *fdcache.Desc, name []byte) bool {
	var st linux.Stat
	name = bytes.TrimSuffix(name, linux.EmptyName[:])
	if st.At(dir.FD, string(name)) != nil || !k.h.foreign(&st) {
		return false
	}
	k.h.hide(string(name), &st)
	return true
}

func (k *kernelHandles) Find(dir *fdcache.Desc, name string, fd int, _ *linux.Stat) (vfs.Handle, bool) {
	x, _, err := k.Bind(dir, []byte(name), fd, nil)
	return x, err == nil
}

// Expect implements handler. Names do not matter to these handles, so nothing is noted.
func (k *kernelHandles) Expect(*fdcache.Desc, string, vfs.Handle) (handlemap.LSN, bool, error) {
	return 0, false, nil
}

func (k *kernelHandles) Unbind(*fdcache.Desc, string, vfs.Handle, bool) {}

func (k *kernelHandles) Touched(*fdcache.Desc) (handlemap.LSN, error) { return 0, nil }

func (k *kernelHandles) Lost(vfs.Handle) {}

func (k *kernelHandles) WhileMoving(f func() error) error { return f() }

func (k *kernelHandles) WaitStable(handlemap.LSN) error { return nil }

func (k *kernelHandles) Close() error { return linux.Close(k.mount, nil) }
