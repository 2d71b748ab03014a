// Package memfs is a file system in memory: the fake that everything above package vfs is
// tested against, and what vfs/memfs gives to other programs. It behaves like one on disk.
//
// It has hard links, symbolic links, devices, pipes and sockets, permission checks for the
// caller of each view, sparse files, rename in all its cases, and listings that can be resumed
// while the directory changes. Where file systems differ it follows Linux: access times change
// as under relatime, a write by anyone but the superuser clears set-uid and set-gid, and a
// directory that is moved to another parent must itself be writable. Files can be locked and
// have access control lists and extended attributes ([vfs.Locker], [vfs.ACLer],
// [vfs.Xattrer]).
//
// # What tests can do
//
// [FS.Restart] is a power failure: uncommitted unstable bytes are lost, files without a name
// are gone, and the write verifier changes. Names and attributes are stable at once, as on an
// NFS server. Stability is kept by pages of 4096 bytes, so that a commit of one range does not
// save another that a client forgot.
//
// Options.Fault is called before every operation, without a lock held, and may wait, fail, or count.
// Options.ReadMax and WriteMax make transfers short. [FS.OpenFiles] counts the open files.
//
// # Handles and places
//
// A handle is 16 bytes: the inode number and the identity of the FS, both big endian. Inode
// numbers are not used twice. An entry gets its cookie when its name is made. Cookies grow
// within a directory and start at 3, so that a server can give 1 and 2 to "." and "..".
//
// # Locks
//
// One lock, tree.mu, guards everything. It is never held while a hook runs or an iteration
// yields. A second one guards only the cache of views. The two are never held together.
package memfs
