// Package walk visits every object of a directory tree, of any size, in bounded
// memory.
//
// # What it costs
//
// A directory costs the pages of its listing and nothing else: attributes and
// handles come with the entries (READDIRPLUS). Only for an entry that came
// without them is the peer asked again, and once for the attributes of the root.
// Entries are handed on as they arrive, so that a visitor which is slow holds up
// the listing, and a directory of ten million files is never held in memory.
//
// # Order, and what is kept
//
// Several directories are listed at once, the deepest first. A subdirectory is
// queued when its entry is met. Once [queuedPerDir] children of one directory
// are waiting, its listing is suspended: the walk keeps the position, which is
// a plain value, takes the listing up again when all of the children have been
// begun, and holds no page and no descriptor meanwhile. What is kept is thus the
// directories on the way down to those being listed, and at most queuedPerDir
// children of each; above [maxQueued] in all, a directory queues one child at a
// time.
//
// # Listings ahead
//
// Over a network the listings of the directories that come next are begun before
// the walk is there ([aheadListings] at a time), in the order in which it will
// come to them; their own subdirectories take part as soon as they are known. So
// the round trips of many directories go together, also for a walk with one
// worker, whose order stays what it was. What is read ahead is bounded by
// directories and by entries; at a bound the reading ahead stops, never the walk,
// which lists itself what nobody has begun. File systems that keep something for
// each directory ([vfs.Forgetter]) are of this host, and are not read ahead.
//
// # Trees that change meanwhile
//
// A directory whose handle is dead when its turn comes is looked up once more by
// its name. If nothing has the name, that is [ErrVanished]; if another directory
// has, that one is walked. One that is replaced after some of its entries have
// been visited is an error: they and the others are not of one directory.
//
// # Peers that are broken or hostile
//
//   - A name that [vfs.CheckName] refuses is a fault, and is never descended.
//   - A directory that is among its own ancestors, by file id or by handle, is
//     [ErrLoop]; a tree that pretends to have no end stops at Options.MaxDepth
//     with [ErrTooDeep].
//   - A listing that does not advance, or comes back to where it was, is
//     [ErrStuck]. It is found with two positions and a counter (Brent's cycle
//     search), so that entries of the cycle may have been visited again by then.
//   - A listing whose position the server no longer knows ([vfs.ErrBadCookie])
//     begins again, at most [maxRestarts] times. The client of NFSv3 does so by
//     itself, for directories of any size; what is left to the walk are listings
//     that it had suspended, of which no client can know what was visited, and
//     file systems without that art. Entries that were visited before are
//     recognised by 64-bit hashes of their names under a random key and not
//     visited again. The hashes of [maxRemembered] names are kept; if the listing
//     had got further than that, it ends with [ErrRestart].
//
// All of these are reported to the visitor, which decides whether the walk goes on.
package walk
