// Package rpcbind is the port mapper and its successors on the wire (RFC 1833):
// the service on port 111 that knows where other programs listen. rpcbind.x has
// all three versions; cmd/xdrgen makes the Go of it.
//
// [PMAPVERS] is the port mapper, version 2: a program, a version and a protocol
// in, a port out. [RPCBVERS] and [RPCBVERS4], versions 3 and 4, speak of
// network identifiers and universal addresses instead and so reach IPv6. They
// name their procedures alike, so that in Go each bears its version:
// RPCBVERS4_RPCBPROC_GETADDR.
//
// Results and arguments that are a bare number, bool or string in the RFC are
// structs with a field Value here ([PMAPPROC_GETPORTres]), which are the same
// on the wire.
//
// The indirect calls (CALLIT, BCAST, INDIRECT) are in the specification only to make
// the descriptor complete. To serve them is to make calls on behalf of others; no part
// of nfsbox does.
package rpcbind

//go:generate go run github.com/nfsbox/nfsbox/cmd/xdrgen -pkg rpcbind rpcbind.x
