package nlm

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// UnavailableError says that a server has no lock manager, or none that can be reached. It Is
// syscall.ENOLCK and errors.ErrUnsupported.
type UnavailableError struct {
	Server string
	Err    error // why
}

// Error implements error.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("no locks: server %s has no lock manager (NLM version 4) that answers; ask its administrator for lockd, or say where it is with nlmport=: %v", e.Server, e.Err)
}

// Is adds syscall.ENOLCK.
func (e *UnavailableError) Is(target error) bool { return target == syscall.ENOLCK }

// Unwrap returns the causes.
func (e *UnavailableError) Unwrap() []error { return []error{vfs.ErrNotSupp, e.Err} }

// FullError says that there is no room for another lock, at the server or here. It Is
// syscall.ENOLCK and vfs.ErrBusy.
type FullError struct {
	What string // "4096 owners hold locks"
}

// Error implements error.
func (e *FullError) Error() string { return "no room for another lock: " + e.What }

// Is adds syscall.ENOLCK.
func (e *FullError) Is(target error) bool { return target == syscall.ENOLCK }

// Unwrap returns the status.
func (e *FullError) Unwrap() error { return vfs.ErrBusy }

// LostError says that a server has restarted, or may have, and that a lock could not be had back.
// Others may have changed the file meanwhile. It Is vfs.ErrIO.
type LostError struct {
	Off, Len uint64 // what was lost first; Len 0: to the end
	Why      string
}

// Error implements error.
func (e *LostError) Error() string {
	what := fmt.Sprintf("%d bytes from %d", e.Len, e.Off)
	switch {
	case e.Len == 0 && e.Off == 0:
		what = "the whole file"
	case e.Len == 0:
		what = fmt.Sprintf("all from byte %d", e.Off)
	}
	return fmt.Sprintf("the lock on %s is lost (%s), and others may have changed the file: open it anew", what, e.Why)
}

// Unwrap returns the status.
func (e *LostError) Unwrap() error { return vfs.ErrIO }

// errGrace is the answer of a server that takes only reclaims.
var errGrace = fmt.Errorf("the server has restarted, and grants only locks from before: %w", vfs.ErrBusy)

var errClosed = fmt.Errorf("the file system is closed: %w", vfs.ErrInval)

// cutError is the end of an operation whose outcome is not known. It is settled by itself.
type cutError struct{ err error }

func (e *cutError) Error() string        { return e.err.Error() + "; what the call has done is being settled" }
func (e *cutError) Unwrap() error        { return e.err }
func (e *cutError) Is(target error) bool { return target == vfs.ErrUnknownOutcome }

// missing reports whether a server has answered that it has no such program or procedure.
func missing(err error) bool {
	a, ok := errors.AsType[*oncrpc.AcceptError](err)
	return ok && (a.Stat == oncrpc.ProgUnavail || a.Stat == oncrpc.ProgMismatch || a.Stat == oncrpc.ProcUnavail)
}

// refused reports whether a call has certainly changed nothing: it has not left, or the server has
// answered that it does not do it.
func refused(err error) bool {
	if errors.Is(err, oncrpc.ErrNotSent) {
		return true
	}
	if _, ok := errors.AsType[*oncrpc.DeniedError](err); ok {
		return true
	}
	a, ok := errors.AsType[*oncrpc.AcceptError](err)
	return ok && a.Stat != oncrpc.SystemErr
}
