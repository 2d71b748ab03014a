package xdr

import (
	"errors"
	"fmt"
)

// ErrShort says that the record ended before the value did. From DecodeHead it asks for
// more bytes. From anything else it says that the record was cut.
var ErrShort = errors.New("xdr: record too short")

// ErrTrailing says that a record held more bytes than its value.
var ErrTrailing = errors.New("xdr: bytes left over behind the value")

// MaxDepth bounds how deep a recursive type may nest in one record: a tree, since lists are
// decoded in loops and do not count. A deeper one is a [DepthError]: the specification has
// no bound, and the stack has one.
const MaxDepth = 64

// LengthError reports a length above the bound of its type, or above what the
// record could possibly hold.
type LengthError struct {
	What string // the field, as the specification names it
	Len  uint64 // as found
	Max  uint64 // as allowed
}

// Error has the field, its length and the bound.
func (e *LengthError) Error() string {
	if e.What == "" {
		return fmt.Sprintf("xdr: length %d, at most %d allowed", e.Len, e.Max)
	}
	return fmt.Sprintf("xdr: %s: length %d, at most %d allowed", e.What, e.Len, e.Max)
}

// ValueError reports a value that its type does not have: a boolean that is
// neither 0 nor 1, a discriminant that selects no arm of a union.
type ValueError struct {
	What  string // the type, as the specification names it
	Value int64
}

// Error has the type and the value.
func (e *ValueError) Error() string {
	return fmt.Sprintf("xdr: %d is no value of %s", e.Value, e.What)
}

// DepthError reports a recursive type nested deeper than [MaxDepth].
type DepthError struct{ What string }

// Error has the type.
func (e *DepthError) Error() string {
	return fmt.Sprintf("xdr: %s nests deeper than %d", e.What, MaxDepth)
}
