// Package vfs is the contract of nfsbox: one interface that a directory on
// disk, a server at the far end of a network, the fake in memory and every
// wrapper between them satisfy. Commands, caches, mounts, jobs and the server's
// procedures call [FS] and [File], and never learn which of them answers.
//
// # Handles, not paths
//
// Objects are named by [Handle]: an opaque value that the file system made and
// that stays valid over renames and, where the file system can, over restarts.
// Rename while open, hard links and "the file is gone" ([ErrStale]) have a
// natural place here, and none in an API of paths. [Resolve] walks a path where
// a caller has one.
//
// # Whose rights
//
// An FS is a view: every method is checked for the [Caller] that [FS.As] was
// given. Views are cheap, and share everything but the caller.
//
// # Who owns the bytes
//
// The caller owns every buffer, to the end: once ReadAt or WriteAt has returned,
// cancelled or not, nothing touches p again. What an iterator or an [Entry]
// hands out is borrowed until its next step.
//
// # What an error means
//
// Errors are, or wrap, a [Status]: the numbers of RFC 1813 and RFC 8881, which
// satisfy errors.Is with fs.ErrNotExist, fs.ErrExist, fs.ErrPermission and with
// the syscall.Errno of the same meaning. A mutation that was cut off in flight
// (cancelled, connection lost) returns an error that Is [ErrUnknownOutcome]: it
// may or may not have happened. Any other error means that it has not, with two
// exceptions. A SetAttr may have set some of its attributes. And if a change was
// made but could not be made stable, it stays, with the error of the sync.
//
// # What has been written
//
// WriteAt says how stable the bytes are ([Stability]) and under which
// [Verifier]. Unstable bytes are safe once Commit has answered with the verifier
// that every one of their writes carried; if it answers with another, the server
// has restarted in between and the bytes must be sent again. An FS is raw and
// does not buffer; one wrapper, internal/client/writeback, does that for all.
//
// # Optional powers
//
// What only some file systems can do is a small interface of its own
// ([HoleSeeker], [HostFiler], ...). [As] finds it, also through wrappers. What it
// finds is true of the whole stack: a wrapper is a [Holder] if it has a power only
// where the wrapped file system has it, or if a power below would bypass what the
// wrapper does. There are no capability flags.
//
// # A file system of one's own
//
// It embeds [ReadOnly] or [Unimplemented], which answer for what it does not do, and has As,
// Root, GetAttr, Lookup, Open and ReadDir. [Readable] and [ReaderFile] are an Open that only
// reads, of an io.ReaderAt. What an
// NFSv3 server needs of the attributes is [MaskV3]. Package vfstest judges the result. For
// what has an io/fs.FS already, package iofs does all of this.
//
// # Names
//
// Names are bytes. They hold neither NUL nor '/', and are neither empty nor
// "."; ".." is understood by Lookup alone and goes no higher than the root.
// Nothing promises UTF-8. [CheckName] is the rule in code.
package vfs
