// Package cache reads files from a directory of this host that keeps what was read before: a
// [vfs.FS] over another, in the manner of FS-Cache. What is kept, and how it survives crashes, is
// the business of package store. This package decides when it may be used.
//
// # What readers may rely on
//
// Close-to-open (nfs(5), DATA AND METADATA COHERENCE): an open file has the bytes that the server
// had when it was opened, or later ones. So before the first read of an open file its attributes
// are compared with those of the entry: size, mtime, ctime, change number. They come with the
// name's look-up, or else with one ACCESS. Whatever differs, the entry is removed. While the
// file stays open they are asked for again after a time-out, from 3 seconds to a minute, as
// Linux does. NFSv3 tells nobody of others' changes.
//
// Times are coarse, and a change may follow so quickly that they stay the same. So what was
// read so soon after a change is used by those who have the file open, and never later
// (settled).
//
// # Rights
//
// Bytes in a directory know no rights. Before a caller reads any, the server has been asked
// whether it may read that object (ACCESS). The answer holds while the object's ctime is the same, and for a
// minute at most (maxAge), for other opens of the caller too. Without that right reads go to the server, which
// decides: the owner of a file, or a caller that may only execute it, may be let in by more than ACCESS tells.
//
// # Writes
//
// Nothing is written here: every byte that the store has is one that the server has. A call that
// may change a file ends the use of its entry at once, and its version is another afterwards. To
// keep the granules that a WRITE did not touch, the attributes before it would have to be
// proven to belong to it. Over NFSv3 nothing proves that (package nfs3, WCC). While a file is
// open for writing nothing of it is kept, as with FS-Cache.
//
// # Misses
//
// A granule, the unit in which files are kept, is fetched whole if it is read from its beginning, or in
// sequence, or for the second time, or is all of the file. Then only one reader fetches it, and others wait for
// that one. Granules that are covered by the reader's buffer are read straight into it, several by one READ.
// Other reads, and those beyond the bound of fetches (maxFetches), go through. What is near (vfs.Near, LOCALIO)
// is not cached.
//
// # A slow disk
//
// What the store's disk takes is measured, and what the server takes, for small reads and for others apart
// (contest). While the disk is much the slower one, its cold bytes are read from the server, and nothing is
// added. A disk that all is read from is compared as well, if it looks slow: a few reads go past it.
//
// Nothing that goes wrong with the store is an error to a reader.
//
// # How it works
//
// A node stands for an object with open files, and an entry for what the store has of it in one version. An open
// file reads from an entry under a lease, for as long as the version is believed. A change of ours, or news of
// another's, ends all leases of the object. The next read then asks the server again (validate).
//
// Locks: node.mu before those of package store; shared.mu and those of the contests alone. None is held over calls
// below.
package cache
