// Package export says who may do what: it turns file systems into exports, and
// a caller into a view of them.
//
// A [Table] holds the exports of a server. [Table.Mount] finds the directory
// that a path names; [Table.As] is a [vfs.FS] over all exports at once, as one
// caller may see them. The server's procedures, the file API and LOCALIO all
// work on that view, so that one set of rules holds whichever way a caller came
// in.
//
// # Handles
//
// A handle that leaves the view is sealed: it carries the export's number, the
// file system's own handle, and a keyed checksum (SipHash-2-4) over both. A
// handle that comes back is opened before the file system sees any of it, so a
// guessed or altered one is refused here ([vfs.ErrStale] if only the seal is
// wrong, as it is after the key was lost; [vfs.ErrBadHandle] if it cannot be one
// of ours), and a handle of one export never opens anything in another. With
// the key and the exports' numbers kept, handles are valid across restarts.
//
// The seal is no access control by itself: what a caller may do is decided on
// every call.
//
// # Safe names
//
// The view keeps the promise that NFS makes: when a change of names or
// attributes returns, it is on the disk. A file system that leaves this to its
// caller (it has the power [vfs.Syncer]) is synced by the view before the view
// answers.
package export
