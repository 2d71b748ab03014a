// Package nsm is the Network Status Monitor, version 1 (X/Open CAE C702, chapter
// 11), for the server's own lock manager: it remembers on disk who holds locks,
// tells them after a restart of the server that theirs are gone, and hears from
// them when they have restarted themselves.
//
// # On disk
//
// The state directory has a file with the state number, and one for each host
// that is monitored. A host's file is on the disk before the host gets its first
// lock: otherwise a crash would leave a client that believes in a lock which
// nobody keeps any more. The number is odd while the server is up and grows with
// every start; it is how a client tells one restart from the repeated news of it.
// Every file has a magic, a version and a checksum, is written beside its place
// and renamed into it. What cannot be read is reported and left out, or, if a
// later version has written it, is an error of [New].
//
// # Who is believed
//
// SM_NOTIFY comes without proof. It is taken to be about the host that sent it: the
// locks that fall are those that were taken from the same address under the same
// name, and of the users of this host only the sender's, unless that is root. A host
// of that name at another address is asked there for its own state number, and loses
// what it has locked under another. Someone who can forge the address of a client can
// free that client's locks, as with every monitor of this protocol. Programs of this
// host that have asked by SM_MON know hosts by name alone: they are told of any host
// that says to be of that name.
//
// Everything else is for programs of this host, and answered to the privileged
// among them alone: the loopback address and a reserved port.
//
// # Locks
//
// Monitor.disk before Monitor.mu. No lock is held while a host is called.
package nsm
