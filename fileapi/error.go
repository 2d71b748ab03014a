package fileapi

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// ErrCorrupted says that the bytes that came are not those that were sent. Nothing
// was stored; to try again may help.
var ErrCorrupted = errors.New("the bytes were changed on their way")

// Error is what every call returns when it fails.
type Error struct {
	Op   string // in lower case: "upload"
	Name string // of the file
	// Code is the protocol's; docs/file-api.md says which means what.
	Code connect.Code
	// Status is the file system's, or 0 if it gave none.
	Status vfs.Status
	Err    error
}

// Error says what was tried, on what, and why it failed.
func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %q: %v", e.Op, e.Name, e.Err)
}

// Unwrap returns the reasons.
func (e *Error) Unwrap() []error {
	if e.Status == 0 {
		return []error{e.Err}
	}
	return []error{e.Err, e.Status}
}

// failed makes an Error of err, or nil of none.
func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Name: name, Code: connect.CodeOf(err), Err: err}
	wire, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return e
	}
	for _, d := range wire.Details() {
		m, err := d.Value()
		if err != nil {
			continue // an unknown detail, of a later server
		}
		if detail, ok := m.(*pb.ErrorDetail); ok {
			e.Status = vfs.Status(detail.GetStatus())
			if detail.GetOutcomeUnknown() {
				e.Err = fmt.Errorf("%w: %w", err, vfs.ErrUnknownOutcome)
			}
		}
	}
	if e.Code == connect.CodeDataLoss {
		e.Err = fmt.Errorf("%w: %w", wire, ErrCorrupted)
	}
	return e
}

// changing is failed for a call that changes something: without the server's answer the
// outcome is unknown.
func changing(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if wire, ok := errors.AsType[*connect.Error](err); !ok || !connect.IsWireError(wire) {
		err = fmt.Errorf("%w: %w", err, vfs.ErrUnknownOutcome)
	}
	return failed(op, name, err)
}

// setName names the file in a request: by "content", "path" or "raw_path", fields that
// all requests have.
func setName(q proto.Message, name string) error {
	m := q.ProtoReflect()
	fields := m.Descriptor().Fields()
	content := fields.ByName("content")
	switch {
	case content != nil && strings.HasPrefix(name, pb.SHA256+":"):
		m.Set(content, protoreflect.ValueOfString(name))
	case !strings.HasPrefix(name, "/"):
		return errors.New(`a name is a path that begins with "/", or, where files are moved or looked for, "sha256:" and a checksum`)
	case utf8.ValidString(name):
		m.Set(fields.ByName("path"), protoreflect.ValueOfString(name))
	default:
		m.Set(fields.ByName("raw_path"), protoreflect.ValueOfBytes([]byte(name)))
	}
	return nil
}
