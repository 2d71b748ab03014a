// Package sim holds the test doubles of what nfsbox cannot command: the clock
// ([Clock]), chance ([Rand]), the network ([Network]) and a disk that loses
// power ([Disk]). What they do follows from a seed, so that a failure can be
// had again.
//
// The network works on package time: inside a testing/synctest bubble its
// latencies and deadlines pass in no time at all, and everything that waits
// waits durably.
//
// # The disk that forgets
//
// Killing a process does not lose what it wrote: the kernel's page cache keeps
// it, and a server that never syncs passes every test by SIGKILL. A [Disk]
// stands between a program and the kernel at the calls that change something
// ([Sys]), over a real directory, and notes what each call made unstable: for
// each directory, the names that were changed since its last fsync; for each
// object, its attributes and the pages that were overwritten since its own.
// [Disk.Crash] then turns the real tree back, in place, into what a disk may
// hold after the power went:
//
//   - Bytes survive if fdatasync, fsync or syncfs followed them, and the size
//     with them. Attributes survive fsync and syncfs; of an object that is new
//     in a directory, also the first fsync of that directory.
//   - A name made, removed or replaced survives if an fsync of its directory
//     followed. A rename between two directories needs both: if only the new
//     one was synced the object has both names, if only the old one it is lost.
//   - [LoseAll] turns all else back. [LoseSome] lets a part survive, chosen by
//     the seed: a rename whole or not at all, attributes of each object, bytes
//     in pages of 4096.
//
// The objects that survive are those of before, with their inode numbers, so
// that kernel handles (name_to_handle_at(2)) stay good. To that end a removed
// file gets a hard link, and a removed directory a new place, in a shadow
// directory, until its removal is stable. Until then, an eye that looks past
// the Disk can see one link too many, and a removed directory that is not
// quite dead.
//
// Package sim imports none of our rooms: localfs takes a Disk for its own Sys,
// whose signatures are the same.
package sim
