// Package nlm4 is the Network Lock Manager, version 4, on the wire: advisory
// locks and share reservations beside NFS version 3 (RFC 1813, appendix II).
// nlm4.x is the specification; cmd/xdrgen makes the Go of it.
//
// The protocol is there twice. Procedures 1 to 5 are calls with answers. The
// _MSG and _RES procedures are the same as pairs of calls without results, each
// side calling the other, matched by the cookie. A lock that had to wait is
// granted by a call from the server to the client (NLMPROC4_GRANTED).
//
// An owner is the pair of caller_name and oh; svid is the process. Lengths of 0
// reach to the end of the file. All procedures are safe to repeat: a lock that
// is held already is granted again.
package nlm4

//go:generate go run github.com/nfsbox/nfsbox/cmd/xdrgen -pkg nlm4 -open nlm4_stats nlm4.x
