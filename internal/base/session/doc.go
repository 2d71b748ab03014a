// Package session is the Unix socket of LOCALIO, with what both ends need of the kernel:
// messages with descriptors, the identity of the other process, and the page of memory by which
// a server revokes what it has handed out. The order and the meaning of messages are in proto's
// session.x and in the two packages that import this one. The package is for Linux; elsewhere
// every function is [errors.ErrUnsupported].
//
// # The directory
//
// A server listens at DIR/UUID.sock ([Listen]), and a client connects there ([Connect]). DIR is
// /run/nfsbox, the user's runtime directory, or any other that both are configured with.
// Security depends on who can put a socket there. So the directory is opened once, and checked
// and used by its descriptor. Its group and others must not be able to write to it. The
// listening process must belong to root, to the client's user or to the directory's owner. The
// UUID is no protection, because anyone may ask the server for it. A process in between that
// passed on the client's commitment would learn the nonce, too.
//
// A socket's path is limited to 107 bytes; through /proc/self/fd every path fits. Unlike
// abstract names, paths have owners, and are the same in every network namespace.
//
// # Hostile peers
//
// A [Conn] does not trust its peer. These close the connection: a message that is too long,
// truncated, followed by more bytes, not for this end to receive, or with another number of
// descriptors than its content says. The descriptors that came with it are closed. A peer that
// does not take its messages for [SendTimeout] loses the connection.
//
// Closing a received descriptor may block: with a socket that lingers (SO_LINGER), for years.
// So a server accepts none: the kernel refuses them to the sender (SO_PASSRIGHTS). Before Linux
// 6.16 it cannot. There descriptors are dropped where they are received, or where a socket with
// unread messages is closed. So [Conn.Receive] and [Conn.Close] of a server may block, and a
// goroutine that must not block ends a session by [Conn.Shutdown].
//
// # The page
//
// A [Page] is a sealed file in memory that only the server can write. It cannot shrink, so the
// client never faults, and it cannot be opened or mapped for writing any more. A [View] is the
// client's mapping of it, and costs an atomic load for each access. After Close all of it reads
// as zero: a client whose socket has ended closes its view, which revokes every file.
package session
