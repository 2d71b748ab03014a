// Package v3 is the client side of NFS version 3 (RFC 1813): a file system made of its procedures.
//
// [FS] is a [vfs.FS], raw and unbuffered: a call of the contract is one procedure where possible.
// Procedures have files of the same names as in the server: those that share their work share one.
// Sections that comments name are those of RFC 1813.
//
// # What a server says is hostile until checked
//
// A count above what was asked for, a handle or a target of an impossible size, a listing that runs
// in circles, progress of zero: each is a [*ReplyError], never a wrong result and never an endless
// loop. The names in a listing are delivered as they came, because an error would hide all entries
// after a bad one; consumers call vfs.CheckName.
//
// # What cannot be known
//
// A call that changes something and has no reply may have been executed. Its error Is
// vfs.ErrUnknownOutcome, whichever procedure it was, unless the RPC layer knows that the call was
// never sent.
//
// A call whose reply was lost is sent again under the same number. A server that remembers the
// number (its duplicate request cache) repeats its answer. Not every server does, and none does
// after a restart. Then the call is executed a second time, and an error may come from the first
// execution: REMOVE finds no name, MKDIR finds its own directory. No procedure of NFSv3 tells
// whether our first call or another client did it. A guess could be wrong, and where a file that is
// removed or made serves as a lock, success is a claim. So success is success, and after a
// repetition:
//
//	procedure          status       judged by                                         result
//	REMOVE, RMDIR      NOENT        nothing: another client's removal looks the same  unknown
//	RENAME             NOENT        the target, if earlier calls of ours tell what    success if the target is now
//	                                the source was, and not that the target was       that object; else unknown
//	                                the same before
//	LINK               EXIST MLINK  what the new name stands for                      success if it is the linked
//	                                                                                  object; else unknown
//	CREATE exclusive   EXIST        its verifier, which the server has compared       EXIST, as a fact
//	CREATE guarded     EXIST        nothing: the file is too new to be known          unknown
//	MKDIR, MKNOD       EXIST        nothing, as before                                unknown
//	SYMLINK            EXIST        nothing: others link to the same target, too      unknown
//	SETATTR, guarded   NOT_SYNC     nothing: the first may have moved the ctime       unknown
//	all that change    INVAL NAMETOOLONG BADHANDLE NOTSUPP BADTYPE: the call's fault  the status, as a fact
//	all that change    any other    nothing: rights, space and names change           unknown
//
// "Unknown" is a [*StatusError] that Is vfs.ErrUnknownOutcome and the status. The two judgements
// are right for clients that contend for an object by RENAME, each with a target of its own. They
// are right for clients that contend for a name by LINK, each with a file of its own. They cost
// calls only when there is something to judge. An unchecked CREATE and an unguarded SETATTR, WRITE
// or COMMIT do the same however often they are executed, and need no judgement when they succeed;
// that is why vfs.CreateUnchecked stays unchecked on the wire. (Open with it asks guarded, to learn
// whether it has made the file. If that was repeated and the file is there, it counts as found.)
//
// # How long a call goes on
//
// While a server answers NFS3ERR_JUKEBOX the call is repeated, at intervals that grow to five
// seconds. When the RPC client's patience has passed since the first of these answers, it is
// repeated once more. After that the error is vfs.ErrBusy. With Options.Hard it goes on until the
// context ends; but a READDIRPLUS gives way to READDIR after plusBusy. If the context ends during a
// pause, the error is a [*BusyError]. The RPC layer waits for a server that does not answer at all.
// When its patience ends, the error is a [*PatienceError].
//
// Options.Pace admits each try of a call, and learns from it. READ, WRITE with COMMIT, and all other
// procedures are limited separately. No admission is held between tries, nor for a server that does
// not answer at all: a call is given up after twice its patience at the latest, however many wait.
//
// # What is refused below NFS
//
// An RPC-level refusal becomes an error with the matching Status and the oncrpc error within:
// vfs.ErrNotSupp if the server lacks the procedure, the program or this version of it,
// vfs.ErrAccess if it refuses the credential. GARBAGE_ARGS is vfs.ErrInval, and SYSTEM_ERR
// vfs.ErrServerFault, after which a change is of unknown outcome as well.
//
// # Stale handles
//
// vfs.ErrStale is returned at once: only the caller knows the path by which to find the object
// again. The one exception is Open by name, which begins again once if the object of the name is
// gone before it could be truncated.
//
// # What NFSv3 does not have
//
// There is no OPEN: the server checks rights with every READ and WRITE, for the caller of the view.
// A file that is removed while a File of the same FS has it open is renamed to ".nfs" and a random
// number instead. Its last Close removes it ("silly rename"). A file that another client removes is
// vfs.ErrStale. A LOOKUP finds out whether a name is that of an open file; it is spared where no
// open file can have the name (openNames). There are no share reservations and no delegations, and
// times lie between 1970 and 2106.
//
// # Locks
//
// viewsMu guards the cache of views, openFiles.mu the table of open files. No
// call is made under either, and neither is taken under the other. Each open file has an
// openFile.mu, which is held over the calls that take a name from it; openFiles.mu is taken under it.
package v3
