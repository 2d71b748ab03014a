// Package nlm is the Network Lock Manager, version 4 (RFC 1813, appendix II;
// X/Open CAE C702, chapter 10): the locks that NFSv3 itself does not have.
//
// Locks are those of the file systems ([vfs.Locker]), so that they hold against
// the programs of this host as well. What this package adds are the locks that wait: one
// that cannot be had is queued, and granted by a call to the client when it can.
// Queues are first come, first served, per file. A lock that is freed by one of
// our own clients wakes the queue at once; since nobody says when a local program
// frees one, files with a queue are looked at again and again. A grant is sent
// until the client has taken it or refused it, or has not been heard of for too
// long; see grant.go for what becomes of the lock then.
//
// An owner is a process of a client: the client's address, the name it calls
// itself (caller_name), oh and svid. The name alone would let any client free the
// locks of any other. The users of this host share its addresses: where the kernel
// knows whose a socket is, the user is part of the address, and nobody frees what
// another user holds. Root is believed, for the kernel's own client is root's and
// serves all users: it has the plain address, and its notices of restarts (FREE_ALL,
// SM_NOTIFY) count for all users at it. Datagrams from this host are nobody's
// (oncrpc.UnknownUser): what they lock is theirs, and they free nothing else.
//
// A client that no rule admits is not known here: nothing is kept of it, and nothing
// sent to it. Bounds are divided among homes, which are addresses or users (see
// home.go). Calls to clients are bounded, too, and made in turn.
//
// # Restarts
//
// Before a client gets its first lock, package nsm has written down who it is.
// When the server starts again it tells those clients, and for a while, the
// grace, grants nothing but what they reclaim. A client that says it has restarted
// loses what it held before. A lock that was taken under another state number than
// the one the client now announces is of before; one that bears the same number
// was taken since.
//
// # Share reservations
//
// SHARE is kept between the clients of this protocol. It cannot bind local
// programs, nor READ and WRITE of clients that do not ask: no Unix has the
// means.
//
// # Repetition
//
// A lock that is held is granted again, one that is not is freed again, and one
// that waits goes on waiting in its old place. What must not happen is that a
// late duplicate of LOCK comes behind the UNLOCK; the procedures that change
// something are therefore answered from the reply cache when they come twice.
//
// # Order of locks
//
// client.gate, then file.turn, then Service.mu. Calls into file systems are made
// with the first two held, none with the third, and calls to clients with none.
package nlm
