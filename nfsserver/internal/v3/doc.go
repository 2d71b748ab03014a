// Package v3 is NFS version 3 (RFC 1813) over a view of exports: one procedure a
// file, each under the name that it has in internal/client/nfsclient/v3 and in
// vfs/vfstest.
//
// A procedure is a function from decoded arguments to a result. It makes a call
// or two on the caller's view and returns the view's error; handler.go decodes
// before it, turns the error into a status behind it, and sends the result.
// Arguments, result and everything that a procedure lends to either live in one
// frame, which is used again for the next call of that procedure.
//
// # Attributes beside the result
//
// The protocol lets a server leave out the attributes that it returns beside a
// result, and clients then ask for them in a further round trip. What the file
// system gives for nothing is sent. Where clients depend on attributes (of the
// object found or made, of a directory that was changed, of the object that
// describes a file system) and the file system gave none, the server asks it
// once: that is a call within this process instead of one over the network.
//
// "Before" attributes (RFC 1813, section 2.6, wcc_data) are sent only together
// with the "after" that the file system gave with them. An "after" that was
// asked for later may hold someone else's change, which the client would take
// for its own.
//
// # Rights
//
// NFSv3 has no open, so a right that a client's program won by opening a file
// must hold for READ and WRITE later on; see rights.go for the two cases.
package v3
