// Package v3 is the client's half of NFS version 3 (RFC 1813): the procedures,
// and a file system made of them.
//
// [Procs] are the 22 procedures as the wire has them, one typed method each, for
// whoever wants to speak the protocol itself. [FS] is a [vfs.FS] over them: raw
// and unbuffered, a call of the contract being one procedure wherever it can
// be. Each file of this package holds one procedure, the method and what the
// contract makes of it, under the name that it has in the server and in the
// suite as well.
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
// executed. Its error Is vfs.ErrUnknownOutcome, whichever procedure it was: the
// RPC layer repeats those that are safe to repeat, but in the end it may give up
// on them, too.
//
// # What NFSv3 does not have
//
// There is no OPEN: rights are checked by the server with every READ and WRITE,
// for the caller of the view. A file that is removed while a File of the same FS
// has it open is renamed to ".nfs" and a random number instead, and removed with
// its last Close ("silly rename"); one that somebody else removes is vfs.ErrStale.
// There are no share reservations and no delegations, and times lie between 1970
// and 2106.
//
// # Locks
//
// viewsMu guards the cache of views, openFiles.mu the table of open files. No
// call is made under either, and neither is taken under the other.
package v3
