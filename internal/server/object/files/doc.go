// Package files is an object store in any vfs.FS, a server's (nfs://) first. Several hosts may use
// one store at once. It lies in its directory as package layout says, so object/dir opens it, too:
// but not beside this driver, as dir's writer believes to be alone.
//
// # How an object comes into being
//
// Its bytes are written to a temporary name in the directory where it will stay, and made stable:
// by Commit, whose verifier is compared with that of every write. A small object is one stable
// write. If the verifier is another one, the server has lost bytes: the client's owner of dirty
// bytes (internal/client/writeback) sends them again; above an FS without it the Put fails with
// [object.ErrBusy], and the same Put can be made again. Then the file is linked to its name, which
// fails if the name exists: so of all Puts with IfAbsent, on whatever hosts, one succeeds. To
// replace an object, the temporary is renamed. An FS without hard links cannot have IfAbsent; such
// a Put is an error that says so.
//
// An FS that is a [vfs.Syncer] is told to make the name stable; every other one has made it so
// before it answers, as NFS servers must (RFC 1813, section 4.8).
//
// # Lost replies
//
// A link, a rename or a removal whose answer was lost is settled by looking. What is called by the
// object's name is compared with the temporary, by handle and by file id: the same is success, another
// one is [object.ErrExist], none has the call made again. Only if the server does not let itself be
// asked the error is [object.ErrUnknownOutcome].
//
// # What several hosts see
//
// A server may show a name that another host has just made before that is on the disk. A crash in
// that moment takes it away. A store that is open to write therefore makes stable what it has
// seen before it says so: it sets the directory's time (SETATTR), which the server has to make
// stable with the directory. It does so once for all objects that are older than that by the
// server's own clock. So what Get, Stat, List and ErrExist show is there after a crash.
//
// Two things do not hold as in a store of one process. That an object is absent may not be
// stable yet: its Delete, on another host, has not returned. And NFSv3 has no open files: an object that
// another host replaces or deletes while it is read ends in [object.ErrBusy].
//
// A store that is open for reading writes nothing, so what it shows may not be stable.
// Snapshots bear that, as the documentation of object/dir says.
//
// # What is checked
//
// A Get of a whole object compares the CRC of its content at its end, one of a part the length
// alone, as in object/dir. A listing that meets something else in the place of a directory or an
// object looks again, since other hosts change names meanwhile, and then is [object.ErrForeign].
//
// # Bounds
//
// A Put under way takes 64 KiB of memory, so does a Get of a small object; the caller bounds their
// number, and the FS its own load. The handles of maxFolders directories are kept.
//
// # Locks
//
// Store.mu and folders.mu are each held for a few instructions, and never together. One call at a
// time makes directories (Store.making); it is waited for until the caller's context ends.
package files
