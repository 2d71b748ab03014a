// Package sim has test doubles for what nfsbox cannot control: randomness
// ([Rand]), the network ([Network], and [Line] for whole calls) and a disk that loses power ([Disk]). Their behaviour
// follows from a seed, so that a failure can be reproduced.
//
// The network uses package time: inside a testing/synctest bubble its latencies and deadlines
// take no real time, and everything that blocks on it is durably blocked.
//
// # The disk that forgets
//
// Killing a process does not lose what it wrote: the kernel's page cache keeps it, and a server
// that never syncs passes every test by SIGKILL. A [Disk] stands between a program and the
// kernel at the calls that change something ([Sys]), over a real directory. It records what
// each call made unstable: for each directory, the names that were changed since its last
// fsync; for each object, its attributes and the pages that were overwritten since its own.
// [Disk.Crash] then turns the real tree back, in place, into what a disk may hold after the
// power failed:
//
//   - Bytes survive if fdatasync, fsync or syncfs followed them, and the size
//     with them. Attributes survive fsync and syncfs; of an object that is new
//     in a directory, also the first fsync of that directory.
//   - A name made, removed or replaced survives if an fsync of its directory
//     followed. A rename between two directories needs both: if only the new
//     one was synced the object has both names, if only the old one it is lost.
//   - [LoseAll] turns everything else back. [LoseSome] lets a part survive, chosen by the seed:
//     a rename whole or not at all, the attributes of each object, bytes in pages of 4096.
//
// Surviving objects keep their inode numbers, so that kernel handles (name_to_handle_at(2))
// stay valid. For that a removed file gets a hard link, and a removed directory a new place, in
// a shadow directory, until its removal is stable. Until then, a program that bypasses the Disk
// can see one link too many, and a removed directory that can still be used.
//
// Package sim imports no server package: localfs takes a Disk as its own Sys, which has the
// same signatures.
package sim
