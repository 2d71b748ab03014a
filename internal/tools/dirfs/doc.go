// Package dirfs is the local end of the tools: a vfs.FS over a directory of this
// host, on Linux, macOS and Windows. The server's is package localfs.
//
// # What a handle is, and how long it lives
//
// There is no table of objects. A handle holds the number of the directory where the object
// was found (a [slot]), the object's name there, and its identity: device, inode number, time
// of birth and, on Linux, the mount. Every use of a handle looks the name up and compares the
// identity. If another object is there, that is vfs.ErrStale. Where the time of birth is not
// kept, or may change (Linux' file systems without a device), a new object that gets the
// inode number under the same name cannot be told apart.
//
// A handle outlives renames, links and removals by this FS: the last [maxMoved] new places
// are kept, and beyond them the directory is searched for the inode. It need not outlive
// renames by others, nor the FS. A directory that is held open outlives them.
//
// # What is kept
//
// A slot for every directory that was listed or looked into, about 400 bytes, until it is
// forgotten ([vfs.Forgetter]). [maxForgotten] forgotten slots are kept a while longer, for
// calls in flight. In all, [maxSlots] are kept; handles that lead through a dropped one are
// vfs.ErrStale. Of other objects the last [maxMoved] that were moved or linked, the last
// [maxGone] that were removed, and [maxLong] names that do not fit a handle are kept.
//
// # Descriptors
//
// An FS works within a share of RLIMIT_NOFILE ([Options].Descriptors), in trees of any
// depth: every call opens what it needs, name by name, from the nearest open directory. A
// call, and an Open, waits for a descriptor instead of failing. If a program waits for one
// more file while it holds all that the share allows, it waits until its context ends.
//
// # Links and mounts
//
// Names are opened one at a time, below an open directory, and never through a symbolic
// link, even if one is put there meanwhile. On Windows os.Root keeps paths within the root,
// but may follow a link that is swapped in between two steps. The root itself may be named
// by a link.
//
// Mounts are crossed, as by cp(1) and tar(1). With Options.OneFileSystem a mount point is
// shown as an empty directory; FS.Mounts counts them.
//
// # What is stable
//
// Sync and Commit make objects and files stable by fsync(2). On Linux, in an ext4, calls that
// come at once share one syncfs(2) of all of it instead, while that is not dear and has not
// failed: see package syncfs.
//
// # What is stable on Windows
//
// Sync flushes files and directories to which the process may write, where the file system
// knows how. All else (links, read-only files, other directories) it leaves as it is, and
// returns nil: their names and attributes may be lost when the power fails. What is written
// to a file is flushed in any case, or is an error.
//
// # Whose rights, and what blocks
//
// The process's own rights apply: As returns the same view for every caller. Disk calls are
// made by the calling goroutine, at most [maxCalls] at once. A context is checked before a
// call, not during it.
package dirfs
