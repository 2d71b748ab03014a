package fileapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/server/object"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// codes are the protocol's codes of statuses; clients get the status itself, too, in an
// ErrorDetail. A status that is not here is internal: the server's fault.
var codes = map[vfs.Status]connect.Code{
	vfs.ErrPerm:        connect.CodePermissionDenied,
	vfs.ErrNoEnt:       connect.CodeNotFound,
	vfs.ErrNXIO:        connect.CodeFailedPrecondition,
	vfs.ErrAccess:      connect.CodePermissionDenied,
	vfs.ErrExist:       connect.CodeAlreadyExists,
	vfs.ErrXDev:        connect.CodeFailedPrecondition,
	vfs.ErrNoDev:       connect.CodeFailedPrecondition,
	vfs.ErrNotDir:      connect.CodeFailedPrecondition,
	vfs.ErrIsDir:       connect.CodeFailedPrecondition,
	vfs.ErrInval:       connect.CodeInvalidArgument,
	vfs.ErrFBig:        connect.CodeOutOfRange,
	vfs.ErrNoSpace:     connect.CodeResourceExhausted,
	vfs.ErrROFS:        connect.CodePermissionDenied,
	vfs.ErrMLink:       connect.CodeResourceExhausted,
	vfs.ErrNameTooLong: connect.CodeInvalidArgument,
	vfs.ErrNotEmpty:    connect.CodeFailedPrecondition,
	vfs.ErrQuota:       connect.CodeResourceExhausted,
	vfs.ErrStale:       connect.CodeNotFound,
	vfs.ErrNotSync:     connect.CodeAborted,
	vfs.ErrBadCookie:   connect.CodeAborted,
	vfs.ErrNotSupp:     connect.CodeUnimplemented,
	vfs.ErrBadType:     connect.CodeUnimplemented,
	vfs.ErrBusy:        connect.CodeUnavailable,
	vfs.ErrLocked:      connect.CodeAborted,
}

func refuse(code connect.Code, format string, a ...any) error {
	return connect.NewError(code, fmt.Errorf(format, a...))
}

// wire is err as the client gets it. Details that are only for the operator go to
// Options.Report; the client learns only that there is an error.
func (s *Server) wire(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*connect.Error](err); ok {
		return e
	}
	unknown := errors.Is(err, vfs.ErrUnknownOutcome) || errors.Is(err, object.ErrUnknownOutcome)
	switch {
	case unknown: // before what it was cut off by
		return detailed(connect.CodeUnknown, errors.New("the change was cut off: it may have happened, or not"), vfs.ErrServerFault, true)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, context.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, context.Canceled)
	}
	if e := objectError(err); e != nil {
		return e
	}
	status, ok := vfs.StatusOf(err)
	code, known := codes[status]
	if !ok || !known {
		s.o.Report(fmt.Errorf("file API: %w", err))
		if !ok {
			status = vfs.ErrServerFault
		}
		return detailed(connect.CodeInternal, status, status, false)
	}
	return detailed(code, err, status, false)
}

// detailed is an error with the status that a file system gave, if one did.
func detailed(code connect.Code, err error, status vfs.Status, unknown bool) error {
	e := connect.NewError(code, err)
	if status == 0 {
		return e
	}
	// The detail is a message of ours: to put it into an Any cannot fail.
	if d, err := connect.NewErrorDetail(&pb.ErrorDetail{Status: uint32(status), Name: status.Name(), OutcomeUnknown: unknown}); err == nil {
		e.AddDetail(d)
	}
	return e
}

// detailOf is the detail of an error of the protocol; nil: it has none.
func detailOf(e *connect.Error) *pb.ErrorDetail {
	for _, d := range e.Details() {
		if m, err := d.Value(); err == nil {
			if detail, ok := m.(*pb.ErrorDetail); ok {
				return detail
			}
		}
	}
	return nil
}

// objectError is the error of an object store, or nil if err is none that clients
// know.
func objectError(err error) error {
	for _, k := range []struct {
		is     error
		code   connect.Code
		status vfs.Status
	}{
		{object.ErrNotExist, connect.CodeNotFound, vfs.ErrNoEnt},
		{object.ErrMismatch, connect.CodeDataLoss, 0},
		{object.ErrCorrupted, connect.CodeDataLoss, 0},
		{object.ErrRange, connect.CodeOutOfRange, vfs.ErrInval},
		{object.ErrTooLarge, connect.CodeOutOfRange, vfs.ErrFBig},
		{object.ErrNoSpace, connect.CodeResourceExhausted, vfs.ErrNoSpace},
		{object.ErrBusy, connect.CodeUnavailable, vfs.ErrBusy},
	} {
		if errors.Is(err, k.is) {
			return detailed(k.code, k.is, k.status, false)
		}
	}
	return nil
}

// clean is an error whose text cannot steer a terminal: names in it may be other users'.
type clean struct{ error }

func (e clean) Error() string { return fault.Clean(e.error.Error()) }
func (e clean) Unwrap() error { return e.error }

// cleaned is an error of wire with such a text, for clients of calls.
func cleaned(err error) error {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	out := connect.NewError(e.Code(), clean{e.Unwrap()})
	for _, d := range e.Details() {
		out.AddDetail(d)
	}
	return out
}

// told is an error as a client of HTTP is told of it. None of it can steer a terminal: names
// in it may be other users'.
type told fault.JSON

func tell(err error) told {
	cause := err
	if e, ok := errors.AsType[*connect.Error](err); ok {
		cause = e.Unwrap() // whose text has no code in front
	}
	t := told{Code: fault.Code(cause), Message: fault.Clean(fault.Text(cause))}
	if d, ok := errors.AsType[*denial](err); ok && d.why == TooLarge {
		t.Code = fault.Code(vfs.ErrFBig)
	}
	if status, ok := errors.AsType[vfs.Status](cause); ok {
		if own, ok := advices[status]; ok {
			t.Advice = own
		} else {
			t.Advice = fault.Advice(cause)
		}
	}
	return t
}

// advices are those for clients of HTTP, where those for users of NFS say nothing to them.
var advices = map[vfs.Status]string{
	vfs.ErrAccess:    "show the token of a user who may: the rights are those of the caller's user",
	vfs.ErrPerm:      "show the token of a user who may: the rights are those of the caller's user",
	vfs.ErrStale:     "",
	vfs.ErrBadHandle: "",
	vfs.ErrBusy:      "try again",
}

// text is a line, and one with advice if there is some.
func (t told) text() string {
	text := t.Message
	if t.Code != fault.CodeOther {
		text += " (" + t.Code + ")"
	}
	if t.Advice != "" {
		text += "\n-> " + t.Advice
	}
	return text + "\n"
}

// json is a line of JSON, with the protocol's code.
func (t told) json(code connect.Code) string {
	// Strings always have a form in JSON.
	b, _ := json.Marshal(struct {
		Code    string     `json:"code"`
		Message string     `json:"message"`
		Error   fault.JSON `json:"error"`
	}{code.String(), t.Message, fault.JSON(t)})
	return string(b) + "\n"
}
