// Package nlm is the Network Lock Manager, version 4 (RFC 1813, appendix II;
// X/Open CAE C702, chapter 10): the locks that NFSv3 itself does not have.
//
// Locks are those of the file systems ([vfs.Locker]), so they hold against the programs
// of this host as well. This package adds the locks that wait. A lock that is not free
// is queued, and granted by a call to the client when it is. Each file has a queue,
// first come, first served. When one of our own clients frees a lock, the queue is
// served at once. A local program does not tell when it frees one, so files with a
// queue are polled. A grant is sent until the client has accepted or refused it, or has
// not answered for too long; see grant.go for what happens to the lock then.
//
// An owner is a process of a client: the client's address, the name it calls
// itself (caller_name), oh and svid. The name alone would let any client free the
// locks of any other. The users of this host share its addresses. Where the kernel
// knows whose a socket is, the user is part of the address, so no user frees what
// another holds. Root is believed, since the kernel's own client runs as root and
// serves all users. It has the plain address, and its notices of restarts (FREE_ALL,
// SM_NOTIFY) count for all users there. The user of a datagram from this host is
// unknown (oncrpc.UnknownUser): such clients free only what they have locked themselves.
//
// A client that no rule admits is not known here: nothing is kept for it, and nothing
// sent to it. Bounds are divided among homes, which are addresses or users (see
// home.go). Calls to clients are bounded, too, and made in turn.
//
// # Restarts
//
// Before a client gets its first lock, package nsm records it on disk. When the server
// starts again it tells the recorded clients. For a while, the grace, it then grants
// only what clients reclaim. A client that says it has restarted loses what it held
// before: the locks taken under another state number than the one it now announces.
//
// # Share reservations
//
// SHARE holds between the clients of this protocol. It binds neither local programs
// nor READ and WRITE of clients that do not ask: Unix has no means for that.
//
// # Repetition
//
// A LOCK that is repeated is granted again, and an UNLOCK succeeds again. A lock that
// waits keeps its place. But a late duplicate of LOCK must not be executed after the
// UNLOCK. So the procedures that change something are answered from the reply cache
// when they come twice.
//
// # Order of locks
//
// client.gate, then file.turn, then Service.mu. Calls into file systems are made
// with the first two held, none with the third, and calls to clients with none.
package nlm
