package xdr

import (
	"encoding/binary"
	"math"
)

// Appender is what can be encoded: a call's arguments, a reply's results.
// AppendXDR appends the encoding to b and returns the longer slice, as append
// does. The one error is a value that its specification forbids: an opaque
// above its bound, a union whose discriminant selects no arm. b is then
// returned as it was.
type Appender interface {
	AppendXDR(b []byte) ([]byte, error)
}

// Pad is the number of zero bytes that follow an opaque of n bytes (RFC 4506,
// section 4.9): everything in XDR starts on a multiple of four.
func Pad(n int) int { return -n & 3 }

// AppendUint32 appends an unsigned integer (RFC 4506, section 4.2).
func AppendUint32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }

// AppendInt32 appends an integer or an enumeration (sections 4.1 and 4.3).
func AppendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendUint64 appends an unsigned hyper (section 4.5).
func AppendUint64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// AppendInt64 appends a hyper (section 4.5).
func AppendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendBool appends a boolean, which is an enumeration of 0 and 1 (section 4.4).
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0, 0, 0, 1)
	}
	return append(b, 0, 0, 0, 0)
}

// BoolValue is the number that a boolean is on the wire. Generated code stores
// booleans amid runs of other fields through it.
func BoolValue(v bool) uint32 {
	if v {
		return 1
	}
	return 0
}

// Extend makes b longer by n bytes and returns it. What the new bytes hold is
// not defined: generated code writes all of them, a run of fixed-size fields
// after one check of the capacity.
func Extend(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		return grow(b, n)
	}
	return b[:len(b)+n]
}

// grow is apart from [Extend] so that the common case is small enough to be
// inlined everywhere.
//
//go:noinline
func grow(b []byte, n int) []byte { return append(b, make([]byte, n)...) }

// AppendFloat32 appends a single-precision float (section 4.6).
func AppendFloat32(b []byte, v float32) []byte {
	return binary.BigEndian.AppendUint32(b, math.Float32bits(v))
}

// AppendFloat64 appends a double-precision float (section 4.7).
func AppendFloat64(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(v))
}

// AppendOpaque appends variable-length opaque data or a string: the length, the
// bytes, the padding (sections 4.10 and 4.11). The bound of the type is the
// caller's to check; see [CheckLen].
func AppendOpaque(b, p []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
	return AppendFixed(b, p)
}

// AppendFixed appends fixed-length opaque data: the bytes and the padding, no
// length (section 4.9).
func AppendFixed(b, p []byte) []byte {
	b = append(b, p...)
	return AppendPad(b, len(p))
}

// AppendPad appends the padding that follows n bytes of opaque data.
func AppendPad(b []byte, n int) []byte {
	if n&3 == 0 {
		return b
	}
	return appendZeros(b, n)
}

// appendZeros is apart from [AppendPad] so that data without padding, which is
// most of it, costs no call.
//
//go:noinline
func appendZeros(b []byte, n int) []byte {
	switch Pad(n) {
	case 1:
		return append(b, 0)
	case 2:
		return append(b, 0, 0)
	}
	return append(b, 0, 0, 0)
}

// CheckLen is the encoder's half of a bound: it returns a [*LengthError] if n
// elements are more than the specification allows.
func CheckLen(what string, n int, limit uint32) error {
	if uint64(n) > uint64(limit) {
		return &LengthError{What: what, Len: uint64(n), Max: uint64(limit)}
	}
	return nil
}
