package client

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestIofsErrors answers a program with every status of RFC 1813, section 2.6, and
// sees what errors.Is says of it.
func TestIofsErrors(t *testing.T) {
	var answer error
	mem := memfs.New(memfs.Options{Mode: 0o777, Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "lookup" {
			return answer
		}
		return nil
	}})
	f, _ := mounted(t, mem, "")
	all := []error{
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed, errors.ErrUnsupported, vfs.ErrUnknownOutcome,
		syscall.EPERM, syscall.ENOENT, syscall.EIO, syscall.ENXIO, syscall.EACCES, syscall.EEXIST, syscall.EXDEV, syscall.ENODEV,
		syscall.ENOTDIR, syscall.EISDIR, syscall.EINVAL, syscall.EFBIG, syscall.ENOSPC, syscall.EROFS, syscall.EMLINK,
		syscall.ENAMETOOLONG, syscall.ENOTEMPTY, syscall.EDQUOT, syscall.ESTALE, syscall.EREMOTE, syscall.EBADF, syscall.ENOTSUP,
		syscall.ELOOP,
	}
	for _, c := range []struct {
		status nfs3.Nfsstat3
		want   vfs.Status
		is     []error // of all, and no other
	}{
		{nfs3.NFS3ERR_PERM, vfs.ErrPerm, []error{fs.ErrPermission, syscall.EPERM}},
		{nfs3.NFS3ERR_NOENT, vfs.ErrNoEnt, []error{fs.ErrNotExist, syscall.ENOENT}},
		{nfs3.NFS3ERR_IO, vfs.ErrIO, []error{syscall.EIO}},
		{nfs3.NFS3ERR_NXIO, vfs.ErrNXIO, []error{syscall.ENXIO}},
		{nfs3.NFS3ERR_ACCES, vfs.ErrAccess, []error{fs.ErrPermission, syscall.EACCES}},
		{nfs3.NFS3ERR_EXIST, vfs.ErrExist, []error{fs.ErrExist, syscall.EEXIST}},
		{nfs3.NFS3ERR_XDEV, vfs.ErrXDev, []error{syscall.EXDEV}},
		{nfs3.NFS3ERR_NODEV, vfs.ErrNoDev, []error{syscall.ENODEV}},
		{nfs3.NFS3ERR_NOTDIR, vfs.ErrNotDir, []error{syscall.ENOTDIR}},
		{nfs3.NFS3ERR_ISDIR, vfs.ErrIsDir, []error{syscall.EISDIR}},
		{nfs3.NFS3ERR_INVAL, vfs.ErrInval, []error{fs.ErrInvalid, syscall.EINVAL}},
		{nfs3.NFS3ERR_FBIG, vfs.ErrFBig, []error{syscall.EFBIG}},
		{nfs3.NFS3ERR_NOSPC, vfs.ErrNoSpace, []error{syscall.ENOSPC}},
		{nfs3.NFS3ERR_ROFS, vfs.ErrROFS, []error{syscall.EROFS}},
		{nfs3.NFS3ERR_MLINK, vfs.ErrMLink, []error{syscall.EMLINK}},
		{nfs3.NFS3ERR_NAMETOOLONG, vfs.ErrNameTooLong, []error{syscall.ENAMETOOLONG}},
		{nfs3.NFS3ERR_NOTEMPTY, vfs.ErrNotEmpty, []error{fs.ErrExist, syscall.ENOTEMPTY}},
		{nfs3.NFS3ERR_DQUOT, vfs.ErrQuota, []error{syscall.EDQUOT}},
		{nfs3.NFS3ERR_STALE, vfs.ErrStale, []error{syscall.ESTALE}},
		{nfs3.NFS3ERR_REMOTE, vfs.ErrRemote, []error{syscall.EREMOTE}},
		{nfs3.NFS3ERR_BADHANDLE, vfs.ErrBadHandle, []error{syscall.EBADF}},
		{nfs3.NFS3ERR_NOT_SYNC, vfs.ErrNotSync, nil},
		{nfs3.NFS3ERR_BAD_COOKIE, vfs.ErrBadCookie, nil},
		{nfs3.NFS3ERR_NOTSUPP, vfs.ErrNotSupp, []error{errors.ErrUnsupported, syscall.ENOTSUP}},
		{nfs3.NFS3ERR_TOOSMALL, vfs.ErrTooSmall, nil},
		{nfs3.NFS3ERR_SERVERFAULT, vfs.ErrServerFault, []error{syscall.EIO}},
		{nfs3.NFS3ERR_BADTYPE, vfs.ErrBadType, nil},
		// JUKEBOX is waited for, and has its test where that is done.
	} {
		answer = c.want
		_, err := f.Stat("name")
		pe, ok := errors.AsType[*fs.PathError](err)
		if !ok || pe.Op != "stat" || pe.Path != "name" {
			t.Fatalf("%v: %v names no path", c.status, err)
		}
		if s, ok := vfs.StatusOf(err); !ok || s != c.want || uint32(s) != uint32(c.status) || !errors.Is(err, c.want) {
			t.Errorf("%v: %v is %v", c.status, err, s)
		}
		for _, target := range all {
			want := false
			for _, is := range c.is {
				want = want || is == target //nolint:errorlint // they are sentinels
			}
			if got := errors.Is(err, target); got != want {
				t.Errorf("%v: errors.Is(%q, %q) is %t", c.status, err, target, got)
			}
		}
	}
}
