// Package localio lets a client on the server's host read and write without the network: a [vfs.FS]
// over the network's. Its files read, write and commit by descriptors that the server has handed out to this
// process. Otherwise, at any time and without an error to the caller, they use the FS below, and so do
// all other operations. The package does not know which version of NFS that is.
//
// The messages of client and server are in proto/localio's session.x;
// internal/base/session is the socket. The server's half, with the rights, is in
// nfsserver and export. This package makes no decisions about rights. It only checks that the
// same server answers by the socket and over the network.
//
// # The session
//
// New starts the first handshake in the background ([FS.Ready] waits for it). When a session has
// ended, the next handshake follows at once, if the session was not short (lastsTime), and further
// ones after growing pauses. They come sooner when calls over the network show that the server is
// back. One goroutine makes the handshakes and
// receives the server's messages. [FS.Stats] says whether files are local, and why not.
//
// # Descriptors
//
// A file that is opened is opened below. At its first read, write or commit it asks for a
// descriptor (at the second, if the file is small: most small files are used once). There is
// one for reading and one for writing (ask). All calls that want the same one wait for it
// together, for openWait at most. Then they go below until it has come. A descriptor that the
// server has handed out (grant) belongs to the object, the caller of the view and the kind of
// access. All open files of these share it, and it is kept for a while after the last. A
// refusal (refusal) is remembered for the object, for the caller, or for a time.
//
// Before each use a call registers as a user, and checks two words in memory that the server
// writes: one of the session, one of the descriptor. So after the server has revoked a descriptor,
// no read or write begins by it; only those in flight end, as they would over the network. No
// descriptor is closed while it has users. After a revocation, or the end of the session, the last
// user has it synced, closed and given back. The next use of the object asks again.
//
// # Reading
//
// Reads of up to 64 KiB are tried without a thread (RWF_NOWAIT). Larger ones, and those not in
// memory, wait for one of a few places (gate), which are bounded for all files together. A read
// that ends before the last known end of the file, and whose caller wants no attributes, makes no
// other call. Any other asks for the attributes, whose size says whether it has reached the end.
// Attributes are those of GETATTR,
// with the same identity of the object. Times before 1970 or after 2106, which NFSv3 lacks, are
// clamped as NFSv3 does.
//
// # What has been written
//
// Callers see verifiers of this package. An object's verifier is the same for local writes and writes
// over the network. It changes when bytes of the object that seem safe may have been lost:
//
//   - a local write fails, or a sync of a descriptor that has written;
//   - the server answers a write or a commit over the network with another
//     verifier than a write before it, whose bytes were not committed in between.
//
// A change concerns one object: if one file's disk is full, other files need not be written
// again. Objects that are not open are remembered if their verifier has changed, or if the
// server has uncommitted bytes of them. At a bound (maxRemembered) all of these are forgotten, and the
// verifier changes that objects have without one of their own. The end of a session, or a revocation,
// changes no verifier: the bytes are in
// the page cache, and the call that closes the descriptor syncs them.
//
// A commit syncs what was written by descriptors, and commits below what was written there. So a caller
// need not know which way its writes went. These rules make that hold under concurrency:
//
//   - A write reads the verifier before it begins, and a commit after it has ended. If bytes
//     are lost in between, the commit returns another one.
//   - A local write marks its descriptor dirty after pwrite and before it returns; a sync takes
//     the mark before fsync. So everything that returned before a commit began is marked, or
//     was taken by a sync that the commit waits for. A mark set during a sync is left for the
//     next.
//   - The kernel reports a failed writeback once to each open file description. So all syncs of
//     an object run one after another (flight), by every marked descriptor, and a failure
//     changes the verifier before the next sync can succeed. For the same reason stable writes
//     are a pwrite and a sync, and not RWF_DSYNC: of two of these by one descriptor, only one
//     would see a failure. Concurrent stable writes share a sync. Their callers compare no
//     verifier, so such a write fails if any sync of the object has failed since the write
//     began: that may be the one that took its bytes.
//   - A revoked descriptor is closed after its last user, and after a sync if it is marked. A
//     concurrent commit joins that sync or finds it done.
//   - Writes over the network are counted when they are answered. A commit that goes below
//     notes the number before it is sent. If it is the same afterwards, everything is
//     committed; otherwise the mark stays for the next commit. If the verifiers of two writes
//     differ, that is noticed when the second is answered, in whatever order. A commit's
//     verifier is compared with the last write's.
//
// # Switching between descriptors and the network
//
// A switch from descriptors to the network waits for nothing: both use the same page cache, and
// bytes written by descriptors stay marked until they are synced. In the other direction,
// writes stay on the network until a commit of the unstable bytes there is in flight, or was
// made. So dirty bytes on the server are drained, and a file that is written without a pause
// becomes local nevertheless. A write that was cut off over the network may still be carried
// out, and so may a change of size. Neither must follow a later write by descriptor. So all of
// the object's writes stay on the network until a commit that was sent after the interrupted
// call has been answered.
//
// Two concurrent writes to the same bytes have no order here, nor has a change of size beside them.
// Callers order them, as with any vfs.FS.
//
// # Errors
//
// A full or failed disk, or an exhausted quota, is an answer by descriptor as well. After any
// other error of a local call the server decides, because it knows rights and stale files. In
// mode Require, a call that would have to go over the network is [ErrNotLocal], with the
// reason.
//
// # Locks
//
// node.mu comes before link.mu and shared.mu, which are never taken together. None is held
// during a call to the FS below, to the kernel or by the socket. Users of a descriptor are
// counted without a lock.
package localio
