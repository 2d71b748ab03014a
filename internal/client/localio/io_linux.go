package localio

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// supported says whether this system can use descriptors of a local server.
const supported = true

// openLimit is how many descriptors the process may have.
func openLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, math.MaxInt32))
}

func closeFD(fd int) error { return unix.Close(fd) }

// checkFD returns an error unless fd is what was asked for: a regular file, open for the wanted access,
// and without O_APPEND, with which pwrite(2) ignores the offset.
func checkFD(fd int, access vfs.Share) error {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return fmt.Errorf("fcntl: %w", err)
	}
	var st stat
	if err := st.statFD(fd); err != nil {
		return err
	}
	mode := flags & unix.O_ACCMODE
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("no regular file, but mode %o", st.Mode)
	case flags&(unix.O_PATH|unix.O_APPEND) != 0:
		return fmt.Errorf("open with flags %#x", flags)
	case access == vfs.ShareRead && mode == unix.O_WRONLY, access == vfs.ShareWrite && mode == unix.O_RDONLY:
		return fmt.Errorf("open with mode %d", mode)
	}
	return nil
}

// preadNowait reads what is in memory, without a thread (preadv2(2), RWF_NOWAIT). p must not be empty.
func preadNowait(fd int, p []byte, off uint64) (int, syscall.Errno) {
	v := unix.Iovec{Base: &p[0]}
	v.SetLen(len(p))
	n, _, errno := unix.RawSyscall6(unix.SYS_PREADV2, uintptr(fd), uintptr(unsafe.Pointer(&v)), 1,
		uintptr(off), uintptr(off>>32), unix.RWF_NOWAIT)
	runtime.KeepAlive(p)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// cannotNowait reports whether errno says that this file system, or this kernel (before Linux
// 4.14), does not support RWF_NOWAIT.
func cannotNowait(errno syscall.Errno) bool {
	return errno == unix.EOPNOTSUPP || errno == unix.ENOSYS || errno == unix.EINVAL
}

func pread(fd int, p []byte, off uint64) (n int, err error) {
	err = uninterrupted(func() error {
		n, err = unix.Pread(fd, p, int64(off))
		return err
	})
	return max(n, 0), err
}

func pwrite(fd int, p []byte, off uint64) (n int, err error) {
	err = uninterrupted(func() error {
		n, err = unix.Pwrite(fd, p, int64(off))
		return err
	})
	return max(n, 0), err
}

// syncFD is fsync(2) if full, otherwise fdatasync(2), which may leave out times.
func syncFD(fd int, full bool) error {
	call := unix.Fdatasync
	if full {
		call = unix.Fsync
	}
	return uninterrupted(func() error { return call(fd) })
}

func uninterrupted(call func() error) (err error) {
	for range maxInterrupts {
		if err = call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return err
}

// decided reports whether the error of a local read or write is the answer. After any other
// error the server decides: the error may come from our own limits (EFBIG, by RLIMIT_FSIZE), or
// from a wrong use of the descriptor.
func decided(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// fail maps an error of the kernel to one of the contract.
func fail(op string, err error) error {
	e, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err
	}
	s, known := vfs.FromErrno(e)
	if !known || s == vfs.ErrIO {
		return fmt.Errorf("localio: %s: %w: %s", op, s, e.Error())
	}
	return s
}

// statMask asks statx(2) for everything that an NFSv3 server reports.
const statMask = unix.STATX_BASIC_STATS

// stat is statx's result for an open file.
type stat struct{ unix.Statx_t }

// emptyName is the name that, with AT_EMPTY_PATH, stands for the descriptor.
var emptyName = [1]byte{}

// statFD fills st, without the copy of the name that unix.Statx makes.
func (st *stat) statFD(fd int) error {
	_, _, e := unix.Syscall6(unix.SYS_STATX, uintptr(fd), uintptr(unsafe.Pointer(&emptyName[0])),
		unix.AT_EMPTY_PATH|unix.AT_STATX_SYNC_AS_STAT, statMask, uintptr(unsafe.Pointer(&st.Statx_t)), 0)
	if e != 0 {
		return e
	}
	return nil
}

// timeOf is t clamped to NFSv3's times, whose seconds are unsigned and have 32 bits (RFC 1813, section
// 2.5): attributes by descriptor are compared with those that came over the network.
func timeOf(t unix.StatxTimestamp) time.Time {
	switch {
	case t.Sec < 0:
		return time.Unix(0, 0)
	case t.Sec > math.MaxUint32:
		return time.Unix(math.MaxUint32, 999999999)
	}
	return time.Unix(t.Sec, int64(t.Nsec))
}

// attr makes of st the attributes that GETATTR would return. Change is derived from the ctime.
func (st *stat) attr(id *identity, a *vfs.Attr) {
	*a = vfs.Attr{
		Valid: vfs.MaskV3,
		Type:  vfs.TypeReg, Mode: uint32(st.Mode) & 07777, Nlink: st.Nlink, UID: st.Uid, GID: st.Gid,
		Size: st.Size, Used: st.Blocks * 512, FileID: id.fileID,
		Change: uint64(st.Ctime.Sec)*1e9 + uint64(st.Ctime.Nsec),
		FSID:   id.fsid,
		Atime:  timeOf(st.Atime), Mtime: timeOf(st.Mtime), Ctime: timeOf(st.Ctime),
	}
}
