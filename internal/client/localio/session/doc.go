// Package session is the Unix socket of LOCALIO, and what both its ends need of
// the kernel: messages with descriptors beside them, who the other process is,
// and the page of memory by which a server takes back what it has handed out.
// What is said in which order, and what it means, is for the two ends: proto's
// session.x and the packages that import this one. It is for Linux; elsewhere
// every function is [errors.ErrUnsupported].
//
// # The directory
//
// A server listens at DIR/UUID.sock ([Listen]), a client connects there
// ([Connect]): /run/nfsbox, the user's own runtime directory, or any other that
// both were told of. What matters is who can put a socket there. The directory is
// therefore opened once, and looked at and used by its descriptor; it must not be
// writable by its group or by others; and the process that listens must be
// root's, the client's own user's or the directory's owner. That, and not the
// UUID, which anybody may ask the server for, keeps a third process from standing
// between the two: one that passed on the client's commitment would be told the
// nonce, too.
//
// Paths of sockets end at 107 bytes; through /proc/self/fd they never do. Unlike
// abstract names they have owners, and are the same in every network namespace.
//
// # What a peer can do to us
//
// A [Conn] takes its peer for hostile. A message that is too long, is not whole,
// has something behind its end, is not for this end to receive, or comes with
// another number of descriptors than its content says, closes the connection; the
// descriptors that came with it are closed. A peer that does not take its messages
// for [SendTimeout] loses the connection.
//
// A process that gives up a descriptor waits for what its last close waits for: with a
// socket that lingers (SO_LINGER), for years. A server is therefore sent none: the
// kernel refuses them to the sender (SO_PASSRIGHTS). Before Linux 6.16 it cannot, and
// drops them where they are received, or where a socket is closed that has
// some unread: there it is [Conn.Receive] and [Conn.Close] of a server that may
// not return, and a goroutine that must not wait ends a session by [Conn.Shutdown].
//
// # The page
//
// A [Page] is a sealed file in memory that only the server can write: it cannot
// shrink, so that it never faults under the client, and cannot be opened or mapped
// for writing any more. A [View] is the client's mapping of it, and costs an atomic
// load per access. After Close all of it reads as zero: a client whose socket
// has ended closes its view, and with that every file is revoked.
package session
