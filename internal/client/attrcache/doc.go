// Package attrcache keeps attributes, names and rights for a while, as the Linux client does
// (nfs(5), DATA AND METADATA COHERENCE): a [vfs.FS] over another, which is asked less often.
//
// # What callers may rely on
//
// NFSv3 tells nobody of others' changes. So what is kept is believed for a time, and what another
// client changes meanwhile is seen when that is over. The time of an object starts at a minimum,
// doubles each time that nothing has changed, up to a maximum, and is the minimum again after a
// change. The four bounds are acregmin, acregmax, acdirmin and acdirmax.
//
// Close-to-open: an Open asks for the name anew, and attributes and rights that were asked for
// before it are not believed any more. So is it with a lock: its holder wants to see what others
// wrote.
//
// The client's own changes are seen at once. Nothing is believed of an object that a call is
// changing, and nothing that was asked for before the change is entered after it. Each question and
// each change takes a ticket from one counter, and tickets tell the order ([shared.orderly]). An
// access time is no change: it may be as old as the other attributes.
//
// # Names
//
// A name, or that there is none, is believed as long as its directory is known not to have changed,
// and no longer than acdirmax. All that is kept of a directory's names is of one epoch. Attributes
// that show another version of the directory begin a new one, and the names of the old one are
// forgotten. The client's own change of a directory ends no epoch: it concerns one name. But it hides
// what others have changed just before, unless the server proves that nothing has ([vfs.WCC], Atomic;
// over NFSv3 never). Without that proof the epoch goes on until its time is over, and is not extended.
//
// Names that differ in case share one place, since a server may take them for one name.
//
// A REMOVE or RENAME changes the object that had the name, too. If the name is not known here, that
// object is not either: then no attributes are believed that were asked for before, of files or of
// directories, whichever it may be.
//
// # Rights
//
// An answer to ACCESS is believed for the caller that it was given to, and no other. A caller is
// told a kept name only if the server has lately let this very caller search the directory: it
// answered an ACCESS so, or a LOOKUP there. Attributes are the same for all: GETATTR takes no right.
//
// # Failures
//
// What a change that failed was about is forgotten: it may have taken effect. A handle that is stale
// is remembered as such, so that names that lead to it are asked for anew.
//
// Locks: shared.mu is a leaf, and is held over no call.
package attrcache
