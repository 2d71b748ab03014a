// Package nlm gives an NFSv3 client its locks: a [vfs.FS] over another that is a
// [vfs.Locker], by calls of the Network Lock Manager, version 4 (RFC 1813, appendix II;
// X/Open CAE C702, chapter 10). NFSv3 itself has none.
//
// No call waits for a lock at the server: a caller that waits asks again
// ([vfs.AwaitLock]), so the server never has to call back. flock(2) is a lock of the whole
// file, as the Linux client has it.
//
// The lock manager is looked for at the first lock. A server without one harms nothing but
// locks: they are an [UnavailableError], which Is ENOLCK.
//
// # Owners
//
// Each [vfs.Owner] becomes an owner handle (oh) and a process number (svid). The handle
// begins with random bytes of this FS, so no other process has it. Linux' server looks at
// svid alone, of which there are 2^30 here. They begin at a random one, so two processes of
// a host that hold few locks share none but by a chance of about one in 10^9. The name of
// the caller is that of the host, as in credentials.
//
// A process that is killed leaves its locks at the server: the protocol knows of hosts that
// restart, and of no processes.
//
// # Restarts of the server
//
// A server that restarts has forgotten all locks. For a while, the grace, it then grants
// only what its clients reclaim. No port is opened for its notice (SM_NOTIFY): the name under
// which it would come belongs to this host's own statd (docs/decisions/0094). A restart is
// suspected instead when
//
//   - the connection to the lock manager is made again. While locks are held it is tried
//     every few seconds (watchEvery), so that this comes in time;
//   - the verifier of a WRITE or COMMIT changes;
//   - a lock is refused because of a grace.
//
// So a restart is noticed within SuspectTime. A server whose grace is shorter may give a lock to
// another while its owner still relies on it. The owner is told as soon as it is noticed.
//
// Then each lock is asked for again, as a reclaim. A server that refuses it for it has no
// grace may not have restarted at all: a connection can break for other reasons. Whether it
// still has the lock, a TEST in the name of an owner of our own tells. A shared lock that
// others share cannot be told from theirs. It counts as held if another lock is: the server
// keeps all or none.
//
// What cannot be had back is lost. Its owner learns of it by a [LostError], which is
// [vfs.ErrIO]: once, by the next Lock or Unlock of the file. Files that this owner
// ([vfs.OpenHow].Owner) had open on the object are fenced: all their reads and writes are a
// LostError from then on. A descriptor of this host (vfs.HostFiler) that a program has from
// such a file goes on working.
//
// # Calls that are cut off
//
// A LOCK whose caller has gone, or whose reply is lost, may be held at the server. It is
// settled in the background: what the owner did not have before is unlocked. A caller that
// goes in the midst of Unlock leaves the call to end by itself. Both are bounded by
// settleTime. Meanwhile the owner's further calls on the file wait.
//
// # What it costs
//
// Without locks calls pass straight through, but that each open file remembers its handle
// and owner. Nothing is entered in a table before the first lock.
//
// # How it works
//
// An entry stands for an owner's locks in a file. Its turn, a semaphore, is held over each
// call to the server that may change them, and over those that find out what has become of them.
// A TestLock takes no turn. shared.mu is held over no call. Each Lock and Unlock runs in a
// goroutine of its own, which may outlive its caller. One goroutine, the keeper, runs while
// locks are held.
package nlm
