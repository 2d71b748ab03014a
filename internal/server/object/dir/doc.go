// Package dir keeps an object store in a local directory.
//
// # On disk
//
// Each object is a file of its own: its content, and behind it a trailer of 64
// bytes with its length and checksums (trailer). A user that has lost this program can get
// at the content of all files with head -c -64.
//
// A key's last segment is the file's name, its other segments are directories. In
// between is one that the name chooses by its first characters (Options.Fanout),
// marked by a "=", which no key contains:
//
//	.nfsbox-store                  says what this is, and is locked while open
//	sha256/=9f/9f86d081884c...     the object "sha256/9f86d081884c..."
//	snapshots/=20/2026-11-21       the object "snapshots/2026-11-21"
//	=sn/snapshots                  the object "snapshots", in nobody's way
//
// Files are made in the directory where they stay, and a directory lets in one
// change of its names at a time, so names in one directory queue for it. The
// beginning of a name spreads checksums evenly, and keeps the order of keys, so
// that a page of a listing reads the directories that it shows and no others.
//
// # How an object comes into being
//
// Its content is written to a file without a name (O_TMPFILE), synced with
// fdatasync(2), and then linked to its name, which fails if there is one. Only to
// replace an object does the file get a temporary name, which is then renamed.
// Last the directory is synced, together with what others have changed in it
// meanwhile: one fsync(2) runs, and all who come while it does share the next.
// Directories come into being before what is in them, and are synced likewise.
//
// So a process that is killed leaves nothing, or a temporary name, which
// [Store.Sweep] removes. Where the file system has no O_TMPFILE every new object
// has a temporary name, beginning with ".tmp-" and random digits of this store's
// life.
//
// # Seen is stable
//
// A name can be seen from its link on, and survives a crash from the sync on. In
// between it is among those that the directory's flights know. A call that sees such
// a name, or its absence after a Delete, waits for a sync that begins after it
// looked. That takes one process to know of all changes, which is why the store is
// locked; and one syncfs(2) when it is opened, for what a killed one had not
// synced.
//
// When the sync of a directory fails nobody knows what is on disk, and the kernel
// will not say it again. The store then refuses every change, and every look at
// what that sync was for, until it is opened anew.
//
// # What is checked
//
// A Get of a whole object is held against the CRC of its content at its end. One of a
// part is held against nothing but the object's length: the trailer has one sum for
// all of the content, which a part does not tell anything about. A caller that reads parts
// and must know keeps sums of them itself, as a store of backups does of its
// packs, or has [Store.Check] read the object. A sum for each block belongs into a
// trailer of the next version, should one be needed.
//
// # Empty directories stay
//
// A Delete leaves the directory in which the object was, also if it was the last. To
// remove it costs an rmdir(2), which fails as long as there is another object, and a
// sync of the directory above, on every Delete; and the next Put makes it again, with a
// sync of its own, since names of checksums come back to every bucket. It would also
// have to be kept from those who have just opened it to put an object there. What
// stays is bounded: a bucket for each beginning of a name that there ever was, in each
// directory that keys ever named, 4 KiB of disk each.
//
// # Nothing leaves the directory
//
// Every step below the root is made relative to an open directory, by one name
// that a key's check or the store's own layout has let through, and no symbolic
// link is followed. What is there and is not the store's is not listed and not
// touched; [Store.Check] reports it.
//
// # Bounds
//
// A Put or Get under way takes 64 KiB of memory; how many there are is up to the
// caller. Calls that may block on the disk have a place at a [Gate]; none is held
// while a reader is waited for. Directories stay open up to maxFolders.
//
// # Locks
//
// Store.mu, folders.mu and a folder's flights.mu are each held for a few
// instructions, and only the latter two together, in that order.
package dir
