// Package localio leaves the network out where client and server are on one host:
// a [vfs.FS] over another, whose files read, write and commit by descriptors that
// the server has handed out to this process, and otherwise, at any moment and
// without an error to the caller, by the FS below. All else goes below always.
// Nothing here knows which version of NFS that is.
//
// What client and server say to each other is proto/localio's session.x, and
// internal/client/localio/session is the socket. The server's half, and with it the
// rights, are in nfsserver and export: here nothing is decided, and nothing is
// believed but that the same server answers by the socket and over the network.
//
// # The session
//
// The first handshake begins with New, in the background ([FS.Ready] waits for
// it); further ones when a session has ended: at once, then in growing pauses, and
// sooner when calls over the network show that the server is back. One goroutine
// does that, and receives what the server says. Whether files are local, and why
// not, is in [FS.Stats].
//
// # Descriptors
//
// A file that is opened is opened below. At its first read, write or commit (at the
// second, if the file is small: most small files are used once) a
// descriptor is asked for, one to read and one to write (ask): all who want the
// same wait for it together, for openWait at most, and then go below until it has
// come. What the server has handed out (grant) belongs to the object, the caller
// of the view and the kind of access, for all open files of these, and is kept for a
// while when there are none. A refusal is remembered (refusal), for the object, or
// for the caller, or for a time.
//
// Before each use a caller looks at two words in memory that the server writes, of
// the session and of the descriptor, and makes himself one of its users. So
// nothing is read or written that began after the server took the descriptor
// back, but for what was under way at that moment, as over the network; and no
// descriptor is closed under a user. The last user of one that was taken back, or
// whose session has ended, has it synced, closed, and given back; the next use of
// the object asks anew.
//
// # Reading
//
// Up to 64 KiB are tried without a thread (RWF_NOWAIT); what is not in memory, or
// larger, waits for one of a few places (gate), which are bounded for all files
// together. A read that ends before the end of the file as it was last known
// asks for nothing else, any other for the attributes, and their size says whether
// it has come to the end. Attributes are those of GETATTR, and called as the
// object is called there. (NFSv3 has no times before 1970 and none behind 2106:
// those, it clamps, and a descriptor tells as they are.)
//
// # What has been written
//
// Callers see verifiers of this package. That of an object is the same for what
// was written locally and over the network, and changes when bytes of it may have
// been lost that look safe:
//
//   - a local write fails, or a sync of a descriptor that has written;
//   - the server answers a write or a commit over the network with another
//     verifier than a write before it, whose bytes were not committed in between.
//
// A change is of one object: that a disk is full for one file is nothing to the
// others, who would have to write all again. Objects that are not open are
// remembered if their verifier has changed, or if the server has uncommitted
// bytes of them; at a bound (maxRemembered) the verifier of all objects changes
// instead. That a session ends, or a descriptor is taken back, changes no
// verifier: what was written by it is in the page cache, and is synced by
// the call that closes it.
//
// A commit syncs what was written by descriptors, and commits below what went
// there. So it does not matter, to a caller, which way each of its writes went.
// The rules that make this hold, whatever happens at the same time:
//
//   - A write reads the verifier before it begins, and a commit after it has ended.
//     What is lost in between has the commit tell another one.
//   - A local write marks its descriptor as dirty after pwrite and before it
//     returns; a sync takes the mark before fsync. So of what returned before a
//     commit began, all is marked, or has been taken by a sync that the commit
//     waits for, and a mark that comes during a sync is left for the next.
//   - The kernel tells a failure of writeback once to each open file description.
//     So all syncs of an object go one after another (flight), by every
//     descriptor that is marked, and a failure has changed the verifier before the
//     next can begin and succeed. For the same reason stable writes are a pwrite
//     and a sync, and not RWF_DSYNC: of two of these by one descriptor, only one
//     would hear of a failure. Concurrent ones share a sync instead. Their callers
//     compare no verifier, so that one of them fails if any sync of the object has
//     failed since it began: that may be the one that took its bytes.
//   - A descriptor that was taken back is closed behind its last user, and behind
//     a sync by the same road if it is marked; a commit meanwhile joins that sync
//     or finds it done.
//   - Writes over the network are counted as they are answered. A commit that goes
//     below notes the number before it is sent: if it is the same afterwards, all
//     are committed; if not, some may not be, and the mark stays for the next. That
//     the verifiers of two writes differ is noticed when the second is answered,
//     in whichever order that happens, and that of a commit is held against that
//     of the last write.
//
// # From one way to the other
//
// From descriptors to the network there is nothing to wait for: both are the same
// page cache, and what was written by descriptors stays marked until it is synced.
// In the other direction writes go on over the network until a commit of what is
// unstable there is on its way (or has been made: there may be nothing). So
// bytes that are dirty on the server are drained, and a writer who never stops
// becomes local nevertheless. A write that was cut off over the network may still
// be carried out, and so may a change of size; neither must come behind a write
// that was made later by descriptor: until a commit that was sent behind it has
// been answered, all of the object's writes stay on the network.
//
// Two writes to the same bytes at the same time have no order here, nor has a
// change of size beside them: that is for the callers to order, as with any vfs.FS.
//
// # Errors
//
// That the disk is full, or failed, or a quota is used up, is an answer by
// descriptor as well. After any other error of a local call the server has the
// last word: rights and stale files are its to tell. In mode Require, what would
// have to go over the network is [ErrNotLocal], with the reason.
//
// # Locks
//
// node.mu before link.mu and shared.mu, which are not taken one under the other.
// None is held over a call below, to the kernel or by the socket. Users of a
// descriptor are counted without a lock.
package localio
