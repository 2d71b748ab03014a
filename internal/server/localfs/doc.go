// Package localfs is a directory of a Linux host as a vfs.FS: what the server
// exports, and the near end of a local copy.
//
// # Nothing outside
//
// Every name is looked up in a directory that is open already, as a single
// component that is not followed if it is a symbolic link, so that no race of
// renames and links leads out of the tree. ".." is answered here and ends at the
// root. A directory that is named by handle is compared with the root's place
// each time: one that was moved out of the tree is vfs.ErrStale, and so is all
// that lies below it.
//
// A kernel handle of anything but a directory does not tell where the object
// lies, which may be in several places. That such a handle was handed out for
// this tree, and not guessed, is for the seal of the layer above to show; a file
// that is moved out by a local program can still be read by those who had its
// handle, as if they had it open.
//
// What is mounted below the root is hidden and reported, or part of the tree
// (Options.CrossMounts): then each mount has an fsid of its own, in handles too
// (mounts.go), ".." of its root is the directory that it is mounted in, and
// nothing is renamed or linked across.
//
// # Handles
//
// There are two kinds, chosen by New: the kernel's own (handle_kernel.go), which
// cost nothing and need a privilege and a file system that has them, and
// numbers in a map on disk (handle_map.go, maplog.go), for all other places. Both
// survive restarts and renames. Both take at most 51 bytes. No handle comes to name
// another object: one whose inode number is used again is stale, and remains so.
// The map goes by the handle that the kernel gives without any privilege on the
// common file systems and, with Linux 6.6, on overlayfs, and by the time of birth.
// A file system that keeps neither leaves it the number: there what has the number
// at the same name is taken for the object, and nothing is searched for.
//
// # Whose rights
//
// With root, what makes, changes or removes a name and what sets attributes runs
// under the credentials of the caller, on the thread of the call (creds.go); the
// kernel judges. Looking names up, listing, reading and writing go through
// descriptors that the server opened once for all callers, and are judged by the
// mode that the call's own statx has brought; where an access control list says
// more than the mode, the kernel is asked. A write is made as the caller where
// that could make a difference: see writer.go. As in Linux nfsd the owner of a
// file may read and write it whatever its mode, and a caller that may execute it may read
// it. A process with CAP_SYS_RESOURCE has to lay that down and take it up again on
// each call for another; a server that gives it up at its start saves the time.
//
// Without root there is one user, and all callers are squashed to him: what they
// make is his, and what they may is judged by mode bits, and not at all where a
// list stands behind them ([FS.Squashed]). Nobody but that user makes a program that
// runs as him: the bits for it are left out, and fall when another writes (setid.go).
//
// # What is stable when
//
// Names and attributes are stable after Sync (this FS is a vfs.Syncer), data
// after Commit or a write that asked for it. Concurrent syncs of one object
// share the work. A file that holds uncommitted data keeps the descriptor that
// wrote it until a sync has gone well, because the kernel reports a failed one
// only to descriptors that were open then; any failure changes the write
// verifier, and clients send their data again. A handle from the map is stable
// before it is returned, and a rename is noted in the map before it is made.
//
// # Files of other processes
//
// A file can be opened for another process of this host ([FS.OpenHost]), which then
// reads and writes it by itself. What it writes is its own to sync, and no write
// verifier of ours speaks of it. Nor do its syncs get in the way of ours: the
// kernel tells each open description of a failed write-back once, whatever others were
// told (errseq_t), and our descriptor has been open since before what was written
// through us, so Commit hears of the failure, and changes the verifier, also if the
// other process' fsync has met it first and the kernel takes the pages for clean
// since. The other way round our sync makes stable what the other process has
// written until then, which does no harm. And the process that writes by both roads
// has to sync on the one before it goes over to the other, as its own client does,
// because each road has a verifier of its own. From the first file on that goes out
// to be written, attributes from before a change are left out for all files, as with
// Options.LocalWriters.
//
// A caller that wants to know when the rights to a file change, or its names, is
// told ([FS.Watch]).
//
// Sealed files are opened through a read-only double of their mount (seal.go). They
// leave no trace in the time of the last access.
//
// # Locks of clients
//
// Locks on ranges of files are the kernel's as well, of the kind that belongs to
// an open description (flock.go), so that they hold against the programs of this
// host, and theirs against clients. They outlive renames and removals, and end
// with Close.
//
// # Descriptors
//
// What is asked for is kept open (fdcache.go), by handle and by what it is open
// for, up to Options.MaxOpen. A call that needs a mere reference takes whatever is open:
// a file that was just made is not opened once more to be looked at. What nobody uses is
// closed after some seconds, what can write first (sweep.go), so that a program can be
// executed after its upload, local programs hear that the file was closed, and a
// file that a local program removes gives its blocks back. What holds uncommitted data
// is synced before, then or when room is short. There may be so much of that: the write
// that would make it more first syncs another file. Locks, too, have a share, and both
// together leave a quarter to all others.
//
// # Waiting
//
// Every call that may have to wait for a disk has a place in the gate meanwhile
// (door.go), and no call that has one waits for another, or for one that is changing the
// same directory or file (locks.go). There is one exception: a call that finds all
// descriptors dirty syncs one in the place that it has (cleanOldest). Bytes and
// attributes that are in memory are had without. A context is looked at when a call
// begins, and while it waits for a place or for another's sync. A system call in progress
// cannot be interrupted, so a call may outlast its context by as long as the disk takes;
// and one that waits for a stripe does so for as long as those before it, which are no
// more than the calls in progress.
//
// # Locks within
//
// Objects share lockStripes locks, and FS of one process may (Options.Locks), which
// order the changes of one object for the
// sake of its attributes before and after. They are taken before all others; two
// of them in ascending order. Then, each under the one before:
// mapHandles.moving, mapHandles.mu, mapLog.mu. Under any of them mounts.mu may be
// taken, and under that a seal.mu; and inotify.Watches.mu, under which others are told what
// has changed. lockedFile.mu is taken by who holds none of these. The locks of the
// descriptor cache, of what is dirty, of the flights and of the table of locked
// files are held for a few instructions only, and none is taken under them. A call that
// waits for one of the stripes has no place in the gate, and one that holds a stripe waits
// for none; one that waits for any of the others has one already.
//
// Everything that changes the disk goes through [Sys].
package localfs
