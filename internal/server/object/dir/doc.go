// Package dir is an object store in a local directory: a file for each object.
//
// # On disk
//
// Package layout has the names of the files, and what is in them; object/files keeps the same
// store on a server. Here the marker is locked while the store is open to write.
//
// Files are made in the directory where they stay. The kernel makes changes of names in
// one directory one by one, so they are spread over several.
//
// # How an object comes into being
//
// Its content is written to a file without a name (O_TMPFILE), and synced with fdatasync(2). Then
// the file is linked to its name, which fails if the name exists. Only to replace an object does
// the file get a temporary name, which is then renamed. Last the directory is synced, together with
// other changes in it: while one fsync(2) runs, all calls that come share the next. Directories are
// made before what is in them, and synced in the same way.
//
// So a process that is killed leaves nothing, or a temporary name, which [Store.Sweep]
// removes. Where the file system has no O_TMPFILE, every new object first has a
// temporary name: ".tmp-" and random digits of this opening of the store.
//
// # Seen is stable
//
// A name is visible from its link on, and survives a crash from the sync on. In between
// the directory's flights know it. A call that sees such a name, or its absence after a
// Delete, waits for a sync that begins after it looked. For that, one process must know
// of all changes, so the store is locked. And one syncfs(2) at Open makes stable what a
// killed process had not synced.
//
// When the sync of a directory fails, it is unknown what is on disk, and the kernel
// reports that only once. The store then refuses every change, and every look at what
// that sync was for, until it is opened again.
//
// # A reader beside the writer
//
// One process at a time writes. Another one that wants to is refused, and told whose the store is
// (layout.Holder). With Options.ReadOnly any number of processes read beside the writer. They know
// nothing of its flights: what they see may be a name that is not stable yet, or the absence
// of an object whose Delete is not. Content is whole all the same, since it is stable before its
// name. If the machine crashes in that moment, such a name is gone, and such an object back.
//
// Snapshots bear that. Their root is put when all that it leads to was acknowledged, and so is
// stable. A reader that sees a root can therefore read all of it. A crash can only take the root
// itself away, of which nothing depends: a reader stores nothing.
//
// A process that removes what readers may be reading opens the store with Options.Alone. While there are
// readers it is refused, and the error names them, as far as the kernel's list of locks tells; while it has the store, they are refused.
//
// # What is checked
//
// A Get of a whole object compares the CRC of its content at its end. A Get of a part checks only
// the object's length: the trailer has one sum for all of the content. A caller that has to verify
// parts keeps sums of them itself, or has [Store.Check] read the object. Sums of blocks would
// belong into a next version of the trailer.
//
// # Empty directories stay
//
// A Delete leaves the directory of the object, even if it was the last one there. To
// remove it would cost every Delete an rmdir(2), which mostly fails, and a sync of the
// directory above. The next Put would make it again, with a sync of its own, since
// checksums come back to every bucket. And a Put that has just opened the directory would
// have to be protected. What stays is bounded: a bucket for each beginning of a name that
// there ever was, in each directory that keys ever named, 4 KiB of disk each.
//
// # Nothing leaves the directory
//
// Every step below the root is made relative to an open directory, by one name. That has passed the
// check of keys, or comes from the store's own layout. No symbolic link is followed. Files that are
// not part of the store are not listed and not touched; [Store.Check] reports them. A listing that
// meets something else in the place of a directory or an object is [object.ErrForeign].
//
// # Bounds
//
// A Put or Get under way takes 64 KiB of memory; the caller bounds their number. Calls
// that may block on the disk take a place at a [Gate], and hold none while they wait for
// a reader. At most maxFolders directories stay open.
//
// # Locks
//
// Store.mu, folders.mu and a folder's flights.mu are each held for a few
// instructions, and only the latter two together, in that order.
package dir
