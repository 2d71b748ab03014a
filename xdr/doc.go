// Package xdr is the codec runtime of nfsbox: External Data Representation
// (RFC 4506) without reflection and without allocation.
//
// Encoding appends to a slice that the caller owns; decoding consumes a record
// that the caller owns. Nothing here keeps either of them. The types that
// travel are declared once, in a .x file in the language of RFC 4506, and
// cmd/xdrgen writes their Go: a struct, AppendXDR, DecodeXDR, a description of
// the RPC program, and the tests that hold the two directions together.
//
// # Borrowing
//
// A decoded []byte is a part of the record, not a copy of it: it is valid for
// as long as the record is, and code that keeps it longer copies it first. This
// is what makes a directory of a million entries decode without garbage. XDR
// strings are []byte as well, because a Go string promises that it never
// changes and a borrowed record cannot.
//
// # Errors stick
//
// A [Decoder] remembers its first error and answers zero values from there on,
// so that a decoder reads as a list of fields and checks once at its end. A
// length is compared with what is left of the record and with the bound of its
// type before anything is allocated: a hostile length costs nothing.
//
// # Bulk
//
// File data never passes through the codec. A type whose specification marks an
// opaque as bulk encodes in segments (head, bulk, tail; see [BulkArgs]) and
// decodes around it (see [BulkResult]), so that the transport above can write
// the bytes from where they are, and read them to where they belong. The
// transport asserts these two interfaces and never learns a program.
package xdr
