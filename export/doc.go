// Package export says who may do what: it turns file systems into exports, and
// a caller into a view of them.
//
// A [Table] holds the exports of a server. [Table.For] is a [View]: a [vfs.FS]
// over all exports at once, as one caller of one client may see them;
// [View.Mount] finds the directory that a path names. The server's procedures,
// the file API and LOCALIO all work on that view, so that one set of rules holds
// whichever way a caller came in. [Table.As] is the view of the program itself,
// whom no rule concerns.
//
// # Rules
//
// An [Export] has a list of rules, and the first that matches a client decides
// whether it may use the export, whether it may change anything, and who its
// callers are: [Rule] has the details. The terms are those of exports(5), with
// two differences: the order is the one written, not the most specific first,
// and a rule that another keeps from ever being reached is an error.
//
// Rules are applied on every call, and cost next to nothing: what they make of a
// caller is worked out at its first call and remembered by its view, until the
// exports are replaced or a name that was looked up grows old. Look-ups are
// bounded in number and time, and a call waits for them two seconds at most. What is
// not known then is [vfs.ErrBusy], which clients ask again for, and no refusal.
// Clients that a rule lets in by name have a share of the look-ups, and of what is
// remembered, that no stranger has a part of.
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
// # Reload
//
// [Table.Replace] puts other exports in force while calls are made. Every call
// sees the exports of one moment; those that are under way end as they would
// have, and the next call of each view is judged anew. A file system that is no
// longer exported is still used by the former: [Table.Drain] waits for them, and
// then it can be closed.
//
// # Files for other processes
//
// [View.OpenHost] opens a file for another process of this host, which then reads
// and writes it by itself (LOCALIO). Rules are applied before, and cannot be
// afterwards; so a file goes only to a process to which it gives nothing that the rules would
// not, and [View.Watch] tells when what it was given for has ended. All views of a
// table that have a file system in common hear of one another's changes. While
// nothing is watched, that costs a change one look at a counter, and a change of
// names an uncontended lock beside it.
//
// # Safe names
//
// The view keeps the promise that NFS makes: when a change of names or
// attributes returns, it is on the disk. A file system that leaves this to its
// caller (it has the power [vfs.Syncer]) is synced by the view before the view
// answers, unless the export is async.
package export
