package object

import (
	"errors"
	"io/fs"
	"syscall"
)

// kind is an error of the contract. It may have a wider meaning in io/fs, under
// which errors.Is finds it as well.
type kind struct {
	text string
	is   error
}

func (k *kind) Error() string { return "object: " + k.text }

// Is reports whether target is the wider meaning.
func (k *kind) Is(target error) bool { return k.is != nil && target == k.is }

// The errors of the contract. A driver's error wraps one of them wherever one fits, for
// errors.Is. [ErrNotExist], [ErrExist], [ErrKey] and [ErrClosed] are also found under
// their namesakes of io/fs (ErrKey under fs.ErrInvalid). When a context ends, the error
// is the context's.
var (
	// ErrNotExist: there is no object of that key.
	ErrNotExist error = &kind{"no such object", fs.ErrNotExist}
	// ErrExist: the object exists, although PutOptions.IfAbsent was set. No crash
	// makes it disappear after this answer.
	ErrExist error = &kind{"the object exists", fs.ErrExist}
	// ErrKey: the key, or the prefix, is not valid.
	ErrKey error = &kind{"not a key", fs.ErrInvalid}
	// ErrRange: the range begins behind the object's end, or before its start.
	ErrRange error = &kind{"the range is not in the object", nil}
	// ErrTooLarge: the object is larger than the store takes.
	ErrTooLarge error = &kind{"the object is too large", nil}
	// ErrMismatch: the reader returned other bytes than announced, or more or fewer.
	// Nothing was stored.
	ErrMismatch error = &kind{"the content is not the one announced", nil}
	// ErrCorrupted: what is stored is not what was put there.
	ErrCorrupted error = &kind{"the object is corrupted", nil}
	// ErrNoSpace: the store, or the caller's share of it, is full.
	ErrNoSpace error = &kind{"no space is left", nil}
	// ErrBusy: not now; the same call may well succeed later.
	ErrBusy error = &kind{"the store is busy", nil}
	// ErrUnknownOutcome: the change was cut off. It may have been made or not, and a
	// crash may undo it. Repeating it is safe and settles it.
	ErrUnknownOutcome error = &kind{"the outcome is unknown", nil}
	// ErrForeign: where the store has a directory or an object there is something that the store
	// has not put there, and that could hide objects. A listing says so instead of being short:
	// nobody may take what it lacks for gone.
	ErrForeign error = &kind{"something in the store is not the store's", nil}
	// ErrClosed: the store is closed.
	ErrClosed error = &kind{"the store is closed", fs.ErrClosed}
)

// ForeignError is the [ErrForeign] of a listing that meets something else in the place of one object, and nothing is hidden but that
// one. What was before it was listed; a listing after Key has the rest.
type ForeignError struct {
	Key  string // of the object
	What string // what is there, in words, with its place
}

// Error implements error.
func (e *ForeignError) Error() string { return ErrForeign.Error() + ": " + e.What }

// Unwrap returns ErrForeign.
func (e *ForeignError) Unwrap() error { return ErrForeign }

// HiddenError is the error of a listing that cannot look at any of the keys that begin with Prefix: something else has the place of their
// directory, or it may not be read. What was before them was listed; a listing after After has the rest.
type HiddenError struct {
	Prefix string
	After  string // greater than all of them
	Err    error  // why
}

// Error implements error.
func (e *HiddenError) Error() string {
	return "what begins with " + quote(e.Prefix) + " cannot be listed: " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *HiddenError) Unwrap() error { return e.Err }

// IsOwn reports whether an error is of one object, or one directory, and others of the store may well be read: it is corrupted, something
// else has its place, this user may not read it, or the disk has failed there.
func IsOwn(err error) bool {
	for _, own := range []error{ErrCorrupted, ErrForeign, fs.ErrPermission, syscall.EIO} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// Error is the error of every call of a store: what was tried, on which key (for List,
// which prefix), and why it failed.
type Error struct {
	Op  string // in lower case: "put", "get", "stat", "list", "delete"
	Key string // as it was given, perhaps no key at all
	Err error
}

// Error shows the key quoted, since it may be anything.
func (e *Error) Error() string { return e.Op + " " + quote(e.Key) + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// About returns err as the reason of one that names key already: without its call and key, if those are key's.
func About(key string, err error) error {
	if e, ok := err.(*Error); ok && e.Key == key { //nolint:errorlint // only the outermost one says it again
		return e.Err
	}
	return err
}

// Fail returns err as an [Error], or nil if it is nil. Drivers end every call
// with it.
func Fail(op, key string, err error) error {
	if err == nil {
		return nil
	}
	if already, ok := errors.AsType[*Error](err); ok && already.Op == op && already.Key == key {
		return err
	}
	return &Error{Op: op, Key: key, Err: err}
}
