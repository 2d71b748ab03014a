package xdr

import (
	"encoding/binary"
	"math"
)

// Unmarshaler is what can be decoded. DecodeXDR consumes its encoding from d
// and returns d's error. Slices in the decoded value are part of d's record.
type Unmarshaler interface {
	DecodeXDR(d *Decoder) error
}

// Decoder consumes one record. The zero value is an empty record; a Decoder is
// a plain value that lives on the caller's stack. It is not safe for concurrent
// use, and copying it forks the position.
type Decoder struct {
	buf   []byte // what is left
	err   error  // the first error; sticky
	depth int
}

// NewDecoder returns a Decoder of record, which stays the caller's.
func NewDecoder(record []byte) Decoder { return Decoder{buf: record} }

// Reset makes d decode record from its start, without an error.
func (d *Decoder) Reset(record []byte) { *d = Decoder{buf: record} }

// Err is the first error that d met, or nil.
func (d *Decoder) Err() error { return d.err }

// Fail records err as d's error unless there is one already. From here on
// every method answers zero values.
func (d *Decoder) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.buf = nil
}

// Len is the number of bytes left.
func (d *Decoder) Len() int { return len(d.buf) }

// Rest is what is left of the record, not consumed.
func (d *Decoder) Rest() []byte { return d.buf }

// Finish returns d's error, or [ErrTrailing] if bytes are left over.
func (d *Decoder) Finish() error {
	if d.err == nil && len(d.buf) != 0 {
		d.err = ErrTrailing
	}
	return d.err
}

// Enter goes one level down in a recursive type named what and reports whether
// that is still within [MaxDepth]; each true is matched by a [Decoder.Leave].
func (d *Decoder) Enter(what string) bool {
	if d.depth >= MaxDepth {
		d.Fail(&DepthError{What: what})
		return false
	}
	d.depth++
	return true
}

// Leave undoes one [Decoder.Enter].
func (d *Decoder) Leave() { d.depth-- }

// Block consumes n bytes at once and returns them, or nil if fewer are left.
// Generated code reads runs of fixed-size fields through it, with one check for
// the run; n is a multiple of four and borrowed like everything else.
func (d *Decoder) Block(n int) []byte {
	if len(d.buf) < n {
		d.Fail(ErrShort)
		return nil
	}
	p := d.buf[:n:n]
	d.buf = d.buf[n:]
	return p
}

// Uint32 consumes an unsigned integer.
func (d *Decoder) Uint32() uint32 {
	if len(d.buf) < 4 {
		d.Fail(ErrShort)
		return 0
	}
	v := binary.BigEndian.Uint32(d.buf)
	d.buf = d.buf[4:]
	return v
}

// Int32 consumes an integer or an enumeration.
func (d *Decoder) Int32() int32 { return int32(d.Uint32()) }

// Uint64 consumes an unsigned hyper.
func (d *Decoder) Uint64() uint64 {
	if len(d.buf) < 8 {
		d.Fail(ErrShort)
		return 0
	}
	v := binary.BigEndian.Uint64(d.buf)
	d.buf = d.buf[8:]
	return v
}

// Int64 consumes a hyper.
func (d *Decoder) Int64() int64 { return int64(d.Uint64()) }

// Float32 consumes a single-precision float.
func (d *Decoder) Float32() float32 { return math.Float32frombits(d.Uint32()) }

// Float64 consumes a double-precision float.
func (d *Decoder) Float64() float64 { return math.Float64frombits(d.Uint64()) }

// Bool consumes a boolean. Anything but 0 and 1 is a [*ValueError].
func (d *Decoder) Bool() bool {
	v := d.Uint32()
	if v > 1 {
		d.Fail(&ValueError{What: "bool", Value: int64(v)})
		return false
	}
	return v == 1
}

// BoolOf is the boolean that v is on the wire; a v that is none is an error of d
// as in [Decoder.Bool]. Generated code reads booleans amid runs of other fields
// through it.
func (d *Decoder) BoolOf(v uint32) bool {
	if v > 1 {
		d.Fail(&ValueError{What: "bool", Value: int64(v)})
	}
	return v == 1
}

// Opaque consumes variable-length opaque data or a string of at most limit
// bytes, with its padding, and returns the bytes: borrowed, and with no spare
// capacity, so that appending to them copies.
func (d *Decoder) Opaque(what string, limit uint32) []byte {
	return d.Body(what, d.Uint32(), limit)
}

// Body is [Decoder.Opaque] behind a length that has been read, n. Generated code
// reads lengths with the run of fields before them.
func (d *Decoder) Body(what string, n, limit uint32) []byte {
	if n > limit {
		d.Fail(&LengthError{What: what, Len: uint64(n), Max: uint64(limit)})
		return nil
	}
	return d.Fixed(int(n))
}

// Fixed consumes n bytes of opaque data and their padding, and returns the
// bytes, borrowed. What the padding holds is not looked at: senders that leave
// garbage there exist, and it means nothing.
func (d *Decoder) Fixed(n int) []byte {
	// n comes from the wire in Opaque; the sum must not wrap where int has
	// 32 bits.
	if n < 0 || len(d.buf) < n || len(d.buf)-n < Pad(n) {
		d.Fail(ErrShort)
		return nil
	}
	p := d.buf[:n:n]
	d.buf = d.buf[n+Pad(n):]
	return p
}

// ArrayLen consumes the length of a variable-length array of at most limit
// elements, each of which takes at least size bytes of the record. A length
// that the rest of the record cannot hold is an error, so that what a decoder
// allocates is bounded by what it was sent.
func (d *Decoder) ArrayLen(what string, limit uint32, size int) int {
	return d.Elements(what, d.Uint32(), limit, size)
}

// Elements is [Decoder.ArrayLen] for a length that has been read, n.
func (d *Decoder) Elements(what string, n, limit uint32, size int) int {
	if n > limit {
		d.Fail(&LengthError{What: what, Len: uint64(n), Max: uint64(limit)})
		return 0
	}
	if size > 0 && uint64(n) > uint64(len(d.buf)/size) {
		d.Fail(ErrShort)
		return 0
	}
	return int(n)
}

// BulkLen consumes the length of a bulk opaque of at most limit bytes and
// returns that much of buf, where the data shall land: never nil without an
// error, even of no bytes. It is the end of a generated DecodeHead; see
// [BulkResult].
func (d *Decoder) BulkLen(what string, limit uint32, buf []byte) ([]byte, error) {
	n := d.Uint32()
	if d.err != nil {
		return nil, d.err
	}
	if most := min(uint64(limit), uint64(len(buf))); uint64(n) > most {
		d.Fail(&LengthError{What: what, Len: uint64(n), Max: most})
		return nil, d.err
	}
	if buf == nil {
		buf = []byte{}
	}
	return buf[:n:n], nil
}

// Resize returns s with n elements, in the same memory if that is large enough:
// the elements are what they were there, to be decoded over. Generated code
// bounds n before it calls.
func Resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]T, n-cap(s))...)
}
