// Package localfs is a directory of a Linux host as a vfs.FS, for the server: with handles
// that outlive restarts, the rights of each caller, and writes that are stable when it says so.
//
// # The rooms below
//
//	linux      system calls, with the contract's errors
//	fdcache    descriptors that are kept open between calls, and which of them are dirty
//	handlemap  handles where the kernel gives none: a map on disk
//	mounts     what is mounted below the root; read-only doubles of mounts
//	identity   a thread acts as the caller
//	ofd        locks on ranges, as the kernel's own
//	inotify    watches of the rights to objects
//
// This package has a file for each operation, and what they share: object.go (a handle
// becomes a descriptor), gate.go (when a call may block, and what it locks), access.go
// (rights), writer.go (the writer's identity). Its files use each other in one direction only.
//
// # Nothing outside
//
// Every name is looked up in a directory that is open already, as a single component. A symbolic
// link is not followed. So no race of renames and links leads out of the tree. ".." is answered
// here and ends at the root. A directory that is named by handle is compared with the root's place
// each time. One that was moved out of the tree is vfs.ErrStale, and so is all that lies below it.
//
// A kernel handle of anything but a directory does not tell where the object lies, which
// may be in several places. The seal of the layer above shows that such a handle was handed
// out for this tree. A file that a local program moves out can still be read by clients
// that had its handle, as if they had it open.
//
// What is mounted below the root is hidden and reported, or part of the tree
// (Options.CrossMounts). Then each mount has an fsid of its own, in handles too; ".." of its
// root is the directory that it is mounted in; and nothing is renamed or linked across.
//
// # Handles
//
// There are two kinds, and New chooses: the kernel's own (handle_kernel.go), which cost nothing and
// need a privilege and a file system that has them, and those of package handlemap. Both survive
// restarts and renames, and take at most 51 bytes. No handle comes to name another object: one
// whose inode number is used again is stale, and remains so. The map knows objects by their time of
// birth, and by the handle that the kernel gives without any privilege. The common file systems
// have one and, with Linux 6.6, overlayfs. On a file system that keeps neither it has the number
// alone. There, what has the number at the same name is taken for the object, and nothing is
// searched for.
//
// # Whose rights
//
// With root, a call that changes names or attributes runs under the credentials of the caller, and
// the kernel judges. The thread of the call takes them (package identity). Look-ups, listings,
// reads and writes go through descriptors that the server opened once for all callers. They are
// judged by the mode that the call's own statx has brought; where an access control list says more
// than the mode, the kernel is asked. A write is made as the caller where that could make a
// difference: see writer.go. As in Linux nfsd, the owner of a file may read and write it whatever
// its mode. A caller that may execute it may read it. A process with CAP_SYS_RESOURCE drops and
// regains it on each call for another user; a server that gives it up at its start saves the time.
//
// Without root there is one user, and all callers are squashed to it: what they make is
// its own. What they may is judged by mode bits, and not granted where a list stands behind
// them ([FS.Squashed]). No other caller makes a program that runs as that user: the set-id
// bits are left out, and fall when another caller writes.
//
// # What is stable when
//
// Names and attributes are stable after Sync (this FS is a vfs.Syncer), data after Commit or
// a write that asked for it. Concurrent syncs of one object share the work. Where many
// objects are synced at once, in an ext4, their calls share one syncfs(2) (whole.go and package
// syncfs). A file that
// holds uncommitted data keeps the descriptor that wrote it until a sync has gone well: the
// kernel reports a failed one only to descriptors that were open then. Any failure changes
// the write verifier, and clients send their data again. A handle from the map is stable
// before it is returned, and a rename is noted in the map before it is made.
//
// # Files of other processes
//
// A file can be opened for another process of this host ([FS.OpenHost]), which then reads
// and writes it by itself. That process syncs what it writes, and no write verifier of ours
// speaks of it. Its syncs do not hide errors from ours: the kernel tells each open
// description of a failed write-back once, whatever it told others (errseq_t). Our
// descriptor was open before the data were written through us, so Commit hears of the
// failure and changes the verifier. The other way round, our sync makes stable what the
// other process has written until then, which does no harm. A process that writes by both
// roads has to sync on one before it goes over to the other, as our own client does: each
// road has a verifier of its own. Once a file was handed out to be written, attributes from
// before a change are left out for all files, as with Options.LocalWriters.
//
// Sealed files are opened through a read-only double of their mount (package mounts). They
// leave no trace in the time of the last access.
//
// # Descriptors
//
// Descriptors are kept open between calls (package fdcache), up to Options.MaxOpen. A call that
// needs a mere reference takes whatever is open: a file that was just made is not opened once more
// to be looked at. What is idle is closed after some seconds, what can write first. So a program
// can be executed after its upload, and local programs hear that the file was closed. A file that a
// local program removes gives its blocks back. Dirty descriptors are synced before; a write that
// would make too many of them first syncs another file. Dirty descriptors and locks have a bound
// each, and both together leave a quarter to all others.
//
// # Waiting
//
// Every call that may wait for a disk has a place in the gate meanwhile. No call that has a place
// waits for another one, or for a call that changes the same directory or file (gate.go). There is
// one exception: a call that finds all descriptors dirty syncs one in the place that it has
// (cleanOldest). Bytes and attributes in memory are had without a place. A context is looked at
// when a call begins, and while it waits for a place or for another's sync. A system call in
// progress cannot be interrupted, so a call may outlast its context by as long as the disk takes. A
// call that waits for a lock of changes waits for those before it. They are no more than the calls
// in progress.
//
// # Locks within
//
// Changes of one object are ordered for the sake of its attributes before and after. lockStripes
// locks are shared by all objects, and by all FS with the same Options.Locks. They are taken before
// all others; two of them in ascending order. A call that waits for one has no place in the gate; a
// call that has one waits for no place. Then come, each under the one before, the locks of the map
// (package handlemap). Under any of them that of the table of mounts may be taken, and under that
// one of a double; and that of the watches, under which watchers are told. Four locks are held for
// a few instructions only, and none is taken under them: those of the descriptor cache, of its list
// of dirty ones, of shared syncs, and of the table of locked files. Options.Report is told of a hidden
// mount point under the lock of those that were reported.
//
// Everything that changes the disk goes through [Sys].
package localfs
