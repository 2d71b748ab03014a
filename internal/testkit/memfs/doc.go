// Package memfs is a file system in memory: the fake that everything above
// package vfs is tested against, and therefore as truthful as a disk.
//
// It has hard links, symbolic links, devices, pipes and sockets, permission
// checks for the caller of each view, sparse files, rename in all its cases,
// and listings that can be resumed while the directory changes. What differs
// between file systems follows Linux: access times move as under relatime, a
// write by anyone but the superuser takes set-uid and set-gid away, and a
// directory that is moved to another parent must itself be writable. Files can be
// locked and have access control lists ([vfs.Locker], [vfs.ACLer]).
//
// # What a test can do to it
//
// [FS.Restart] is a power cut: bytes that were written unstable and not
// committed are forgotten, files without a name are gone, and the write verifier
// changes. Names and attributes are stable at once, as of an NFS server.
// Stability is kept by pages of 4096 bytes, so that a commit of one range does
// not save another that a careless client forgot.
//
// Options.Fault is asked before every operation, without a lock held, and may
// wait, fail, or count. Options.ReadMax and WriteMax make transfers short.
// [FS.OpenFiles] counts what was opened and not closed.
//
// # Handles and places
//
// A handle is 16 bytes: the inode number and the identity of the FS, both big
// endian. Inode numbers are not used twice. The cookie of an entry is given when
// the name is made and grows within its directory; it starts at 3, so that a
// server can give 1 and 2 to "." and "..".
//
// # Locks
//
// One lock, tree.mu, guards everything; it is never held while a hook runs or
// while an iteration yields. A second one guards the cache of views alone, and
// neither is taken under the other.
package memfs
