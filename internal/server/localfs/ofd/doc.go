// Package ofd takes byte-range locks of many owners in the kernel, where the programs of this
// host see them.
//
// The locks are of the kind that belongs to an open file description (F_OFD_SETLK,
// fcntl(2)). Each owner has one description of each file that it has locked, so the
// kernel keeps the owners apart, and apart from the programs of this host. The classic
// kind would belong to this process as a whole, and would fall with the first descriptor
// of the file that the process closes.
//
// No call waits for a lock: F_OFD_SETLKW keeps a thread for as long as it waits. The
// kernel does not say who holds a lock that is in the way. So the table notes what each
// of its owners holds, and asks the kernel about all others.
//
// Who may lock what is for the caller of this package to check. The locks outlive renames
// and removals of the file.
//
// # Bounds
//
// A description costs a descriptor. [Table] has a bound on them, and within it a share for
// each client: see kept.
//
// # Locks within
//
// A file's mutex is held while the kernel is asked, so that the kernel and the table know
// the same. Table.mu is taken under it for a few instructions.
package ofd
