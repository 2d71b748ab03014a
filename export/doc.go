// Package export decides which client may use which file system, and as which user: it
// gives a server the view that one caller has of all exports.
//
// A [Table] holds the exports of a server. [Table.For] returns a [View]: a [vfs.FS]
// over all exports at once, as one caller of one client may see them.
// [View.Mount] finds the directory that a path names. The server's procedures,
// the file API and LOCALIO all work on that view, so one set of rules holds
// whichever way a call came in. [Table.As] returns the view of the program itself,
// which no rule concerns.
//
// # Rules
//
// An [Export] has a list of rules, and the first that matches a client decides
// whether it may use the export, whether it may change anything, and who its
// callers are: [Rule] has the details. The terms are those of exports(5), with
// two differences: the order is the one written, not the most specific first,
// and a rule that another keeps from ever being reached is an error.
//
// Rules are applied on every call. A view works out at its first call what they
// make of its caller, and remembers the result until the exports are replaced or a
// name that was looked up grows old. Look-ups are bounded in number and time: a call
// waits at most two seconds for names, and two for groups. What is not known then is
// [vfs.ErrBusy]: clients send the call again, which they would not after a refusal.
// Clients that a rule lets in by domain have look-ups and remembered answers
// reserved for them, which strangers cannot use up.
//
// # Handles
//
// A handle that leaves the view is sealed: it carries the export's number, the
// file system's own handle, and a keyed checksum (SipHash-2-4) over both. A
// handle that comes back is checked before the file system sees any of it. A
// guessed or altered handle is [vfs.ErrStale] if only the seal is wrong, as after
// the key was lost, and [vfs.ErrBadHandle] if its form is not ours. A handle of one
// export never opens anything in another. Handles stay valid across restarts as long
// as the key and the exports' numbers are kept.
//
// The seal is no access control by itself: what a caller may do is decided on
// every call.
//
// # Reload
//
// [Table.Replace] puts other exports in force while calls are made. Every call
// sees one version of the exports. Calls under way finish by the old one, and the
// next call of each view is judged anew. Calls under way may still use a file system
// that is no longer exported: [Table.Drain] waits for them, and then the file system
// can be closed.
//
// # Files for other processes
//
// [View.OpenHost] opens a file for another process of this host, which then reads
// and writes it by itself (LOCALIO). Rules can be applied only before the file is
// handed out. So a process gets a file only if it gains nothing by it that the rules
// refuse, and [View.Watch] tells when the reason for the grant has ended. All views of
// a table that share a file system hear of one another's changes. While nothing is
// watched, this costs a change one load of a counter, and a change of names also an
// uncontended lock.
//
// # Safe names
//
// The view keeps the promise that NFS makes: when a change of names or
// attributes returns, it is on the disk. A file system that leaves this to its
// caller (it has the power [vfs.Syncer]) is synced by the view before the view
// answers, unless the export is async.
package export
