// Package outage answers for a server that does not: a [vfs.FS] over another. It is for a proxy,
// which serves others with what it is told, and may not keep them waiting.
//
// # Bounded time
//
// A call that has no answer after Options.Answer is a [BusyError], which is [vfs.ErrBusy]: NFS3ERR_JUKEBOX to a
// client of a server, which comes again by itself. If nothing at all was heard of the server meanwhile it is taken
// for silent, and calls are a BusyError at once, until it answers one of the questions that are put to it every
// second. No other error is made of silence: a handle is never called stale because nobody was asked.
//
// # Changes
//
// A change that has no answer may have been made. To make it again would be wrong: a MKDIR that found its own
// directory would tell EEXIST to its only maker. So it goes on, under the number that the server knows it by, and
// the next call of that caller with the same change takes it over, with its outcome (change.go). One takes it
// over, and no more. SETATTR without a guard, WRITE and COMMIT do the same however often they are made, and simply
// end.
//
// # While the server is silent
//
// With Options.Offline, attributes, rights and the handles of names are remembered, each for so long after the server
// told them, and are told on in its stead while it is silent (memory.go). They are what a cache above needs to go on
// reading what it has. A right is remembered for the caller that had it, and while the object's ctime
// is the one that it was told with. Nothing is changed, listed or locked meanwhile.
//
// Locks: memory.mu and changes.mu are held over no call, and neither is taken under the other.
package outage
