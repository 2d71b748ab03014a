// Package v3 is the client's half of NFS version 3 (RFC 1813): a file system made
// of its procedures.
//
// [FS] is a [vfs.FS], raw and unbuffered: a call of the contract is one procedure
// wherever it can be. Each procedure has a file here, under the name that it has in
// the server and in the suite as well. Sections that comments name are those of RFC
// 1813.
//
// # What a server says is hostile until checked
//
// A count above what was asked for, a handle or a target of a size that none
// has, a listing that runs in circles, progress of zero: each is a
// [*ReplyError], never a wrong result and never an endless loop. The names in a
// listing are delivered as they came, because an error would hide all entries
// behind a bad one; consumers ask vfs.CheckName.
//
// # What cannot be known
//
// A call that changes something and whose reply never came may have been
// executed. Its error Is vfs.ErrUnknownOutcome, whichever procedure it was,
// unless the RPC layer knows that the call was never sent.
//
// A call whose reply was lost is sent again under the same number, and a server
// that remembers the number (its duplicate request cache) answers what it has
// answered before. Not every server does, and none does after a restart: then
// the call is executed a second time, and an error may be the work of the first.
// REMOVE meets no name, MKDIR meets its own directory. Whether it was our first
// call or another client that did it, no procedure of NFSv3 tells, and to guess
// would be wrong for a program: where a file that is removed or made is its lock,
// success is a claim. So success is success, and after a repetition:
//
//	procedure          status       judged by                                         result
//	REMOVE, RMDIR      NOENT        nothing: another client's removal looks the same  unknown
//	RENAME             NOENT        the target, if a LOOKUP or CREATE of ours knew    success if the target is now
//	                                what the source was, and not that the target      that object; else unknown
//	                                was the same before
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
// "Unknown" is a [*StatusError] that Is vfs.ErrUnknownOutcome and the status. The
// two judgements are right for those who contend for an object by RENAME, each
// with a target of its own, or for a name by LINK, each with a file of its own.
// They cost calls only when there is something to judge. An unchecked CREATE and
// an unguarded SETATTR, WRITE or COMMIT do the same however often they are
// executed, and need no judgement when they succeed; vfs.CreateUnchecked stays
// unchecked on the wire for that reason. (Open with it asks guarded, to tell
// whether it has made the file. If that was repeated and the file is there, it
// counts as found.)
//
// # How long a call goes on
//
// While a server answers NFS3ERR_JUKEBOX the call is made again, at intervals that
// grow to five seconds, until the RPC client's patience has passed since the first of
// these answers, and then once more: the error is vfs.ErrBusy. With Options.Hard it
// goes on until the context ends. A context that ends meanwhile makes the error a
// [*BusyError]. A server that does not answer at all is the RPC layer's to wait for.
// When its patience ends, the error is a [*PatienceError].
//
// Options.Pace admits each try of a call, and learns from it: READ, WRITE with
// COMMIT, and all others are limited apart. No admission is held between tries,
// nor for a server that does not answer at all: a call is given up after twice
// its patience at the latest, however many wait with it.
//
// # What is refused below NFS
//
// What a server answers in RPC is an answer, with the Status that says the same
// and the oncrpc error within: vfs.ErrNotSupp if it lacks the procedure, the
// program or this version of it, vfs.ErrAccess if it does not take the
// credential, vfs.ErrInval for GARBAGE_ARGS, and vfs.ErrServerFault for
// SYSTEM_ERR, after which a change is of unknown outcome as well.
//
// # Handles that have died
//
// vfs.ErrStale comes out at once: a handle is the caller's, and only the caller
// knows by which path to find its object again. The one exception is Open by
// name, which begins anew once if what the name stood for is gone before it
// could be truncated.
//
// # What NFSv3 does not have
//
// There is no OPEN: rights are checked by the server with every READ and WRITE,
// for the caller of the view. A file that is removed while a File of the same FS
// has it open is renamed to ".nfs" and a random number instead, and removed with
// its last Close ("silly rename"); one that somebody else removes is vfs.ErrStale.
// Whether a name is that of an open file a LOOKUP tells, which is spared where no
// open file can have it (openNames).
// There are no share reservations and no delegations, and times lie between 1970
// and 2106.
//
// # Locks
//
// viewsMu guards the cache of views, openFiles.mu the table of open files. No
// call is made under either, and neither is taken under the other.
package v3
