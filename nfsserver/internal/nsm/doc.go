// Package nsm is the Network Status Monitor, version 1 (X/Open CAE C702, chapter
// 11), for the server's own lock manager. It records on disk which hosts hold locks,
// tells them after a restart of the server that their locks are gone, and receives
// their notices when they have restarted themselves.
//
// # On disk
//
// The state directory has a file with the state number, and one for each host
// that is monitored. A host's file is on the disk before the host gets its first
// lock: otherwise, after a crash, a client would believe in a lock that the server has
// forgotten. A host that has been told of a restart stays there until it has had the time to
// claim its locks back, in case that the server crashes again. The number is odd while the server is up, and changes with every start: by
// it a client tells a new restart from a repeated notice. Every file has a magic, a
// version and a checksum, and is written under another name and renamed. A file that
// cannot be read is reported and left out; one that a later version has written is an
// error of [New].
//
// # Who is believed
//
// SM_NOTIFY comes without proof. It is taken to be about the host that sent it: it frees
// the locks taken from the same address under the same name, and of the users of this
// host only the sender's, unless that is root. A host of that name at another address is
// asked there for its own state number, and loses what it has locked under another.
// An attacker that can forge the address of a client can free that client's locks, as
// with every monitor of this protocol. Programs of this host that have asked by SM_MON
// know hosts by name alone: they are told of any host that claims that name.
//
// All other procedures are for privileged programs of this host: those that call from a
// loopback address and a reserved port.
//
// # Locks
//
// Monitor.disk before Monitor.mu. No lock is held while a host is called.
package nsm
