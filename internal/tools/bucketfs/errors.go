package bucketfs

import (
	"context"
	"errors"
	"io/fs"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// statusError is an error of a bucket with its meaning to file systems.
type statusError struct {
	error
	is error
}

func (e *statusError) Unwrap() []error { return []error{e.error, e.is} }

// told is an error of a request, as package vfs has it. absent is what it means that the object is not there.
func told(err error, absent vfs.Status) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, already := errors.AsType[vfs.Status](err); already {
		return err
	}
	for _, c := range [...]struct{ kind, is error }{
		{object.ErrUnknownOutcome, vfs.ErrUnknownOutcome},
		{object.ErrNotExist, absent},
		{object.ErrBusy, vfs.ErrBusy},
		{object.ErrNoSpace, vfs.ErrNoSpace},
		{object.ErrTooLarge, vfs.ErrFBig},
		{object.ErrForeign, vfs.ErrServerFault},
		{object.ErrCorrupted, vfs.ErrIO},
		{fs.ErrPermission, vfs.ErrAccess},
	} {
		if errors.Is(err, c.kind) {
			return &statusError{err, c.is}
		}
	}
	if _, ok := errors.AsType[*bucket.Refusal](err); ok {
		return &statusError{err, vfs.ErrServerFault}
	}
	return &statusError{err, vfs.ErrNoAnswer}
}
