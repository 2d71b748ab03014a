package v3

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// StatusError is an error status that a procedure was answered with. It is the
// Status it wraps.
type StatusError struct {
	Proc   *xdr.Proc
	Status vfs.Status
}

func (e *StatusError) Error() string { return name(e.Proc) + ": " + e.Status.Error() }
func (e *StatusError) Unwrap() error { return e.Status }

// ReplyError is a reply that cannot be true.
type ReplyError struct {
	Proc *xdr.Proc
	Err  error // what is wrong
}

func (e *ReplyError) Error() string {
	return fmt.Sprintf("%s: the server's reply cannot be true: %v", name(e.Proc), e.Err)
}
func (e *ReplyError) Unwrap() error { return e.Err }

// name is what RFC 1813 calls the procedure in its text: "READ".
func name(p *xdr.Proc) string { return strings.TrimPrefix(p.Name, "NFSPROC3_") }

// untrue makes a ReplyError.
func untrue(p *xdr.Proc, format string, args ...any) error {
	return &ReplyError{Proc: p, Err: fmt.Errorf(format, args...)}
}

// Why a listing was given up.
var (
	errLoop  = errors.New("the listing has come back to a place where it was before")
	errEmpty = errors.New("pages without an entry, and no end")
)

// unknown marks the error of a change whose reply did not come.
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

// changes are the procedures with an effect.
func changes(p *xdr.Proc) bool {
	switch p {
	case nfs3.NFSPROC3_SETATTR, nfs3.NFSPROC3_WRITE, nfs3.NFSPROC3_CREATE, nfs3.NFSPROC3_MKDIR, nfs3.NFSPROC3_SYMLINK,
		nfs3.NFSPROC3_MKNOD, nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_RMDIR, nfs3.NFSPROC3_RENAME, nfs3.NFSPROC3_LINK:
		return true
	}
	return false
}

// lost makes err, with which the call of p ended, an error of the contract. Of
// procedures that are safe to repeat oncrpc does not tell whether any try was
// sent, so each of their errors but an answer leaves the outcome unknown.
func lost(p *xdr.Proc, err error) error {
	if errors.Is(err, oncrpc.ErrUnknownOutcome) {
		return &unknown{err}
	}
	if !p.Repeatable || !changes(p) {
		return err
	}
	if _, ok := errors.AsType[*oncrpc.AcceptError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*oncrpc.DeniedError](err); ok {
		return err
	}
	return &unknown{err}
}
