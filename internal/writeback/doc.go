// Package writeback is the one owner of dirty bytes: a [vfs.FS] over another
// that accepts writes at once, sends them in large pieces behind the caller's
// back, and answers for them until they are stable.
//
// The FS below is raw: its unstable writes are lost when the server restarts
// before a COMMIT, and only the verifier tells (RFC 1813, sections 3.3.7 and
// 3.3.21). Here every byte is kept until a COMMIT has answered with the very
// verifier of the WRITE that carried it. If it answers with another one, the
// bytes are sent again.
//
// # What callers may rely on
//
// WriteAt with [vfs.Unstable] copies p and returns; Commit and Close return
// when everything written before is stable, or say why not. The verifier that
// callers see never changes. Stabler writes pass through. Reads see what was
// written through any view of the same wrapper, sent or not, also after the
// server has forgotten it. Sizes include it; other attributes are those of the
// server, after what was accepted has been sent ([FS.GetAttr]) or as they come
// (Lookup, ReadDir).
//
// The first error of a WRITE or COMMIT stays with every File that was open on
// the object then: each further WriteAt, Commit and Close of it returns that
// error. The bytes whose WRITE failed are given up; all others are still sent.
// Nothing is given up without such an error. Closing commits, unlike below.
//
// Nothing is sent on a timer: what is less than a full WRITE waits for more,
// for a Commit or Close, or for the bound ([DefaultMaxDirty]).
//
// # How it works
//
// A node stands for an object with open files, whoever opened them. Its pieces
// are disjoint ranges of dirty bytes, each queued, in flight or written. A new
// write takes its range away from the pieces there (a queued or written piece
// is cut, one in flight is waited for) and so no two overlapping WRITEs are ever
// in flight. A WRITE that passes through, or a change of size, puts up a
// barrier: no piece that it touches is sent meanwhile. Goroutines exist only
// while a WRITE is in flight.
//
// Rename and Remove need nothing done: handles stay, and so do open files.
//
// Files offer no Unwrap, since whoever reads below them misses dirty bytes; the
// [vfs.HoleSeeker] of the file below is offered, and commits first.
//
// Locks: node.mu before shared.mu. Neither is held over a call to the FS below.
package writeback
