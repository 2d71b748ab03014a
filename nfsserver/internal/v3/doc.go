// Package v3 is NFS version 3 (RFC 1813) over a view of exports. Procedures have files of
// the same names as in internal/client/nfsclient/v3: those that share their work share one.
//
// A procedure is a function from decoded arguments to a result. It makes a call
// or two on the caller's view and returns the view's error; handler.go decodes
// before it, turns the error into a status behind it, and sends the result.
// Arguments, result and everything that a procedure lends to either live in one
// frame, which is used again for the next call of that procedure.
//
// # Attributes beside the result
//
// The protocol lets a server leave out the attributes beside a result; clients then
// ask for them in a further round trip. What the file system returns anyway is sent.
// Clients depend on attributes of the object found or made, of a directory that was
// changed, and of the object of FSINFO and its like. If the file system returned none of
// those, the server asks it once: that is cheaper than a call over the network.
//
// "Before" attributes (RFC 1813, section 2.6, wcc_data) are sent only together with the
// "after" that the file system returned with them. An "after" that was asked for later
// may hold another client's change, which the client would take for its own.
//
// # Rights
//
// NFSv3 has no open, so a right that a client's program got by opening a file must hold
// for READ and WRITE later on; see rights.go for the two cases.
package v3
