package snapshot

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

var (
	// ErrDamaged says that an object of the store is not what the snapshot says of it: it is missing, other
	// bytes, or breaks the format. The error is a *DamagedError, and names it.
	ErrDamaged = errors.New("the snapshot is damaged")
	// ErrSum says, in an ErrDamaged, that the bytes of an object are not those that were put there.
	ErrSum = errors.New("its bytes have another SHA-256")
	// ErrNoSnapshot says that the store has no snapshot of that name, or no complete one.
	ErrNoSnapshot = errors.New("no such snapshot")
	// ErrName says that a name, an id or a tag of a snapshot is not one.
	ErrName = errors.New("not a name of snapshots")
	// ErrTooLong says that an object has more attributes, or pieces, than a snapshot can keep.
	ErrTooLong = errors.New("more than a snapshot can keep of one object")
	// ErrUnproved says that a root is in the store, and that what it leads to may have been removed meanwhile.
	ErrUnproved = errors.New("what it needs may be missing: check the store, and forget what is damaged")
	// ErrVersion says that a snapshot is of another version of the format.
	ErrVersion = errors.New("the snapshot was made by another version of nfsbox")
)

// DamagedError is an [ErrDamaged].
type DamagedError struct {
	Key string // of the object
	Err error  // what is wrong with it
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("object %s: %v: %v", e.Key, ErrDamaged, object.About(e.Key, e.Err))
}

// Unwrap returns ErrDamaged, the reason, and what it is to users of a file system: vfs.ErrIO.
func (e *DamagedError) Unwrap() []error { return []error{ErrDamaged, e.Err, vfs.ErrIO} }

// damaged is err as the damage of an object.
func damaged(key string, err error) error {
	if _, ok := errors.AsType[*DamagedError](err); ok {
		return err
	}
	return &DamagedError{key, err}
}

// IncompleteError is an [ErrNoSnapshot] of a name of which all snapshots are incomplete.
type IncompleteError struct {
	Name   string
	Newest string // NAME@ID
}

// Error implements error.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("%s: no snapshot of that name is complete: the newest, in which something is missing, is %s", e.Name, e.Newest)
}

// Unwrap returns ErrNoSnapshot.
func (e *IncompleteError) Unwrap() error { return ErrNoSnapshot }

// AmbiguousError is an [ErrName]: the beginning of an id that several snapshots have.
type AmbiguousError struct {
	Text string   // as it was given
	Some []string // NAME@ID, maxCandidates at most
	More bool     // there are others
}

// Error implements error.
func (e *AmbiguousError) Error() string {
	more := ""
	if e.More {
		more = " and more"
	}
	return fmt.Sprintf("%s is the beginning of %s%s: give more of the ID", e.Text, strings.Join(e.Some, ", "), more)
}

// Unwrap returns ErrName.
func (e *AmbiguousError) Unwrap() error { return ErrName }
