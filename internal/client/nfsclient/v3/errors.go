package v3

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// StatusError is an error status of a procedure. It wraps the vfs.Status.
type StatusError struct {
	Proc   *xdr.Proc
	Status vfs.Status
	// Resent says that the call changes something and was sent more than once: the status is
	// that of the last execution, and may come from an earlier one. Then the error Is
	// vfs.ErrUnknownOutcome.
	Resent bool
}

// Error implements error.
func (e *StatusError) Error() string {
	text := name(e.Proc) + ": " + e.Status.Error()
	if e.Resent {
		text += "; the call was sent more than once, and may have been executed before"
	}
	return text
}

// Unwrap returns the cause.
func (e *StatusError) Unwrap() error { return e.Status }

// Is adds vfs.ErrUnknownOutcome after a repetition.
func (e *StatusError) Is(target error) bool { return e.Resent && target == vfs.ErrUnknownOutcome }

// settled reports whether a status depends on the call alone, and not on the state of the server's
// disk: then all executions have the same result.
func settled(s nfs3.Nfsstat3) bool {
	switch s {
	case nfs3.NFS3ERR_INVAL, nfs3.NFS3ERR_NAMETOOLONG, nfs3.NFS3ERR_BADHANDLE, nfs3.NFS3ERR_NOTSUPP, nfs3.NFS3ERR_BADTYPE:
		return true
	}
	return false
}

// ReplyError is a reply that is inconsistent or impossible.
type ReplyError struct {
	Proc *xdr.Proc
	Err  error // what is wrong
}

// Error implements error.
func (e *ReplyError) Error() string {
	return fmt.Sprintf("%s: the server's reply cannot be true: %v", name(e.Proc), e.Err)
}

// Unwrap returns the cause.
func (e *ReplyError) Unwrap() error { return e.Err }

func name(p *xdr.Proc) string {
	_, name, _ := strings.Cut(p.Name, "_")
	return name
}

func untrue(p *xdr.Proc, format string, args ...any) error {
	return &ReplyError{Proc: p, Err: fmt.Errorf(format, args...)}
}

// BusyError says that a call's context ended while the server answered NFS3ERR_JUKEBOX.
type BusyError struct {
	Proc  *xdr.Proc
	Tries int   // all answered NFS3ERR_JUKEBOX
	Err   error // the context's
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%s: the server is busy (NFS3ERR_JUKEBOX, %d times so far): %v", name(e.Proc), e.Tries, e.Err)
}

// Unwrap returns the cause.
func (e *BusyError) Unwrap() error { return e.Err }

// Why a listing was given up.
var (
	errLoop  = errors.New("the listing has come back to a place where it was before")
	errEmpty = errors.New("pages without an entry, and no end")
)

// unknown marks the error of a change without a reply.
type unknown struct{ err error }

func (e *unknown) Error() string {
	if errors.Is(e.err, oncrpc.ErrUnknownOutcome) {
		return e.err.Error() // which says so
	}
	return e.err.Error() + "; the change may or may not have been made"
}
func (e *unknown) Unwrap() error { return e.err }
func (e *unknown) Is(target error) bool {
	return target == vfs.ErrUnknownOutcome
}

func changes(p *xdr.Proc) bool {
	switch p {
	case nfs3.NFSPROC3_SETATTR, nfs3.NFSPROC3_WRITE, nfs3.NFSPROC3_COMMIT, nfs3.NFSPROC3_CREATE, nfs3.NFSPROC3_MKDIR, nfs3.NFSPROC3_SYMLINK,
		nfs3.NFSPROC3_MKNOD, nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_RMDIR, nfs3.NFSPROC3_RENAME, nfs3.NFSPROC3_LINK,
		nfsacl3.ACLPROC3_SETACL:
		return true
	}
	return false
}

// uncertain marks err, which ended a call without a last answer, if the call may have been executed.
// resent says that it was sent more than once.
func uncertain(p *xdr.Proc, resent bool, err error) error {
	if resent && changes(p) {
		return &unknown{err}
	}
	return err
}

// lost maps err, which ended a try of p, to an error of the contract. resent says that an earlier try
// may have been executed.
func (f *FS) lost(p *xdr.Proc, resent bool, err error) error {
	err = withStatus(f.patience(err))
	switch {
	case errors.Is(err, oncrpc.ErrUnknownOutcome):
		return &unknown{err}
	case !changes(p):
		return err
	case resent:
		return &unknown{err}
	case errors.Is(err, oncrpc.ErrNotSent), refused(err):
		return err
	}
	return &unknown{err}
}

// refused reports whether the server has answered that it did not execute the call. SYSTEM_ERR does
// not say so.
func refused(err error) bool {
	if a, ok := errors.AsType[*oncrpc.AcceptError](err); ok {
		return a.Stat != oncrpc.SystemErr
	}
	_, ok := errors.AsType[*oncrpc.DeniedError](err)
	return ok
}

// answered is an RPC-level error of the server with the matching Status. It is an answer, so the call
// is not tried again.
type answered struct {
	status vfs.Status
	err    error
}

func (e *answered) Error() string   { return e.err.Error() }
func (e *answered) Unwrap() []error { return []error{e.status, e.err} }

func withStatus(err error) error {
	if a, ok := errors.AsType[*oncrpc.AcceptError](err); ok {
		return &answered{acceptStatus(a.Stat), err}
	}
	if d, ok := errors.AsType[*oncrpc.DeniedError](err); ok {
		if d.Stat == oncrpc.AuthRejected {
			return &answered{vfs.ErrAccess, err}
		}
		return &answered{vfs.ErrServerFault, err}
	}
	return err
}

// acceptStatus is the Status for an accept_stat.
func acceptStatus(s oncrpc.AcceptStat) vfs.Status {
	switch s {
	case oncrpc.ProgUnavail, oncrpc.ProgMismatch, oncrpc.ProcUnavail:
		return vfs.ErrNotSupp
	case oncrpc.GarbageArgs:
		return vfs.ErrInval
	}
	return vfs.ErrServerFault
}

// PatienceError says that a server has not answered for as long as a soft mount waits. It has the
// cause, and the errno with which such a call fails according to nfs(5).
type PatienceError struct {
	Errno syscall.Errno // EIO, or ETIMEDOUT if Options.SoftErr
	Err   error
}

// Error implements error.
func (e *PatienceError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PatienceError) Unwrap() []error { return []error{e.Errno, e.Err} }

// Is makes it vfs.ErrNoAnswer.
func (e *PatienceError) Is(target error) bool { return target == vfs.ErrNoAnswer }

// patienceEnded reports whether a call was given up for want of an answer.
func patienceEnded(err error) bool {
	return errors.Is(err, oncrpc.ErrTimeout) || errors.Is(err, oncrpc.ErrNoConnection)
}

// patience makes a PatienceError of an error that says that the patience has ended.
func (f *FS) patience(err error) error {
	if !patienceEnded(err) {
		return err
	}
	errno := syscall.EIO
	if f.opt.SoftErr {
		errno = syscall.ETIMEDOUT
	}
	return &PatienceError{Errno: errno, Err: err}
}
