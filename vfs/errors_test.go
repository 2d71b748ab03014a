package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

func TestStatusMeanings(t *testing.T) {
	for _, c := range []struct {
		status Status
		is     []error
		name   string
	}{
		{ErrPerm, []error{fs.ErrPermission, syscall.EPERM}, "PERM"},
		{ErrNoEnt, []error{fs.ErrNotExist, syscall.ENOENT}, "NOENT"},
		{ErrIO, []error{syscall.EIO}, "IO"},
		{ErrNXIO, []error{syscall.ENXIO}, "NXIO"},
		{ErrAccess, []error{fs.ErrPermission, syscall.EACCES}, "ACCES"},
		{ErrExist, []error{fs.ErrExist, syscall.EEXIST}, "EXIST"},
		{ErrXDev, []error{syscall.EXDEV}, "XDEV"},
		{ErrNoDev, []error{syscall.ENODEV}, "NODEV"},
		{ErrNotDir, []error{syscall.ENOTDIR}, "NOTDIR"},
		{ErrIsDir, []error{syscall.EISDIR}, "ISDIR"},
		{ErrInval, []error{fs.ErrInvalid, syscall.EINVAL}, "INVAL"},
		{ErrFBig, []error{syscall.EFBIG}, "FBIG"},
		{ErrNoSpace, []error{syscall.ENOSPC}, "NOSPC"},
		{ErrROFS, []error{syscall.EROFS}, "ROFS"},
		{ErrMLink, []error{syscall.EMLINK}, "MLINK"},
		{ErrNameTooLong, []error{syscall.ENAMETOOLONG}, "NAMETOOLONG"},
		{ErrNotEmpty, []error{fs.ErrExist, syscall.ENOTEMPTY}, "NOTEMPTY"},
		{ErrQuota, []error{syscall.EDQUOT}, "DQUOT"},
		{ErrStale, []error{syscall.ESTALE}, "STALE"},
		{ErrRemote, []error{syscall.EREMOTE}, "REMOTE"},
		{ErrBadHandle, []error{syscall.EBADF}, "BADHANDLE"},
		{ErrNotSync, nil, "NOT_SYNC"},
		{ErrBadCookie, nil, "BAD_COOKIE"},
		{ErrNotSupp, []error{errors.ErrUnsupported, syscall.ENOTSUP, syscall.EOPNOTSUPP}, "NOTSUPP"},
		{ErrTooSmall, nil, "TOOSMALL"},
		{ErrServerFault, []error{syscall.EIO}, "SERVERFAULT"},
		{ErrBadType, nil, "BADTYPE"},
		{ErrBusy, []error{syscall.EAGAIN}, "JUKEBOX"},
		{ErrLocked, []error{syscall.EAGAIN}, "LOCKED"},
		{ErrNoXattr, nil, "NOXATTR"},
		{ErrXattr2Big, nil, "XATTR2BIG"},
	} {
		wrapped := &fs.PathError{Op: "test", Path: "p", Err: fmt.Errorf("deeper: %w", c.status)}
		for _, target := range append(c.is, c.status) {
			if !errors.Is(wrapped, target) {
				t.Errorf("%s is not %v", c.name, target)
			}
		}
		for _, other := range []error{fs.ErrClosed, syscall.EPIPE, syscall.Errno(0), ErrUnknownOutcome} {
			if errors.Is(wrapped, other) {
				t.Errorf("%s is %v", c.name, other)
			}
		}
		if got, ok := StatusOf(wrapped); got != c.status || !ok {
			t.Errorf("StatusOf(%s): %v, %v", c.name, got, ok)
		}
		if c.status.Name() != c.name || c.status.Error() == "" {
			t.Errorf("%d is called %q, says %q", c.status, c.status.Name(), c.status.Error())
		}
		if e := c.status.Errno(); e != 0 && c.status != ErrServerFault && c.status != ErrLocked {
			if back, ok := FromErrno(e); back != c.status || !ok {
				t.Errorf("%s is errno %v, which is %v", c.name, e, back)
			}
		}
	}
	if len(statusTexts) != 31 {
		t.Errorf("%d statuses, 31 in this table", len(statusTexts))
	}
}

func TestStatusOfOthers(t *testing.T) {
	_, notThere := os.Open("/does/not/exist")
	for _, c := range []struct {
		err  error
		want Status
		ok   bool
	}{
		{nil, 0, true},
		{notThere, ErrNoEnt, true},
		{fs.ErrExist, ErrExist, true},
		{fs.ErrPermission, ErrAccess, true},
		{fs.ErrInvalid, ErrInval, true},
		{errors.ErrUnsupported, ErrNotSupp, true},
		{syscall.ELOOP, ErrInval, true},
		{syscall.EMFILE, ErrBusy, true},
		{syscall.ENOSYS, ErrNotSupp, true},
		{syscall.ETXTBSY, ErrAccess, true},
		{syscall.EPIPE, ErrServerFault, false},
		{errors.New("something else"), ErrServerFault, false},
		{errors.Join(syscall.EPIPE, fs.ErrNotExist), ErrNoEnt, true}, // a number of its own, as Windows has them
	} {
		if got, ok := StatusOf(c.err); got != c.want || ok != c.ok {
			t.Errorf("StatusOf(%v): %v, %v; want %v, %v", c.err, got, ok, c.want, c.ok)
		}
	}
	if s := Status(4711); s.Name() != "4711" || s.Error() != "status 4711" || s.Errno() != 0 {
		t.Errorf("an unknown status: %s, %s", s.Name(), s.Error())
	}
}
