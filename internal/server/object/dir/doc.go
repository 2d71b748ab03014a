// Package dir is an object store in a local directory: a file for each object.
//
// # On disk
//
// Each object is a file of its own: its content, and after it a trailer of 64 bytes
// with its length and checksums (trailer). Without this program, head -c -64 gives the
// content.
//
// A key's last segment is the file's name, its other segments are directories. In
// between is one that the name chooses by its first characters (Options.Fanout),
// marked by a "=", which no key contains:
//
//	.nfsbox-store                  says what this is, and is locked while open
//	sha256/=9f/9f86d081884c...     the object "sha256/9f86d081884c..."
//	snapshots/=20/2026-11-21       the object "snapshots/2026-11-21"
//	=sn/snapshots                  the object "snapshots", which does not clash
//
// Files are made in the directory where they stay. The kernel makes changes of names in
// one directory one by one, so they are spread over several. The beginning of a name
// spreads checksums evenly, and keeps the order of keys: a page of a listing reads only
// the directories that it shows.
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
// not part of the store are not listed and not touched; [Store.Check] reports them.
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
