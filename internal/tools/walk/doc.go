// Package walk visits every object of a directory tree, of any size, in bounded
// memory.
//
// # What it costs
//
// A directory costs the pages of its listing: attributes and handles come with the entries
// (READDIRPLUS). Further calls are made for entries that came without them, and for the attributes
// of the root. Entries are handed on as they arrive. So a slow visitor holds up the listing, and a
// directory of ten million files is never held in memory.
//
// # Order, and what is kept
//
// Several directories are listed at once, the deepest first. A subdirectory is queued when
// its entry is met. Once [queuedPerDir] children of one directory are waiting, its listing is
// suspended: the walk keeps only the position, and resumes when all of these children have
// been begun. So the walk keeps the directories on the way down to those being listed, and
// at most queuedPerDir children of each. Above [maxQueued] in all, a directory queues one
// child at a time.
//
// # Listings ahead
//
// Over a network, the walk lists the next directories before it reaches them ([aheadListings] at a
// time), in the order of its visits. Their own subdirectories join as soon as they are known. So
// the round trips of many directories overlap, also with one worker, and the order of visits stays
// the same. Directories and entries read ahead are bounded. At a bound only the reading ahead
// stops: the walk lists such directories itself. File systems that keep memory for each directory
// ([vfs.Forgetter]) are local, and are not read ahead.
//
// # A part of a tree
//
// [Options].Choose leaves entries out. A directory that is left out is neither listed nor listed ahead.
//
// # One file system
//
// With [Options].OneFileSystem a directory of another file system than the root's, by the ids that the
// attributes have, is entered and left, and not listed: what was mounted there is not visited.
//
// # Several passes
//
// A visitor that cannot take all names of a large directory at once is shown some at a time
// ([Options].Wants). For the others it has the directory listed again (Options.Again). Each pass is
// a whole listing.
//
// # Trees that change meanwhile
//
// A directory whose handle is stale at its turn is looked up once more by its name. If
// nothing has the name, that is [ErrVanished]. If another directory has it, that one is
// walked. If the directory was replaced after some of its entries were visited, that is an
// error: the entries would be of two directories.
//
// # Peers that are broken or hostile
//
//   - A name that [vfs.CheckName] refuses is a fault, and is not descended into.
//   - A directory that is one of its own ancestors, by file id or by handle, is [ErrLoop]. A
//     tree without an end stops at Options.MaxDepth with [ErrTooDeep].
//   - A listing that does not advance, or comes back to an earlier position, is [ErrStuck].
//     Two positions and a counter find it (Brent's cycle search), so some entries of the
//     cycle may be visited twice before.
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
