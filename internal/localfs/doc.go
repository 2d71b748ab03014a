// Package localfs is a directory of a Linux host as a vfs.FS: what the server
// exports, and the near end of a local copy.
//
// # Nothing outside
//
// Every name is looked up in a directory that is open already, as a single
// component that is not followed if it is a symbolic link, so that no race of
// renames and links leads out of the tree. ".." is answered here and ends at the
// root. A directory that is named by handle is compared with the root's place
// each time: one that was moved out of the tree is vfs.ErrStale. What is mounted
// below the root is hidden and reported (Options.CrossMounts).
//
// A kernel handle of anything but a directory does not tell where the object
// lies. That such a handle was handed out for this tree, and not guessed, is
// for the seal of the layer above to show.
//
// # Handles
//
// There are two kinds, chosen by New: the kernel's own (handle_kernel.go), which
// cost nothing and need a privilege and a file system that has them, and
// numbers in a map on disk (handle_map.go, maplog.go), for all other places. Both
// survive restarts and renames. Both take at most 51 bytes.
//
// # Whose rights
//
// With root, what makes, changes or removes a name, sets attributes or writes
// runs under the credentials of the caller, on the thread of the call
// (creds.go); the kernel judges. Looking names up, listing and reading go through
// descriptors that the server opened once for all callers, and are judged by the
// mode that the call's own statx has brought; where an access control list says
// more than the mode, the kernel is asked. As in Linux nfsd the owner of a file
// may read and write it whatever its mode, and who may execute it may read it.
// A process with CAP_SYS_RESOURCE has to lay that down and take it up again on
// each such call; a server that gives it up at its start saves the time.
//
// Without root there is one user, and all callers are squashed to him: what they
// make is his, and what they may is judged by mode bits, and not at all where a
// list stands behind them ([FS.Squashed]).
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
// # Waiting
//
// A context is looked at when a call begins. A system call in progress cannot
// be interrupted, so a call may outlast its context by as long as the disk takes.
//
// # Locks
//
// Objects share lockStripes locks, which order the changes of one object for the
// sake of its attributes before and after. They are taken before all others; two
// of them in ascending order. Then, each under the one before:
// mapHandles.moving, mapHandles.mu, mapLog.mu. The locks of the descriptor cache
// and of the flights are held for a few instructions only, and none is taken
// under them.
//
// Everything that changes the disk goes through [Sys].
package localfs
