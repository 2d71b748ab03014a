// Package dirfs is the local end of the tools: a vfs.FS over a directory of this
// host, on Linux, macOS and Windows. The server's is package localfs.
//
// # What a handle is, and how long it lives
//
// There is no table of objects. A handle holds the number of the directory that the
// object was found in (a [slot]), the object's name there, and what it was: device,
// inode number, time of birth and, on Linux, the mount. Whatever is done by a handle
// looks the name up, and what it finds must be that object: if not it is
// vfs.ErrStale, and never another object. Where the time of birth is not kept, or may
// change (Linux' file systems without a device), an inode number that is used again
// under the same name cannot be told apart.
//
// A handle outlives what this FS itself renames, links and removes: the last
// [maxMoved] places that objects were given are known, and behind that the
// directory is searched for the inode. It need not outlive renames by others, nor
// the FS. A directory that is in use outlives them as long as it is held open.
//
// # What is kept
//
// A slot for every directory that was listed or looked into, about 400 bytes, until
// it is forgotten ([vfs.Forgetter]); [maxForgotten] of these are kept a while longer,
// for what is still under way. Of those that nobody forgets, [maxSlots] are kept, and
// handles that lead through one that had to go are vfs.ErrStale. Nothing is kept for
// an object that is no directory, but for names that do not fit a handle.
//
// # Descriptors
//
// An FS works within a share of RLIMIT_NOFILE ([Options].Descriptors), and so does
// with trees of any depth: every call opens what it needs, name by name, from the
// nearest directory that is open. A call, and an Open, waits for a descriptor
// rather than fail: a program that holds more files open than there are descriptors for
// files, and waits for one more, waits until its context ends.
//
// # Links and mounts
//
// Names are opened one at a time, below a directory that is open, and never through
// a symbolic link, even if one is put there while it is looked at. (On Windows os.Root
// keeps a path within the root, but may follow a link that somebody swaps in between
// two looks.) The root itself is the caller's word, and may be a link.
//
// Mounts are crossed, as cp(1) and tar(1) do. With Options.OneFileSystem a directory
// that something is mounted on is there, and empty; FS.Mounts counts them.
//
// # Whose rights, and what blocks
//
// Everything is done as the process: As returns the same view for every caller. Disk
// calls are made by the goroutine that asks, at most [maxCalls] at once; a context is
// looked at before a call and not within.
package dirfs
