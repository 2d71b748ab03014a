package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Status is an error of the contract. Its number is the one that NFSv3 (RFC
// 1813, section 2.6) and NFSv4 (RFC 8881, section 15) give it on the wire.
//
// errors.Is finds a Status under the syscall.Errno of the same meaning, and
// under fs.ErrNotExist, fs.ErrExist, fs.ErrPermission and fs.ErrInvalid.
type Status uint32

// The statuses.
const (
	ErrPerm        Status = 1  // the caller is not the owner
	ErrNoEnt       Status = 2  // no such name
	ErrIO          Status = 5  // the disk failed
	ErrNXIO        Status = 6  // no such device
	ErrAccess      Status = 13 // permission denied
	ErrExist       Status = 17 // the name exists
	ErrXDev        Status = 18 // not within one file system
	ErrNoDev       Status = 19 // the device cannot do that
	ErrNotDir      Status = 20 // not a directory
	ErrIsDir       Status = 21 // a directory
	ErrInval       Status = 22 // an argument makes no sense
	ErrFBig        Status = 27 // larger than files can be
	ErrNoSpace     Status = 28 // the disk is full
	ErrROFS        Status = 30 // the file system, or the export, is read-only
	ErrMLink       Status = 31 // too many hard links
	ErrNameTooLong Status = 63
	ErrNotEmpty    Status = 66 // the directory is not empty
	ErrQuota       Status = 69 // the caller's quota is used up
	ErrStale       Status = 70 // the object is gone
	ErrRemote      Status = 71 // too many levels of remote in path

	ErrBadHandle   Status = 10001 // never was a handle of this file system
	ErrNotSync     Status = 10002 // SetAttr's guard did not match
	ErrBadCookie   Status = 10003 // the place in a listing is no longer known
	ErrNotSupp     Status = 10004 // the file system does not do that
	ErrTooSmall    Status = 10005 // not one entry fits the page asked for
	ErrServerFault Status = 10006 // an error that has no number
	ErrBadType     Status = 10007 // objects of that type cannot be made
	ErrBusy        Status = 10008 // not now, try again: JUKEBOX, DELAY, a full queue
	ErrLocked      Status = 10012 // another owner's lock stands in the way (NFSv4's number; NFSv3 has none)
	ErrNoXattr     Status = 10095 // no extended attribute of that name (NFSv4's number: RFC 8276)
	ErrXattr2Big   Status = 10096 // an extended attribute, or the list of them, is too large (likewise)
)

// ErrUnknownOutcome marks a mutation that was cut off in flight: it may or may
// not have happened, and only a look at the result can tell.
var ErrUnknownOutcome = errors.New("the outcome is unknown")

// ErrNoAnswer marks the error of a call to which the other side has not answered within
// the caller's patience. Nothing is known of the object.
var ErrNoAnswer = errors.New("no answer")

type statusText struct {
	status Status
	errno  syscall.Errno // of the same meaning on this system; 0: none
	name   string        // on the wire, without NFS3ERR_ or NFS4ERR_
	text   string
}

// statusTexts is ordered by number.
var statusTexts = [...]statusText{
	{ErrPerm, syscall.EPERM, "PERM", "not the owner"},
	{ErrNoEnt, syscall.ENOENT, "NOENT", "no such file or directory"},
	{ErrIO, syscall.EIO, "IO", "input/output error"},
	{ErrNXIO, syscall.ENXIO, "NXIO", "no such device or address"},
	{ErrAccess, syscall.EACCES, "ACCES", "permission denied"},
	{ErrExist, syscall.EEXIST, "EXIST", "file exists"},
	{ErrXDev, syscall.EXDEV, "XDEV", "crosses into another file system"},
	{ErrNoDev, syscall.ENODEV, "NODEV", "no such device"},
	{ErrNotDir, syscall.ENOTDIR, "NOTDIR", "not a directory"},
	{ErrIsDir, syscall.EISDIR, "ISDIR", "is a directory"},
	{ErrInval, syscall.EINVAL, "INVAL", "invalid argument"},
	{ErrFBig, syscall.EFBIG, "FBIG", "file too large"},
	{ErrNoSpace, syscall.ENOSPC, "NOSPC", "no space left on device"},
	{ErrROFS, syscall.EROFS, "ROFS", "read-only file system"},
	{ErrMLink, syscall.EMLINK, "MLINK", "too many hard links"},
	{ErrNameTooLong, syscall.ENAMETOOLONG, "NAMETOOLONG", "file name too long"},
	{ErrNotEmpty, syscall.ENOTEMPTY, "NOTEMPTY", "directory not empty"},
	{ErrQuota, syscall.EDQUOT, "DQUOT", "quota exceeded"},
	{ErrStale, syscall.ESTALE, "STALE", "stale file handle"},
	{ErrRemote, syscall.EREMOTE, "REMOTE", "too many levels of remote in path"},
	{ErrBadHandle, syscall.EBADF, "BADHANDLE", "not a file handle of this file system"},
	{ErrNotSync, 0, "NOT_SYNC", "changed meanwhile"},
	{ErrBadCookie, 0, "BAD_COOKIE", "place in the directory no longer known"},
	{ErrNotSupp, syscall.ENOTSUP, "NOTSUPP", "operation not supported"},
	{ErrTooSmall, 0, "TOOSMALL", "buffer too small"},
	{ErrServerFault, syscall.EIO, "SERVERFAULT", "server fault"},
	{ErrBadType, 0, "BADTYPE", "type not supported"},
	{ErrBusy, syscall.EAGAIN, "JUKEBOX", "busy, try again later"},
	{ErrLocked, syscall.EAGAIN, "LOCKED", "locked by another owner"},
	{ErrNoXattr, 0, "NOXATTR", "no such extended attribute"},
	{ErrXattr2Big, 0, "XATTR2BIG", "extended attribute too large"},
}

func (s Status) row() *statusText {
	for i := range statusTexts {
		if statusTexts[i].status == s {
			return &statusTexts[i]
		}
	}
	return nil
}

// Error says what happened, in the words of strerror(3).
func (s Status) Error() string {
	if r := s.row(); r != nil {
		return r.text
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// Name is the status as RFC 1813 spells it, without the prefix: "NOENT".
func (s Status) Name() string {
	if r := s.row(); r != nil {
		return r.name
	}
	return fmt.Sprintf("%d", uint32(s))
}

// Errno is the system error of the same meaning, or 0 if there is none.
func (s Status) Errno() syscall.Errno {
	if r := s.row(); r != nil {
		return r.errno
	}
	return 0
}

// Is makes errors.Is find a Status by its meaning elsewhere.
func (s Status) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return s == ErrNoEnt
	case fs.ErrExist:
		return s == ErrExist || s == ErrNotEmpty
	case fs.ErrPermission:
		return s == ErrAccess || s == ErrPerm
	case fs.ErrInvalid:
		return s == ErrInval
	case errors.ErrUnsupported:
		return s == ErrNotSupp
	}
	e, ok := target.(syscall.Errno)
	if !ok || e == 0 {
		return false
	}
	// ENOTSUP and EOPNOTSUPP are one number in some systems and two in others.
	return e == s.Errno() || s == ErrNotSupp && e == syscall.EOPNOTSUPP
}

// StatusOf finds the Status that err is or wraps. An error of the operating
// system has the Status of its errno. What has none is [ErrServerFault], and
// ok is false: the caller shall report it. A nil err is 0, true.
func StatusOf(err error) (s Status, ok bool) {
	if err == nil {
		return 0, true
	}
	if s, ok := errors.AsType[Status](err); ok {
		return s, true
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		if s, ok := FromErrno(e); ok {
			return s, true
		}
		// Windows has numbers of its own, which package syscall knows to be one
		// of those below.
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoEnt, true
	case errors.Is(err, fs.ErrExist):
		return ErrExist, true
	case errors.Is(err, fs.ErrPermission):
		return ErrAccess, true
	case errors.Is(err, fs.ErrInvalid):
		return ErrInval, true
	case errors.Is(err, errors.ErrUnsupported):
		return ErrNotSupp, true
	}
	return ErrServerFault, false
}

// FromErrno is the Status that means the same as e. An errno that has none is
// [ErrServerFault], and ok is false.
func FromErrno(e syscall.Errno) (s Status, ok bool) {
	switch e {
	case 0:
		return 0, true
	case syscall.EAGAIN, syscall.EBUSY, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM:
		return ErrBusy, true
	case syscall.EIO:
		return ErrIO, true
	case syscall.ELOOP:
		// O_NOFOLLOW met a symbolic link where something else was asked for.
		return ErrInval, true
	case syscall.EOPNOTSUPP, syscall.ENOSYS:
		return ErrNotSupp, true
	case syscall.ETXTBSY:
		return ErrAccess, true
	}
	for i := range statusTexts {
		if statusTexts[i].errno == e {
			return statusTexts[i].status, true
		}
	}
	return ErrServerFault, false
}
