// Package fusefs gives a vfs.FS to the Linux kernel as a directory: a FUSE mount in user space.
//
// It decides nothing about rights. Each call runs in the view ([vfs.FS.As]) of the process that made it: its user,
// its group and all its further groups, so that the server judges, as for the kernel's own NFS client. The kernel
// would check modes itself under the option default_permissions, by rules that may differ from the server's (squashed
// users, access control lists); it is not used. The price is that the kernel walks through a directory whose entries
// it has cached without asking. So where users share a mount, entries are cached for a second, and only in directories
// that everybody may search.
//
// # What is cached, and for how long
//
// Attributes and entries are the kernel's to keep, for times as nfs(5) has them (acregmin to acdirmax): twice as long
// each time they have not changed. An open asks the server (close-to-open), and the pages that the kernel has of the
// file stay only if its size and times are those that the last open found. A close, and fsync, return when
// the server has made the bytes stable, or say why not. Dirty bytes belong to the vfs.FS (package writeback): the
// kernel writes its pages through, and keeps none dirty but those of shared mappings. An open with O_APPEND goes past the
// pages, and each of its writes asks the server where the end is.
//
// Access control lists the kernel does not keep. They are kept here, as long as the attributes that it believes show no
// change (lists).
//
// # A server that does not answer
//
// A process that waits for it can be killed. A request that the kernel interrupts (INTERRUPT) is answered within a second: soon
// if its process dies, else when that second has passed, so that programs with timers are not disturbed by a
// server that is merely slow. One clock looks at all requests (flights). The kernel interrupts no close of a process that ends. So its process is
// looked at, and one that dies is not kept waiting (closing). The bytes of a process that was killed stay here, and are
// sent when the server answers.
//
// # Nodes
//
// The kernel knows objects by numbers of ours. A number stands for one handle, is in the table from the first reply
// that names it until the kernel has forgotten it, and is never given to another object. Inode numbers are the
// server's file numbers; those of another file system than the root's are made distinct. Each node remembers the name by
// which it was last seen, and the directory: those who unmount are told by paths what was lost.
//
// # Names that close late
//
// The kernel tells of a file's last close after close(2) has returned. A file that is removed right after would still
// count as open, and get a hidden name (.nfs...) for a moment, so that its directory could not be removed. So what
// removes names waits a little for files whose close was announced (see settle).
//
// Locks: folder.mu comes before nodes.mu and node.mu. These two, callers.mu, settling.mu, flights.mu, call.mu and those of the
// tables of open files are each held for a few instructions, and none of them is taken under another. Only folder.mu is held over calls
// to the vfs.FS.
package fusefs
