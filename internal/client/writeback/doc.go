// Package writeback is the one owner of dirty bytes: a [vfs.FS] over another that accepts writes at
// once. It sends them in large pieces behind the caller's back, and answers for them until they are
// stable.
//
// The FS below is raw: its unstable writes are lost when the server restarts
// before a COMMIT, and only the verifier tells (RFC 1813, sections 3.3.7 and
// 3.3.21). Here every byte is kept until a COMMIT has answered with the very
// verifier of the WRITE that carried it. If it answers with another one, or a
// later WRITE does, the bytes are sent again. A server whose verifier never
// stays the same stores nothing: that ends in an error after a few rounds.
//
// # What writers may rely on
//
// WriteAt with [vfs.Unstable] copies p and returns; WriteBuffer (bufpool.Writer) keeps the
// buffer, uncopied where one WRITE of its own carries all of it. Commit returns when everything
// written to the object before is stable, and Close when everything written through its File is,
// or they say why not. The verifier that callers see never changes. A write that asks
// for more than Unstable is made below at once, after what is dirty there has been sent.
//
// Reads see what was written through any view of the same wrapper, sent or not, also after
// the server has forgotten it. So do sizes. All other attributes are the server's.
// [FS.GetAttr] sends first what was accepted. Other replies (Lookup, ReadDir) are taken as
// they come. Bytes may have become stable after such a reply was made: then it has no size.
// Each byte is sent under the name of the caller through whose view it was written.
//
// Calls that append (vfs.Appender) to an object, through whatever view, take turns. Each
// asks the server for the size, with all that was accepted before, and writes there.
//
// What no call commits is sent and committed when it is a few seconds old (maxAge). Dirty
// bytes are bounded for all files together (Options.MaxDirty): at the bound WriteAt has the
// oldest made stable, and waits; it does not fail. One object never takes all (maxShare): if
// the server puts off its WRITEs, others can be written.
//
// # Errors
//
// A WRITE or COMMIT that failed for a reason that may pass is made again: the server is busy or
// cannot be reached, or what became of the call is not known. That goes on, with pauses, for as
// long as Options.Patience; the bytes are kept meanwhile. A context bounds the wait of its caller,
// and nothing else: what Commit has not waited for is still sent, and a COMMIT goes on. Close ends
// the file, and waits for its calls in progress. If the context of Close ends first, these calls
// end too, but for reads that are below. What is not stable by then is given up.
//
// Any other error is an answer. The first one stays with every File that was open on the
// object then: each further WriteAt, Commit, Sync and Close of it returns that error. The
// bytes of a WRITE that was refused are given up: the server has decided, and they would
// take the room of others for as long as the file is open. All other dirty bytes are still
// sent, also after [vfs.ErrNoSpace], as they may overwrite what has its space already. What
// a COMMIT could not make stable stays dirty. Each further Commit tries again; what Close or the
// timer could not make stable either is given up. No byte that was accepted is given up without
// such an error, and without being counted (Stats.BytesLost).
//
// # What readers may rely on
//
// A read returns dirty bytes where there are any, and what is below elsewhere. A read that
// meets none is one read below, of the whole buffer. While the object has none at all, it takes
// no lock either.
//
// # How it works
//
// A node stands for an object with open files, whichever callers opened them. Its pieces are
// disjoint ranges of dirty bytes, each queued, in flight or written. No two overlapping
// WRITEs are ever in flight: a new write takes its range away from the pieces there. It cuts
// those that are queued or written, and waits for one in flight, its pauses included. A
// piece does not cross a multiple of the size of a WRITE; the last few that are not full
// (tails) wait for more. A write that is made below at once, or a change of size, puts up a
// barrier: no piece that it touches is sent meanwhile.
//
// When a share of MaxDirty has been written, a COMMIT follows in the background. Further
// WRITEs, and a few earlier COMMITs, go on beside it. Of the COMMITs for which a call waits
// one is in flight at a time. Such a call gets the errors of the earlier ones as well. A
// timer runs while an object has dirty bytes, goroutines while something is in flight.
//
// Rename and Remove need nothing done: handles stay, and so do open files.
//
// Files offer no Unwrap, since a call that reads below them misses dirty bytes; the
// [vfs.HoleSeeker] of the file below is offered, and commits first.
//
// Locks: node.mu before shared.mu; that of a try is taken alone. None is held over a call to
// the FS below. A read of a file with no dirty bytes takes none: users and node.dirty say why
// that is safe.
package writeback
