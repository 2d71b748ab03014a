// Package oncrpc is ONC RPC version 2 over streams (RFC 5531): the client, the server, and
// the record marking, messages and credentials that they share. It carries any program
// and knows none: a client is handed the [xdr.Proc] that it calls, a server the
// [xdr.Program] that it serves, with a handler for each procedure. What a peer sends is
// hostile until checked. bounds.go names every bound, and says what happens at it.
//
// # Files
//
// conn*.go is one connection of a client, and client*.go the policy above it. server*.go
// is the server. conn.go, client.go and server.go have the types. A file knows only those
// below it: the test TestLayers has the order.
//
// # Bulk
//
// File data is not copied on its way out. Arguments and results that are [xdr.BulkArgs]
// leave in one vectored write: the head, the bytes where they are, the tail. On its way in,
// only what has come with the head is copied. A result that is an [xdr.BulkResult] is read
// from the socket into the caller's buffer, across the fragments of its record. A request
// is read into the buffer that its handler sees.
//
// Bulk of up to 2 KiB is copied next to its head, which is cheaper. On connections other
// than plain sockets a vectored write would be several: they get one copied buffer.
//
// # One write for many
//
// On either side messages gather in a queue. A goroutine that finds no writer becomes the
// writer. If other calls are under way it yields once, so that they can add theirs, and
// then writes the queue with one system call. A message is never cut into two writes, and
// TCP_NODELAY is on: a single message leaves at once, many leave together.
//
// # Who reads
//
// At the client it is, on a plain socket, one of the callers that wait: the leader. A
// single call thus costs no goroutine and no wake-up, only a write and a read. When there
// are many, one large read brings the replies of all; the leader hands them out together
// and wakes the other callers. A leader that has its own reply hands out what stands in
// the buffer, and makes another caller the leader. conn_lead.go says when a goroutine
// reads instead. TLS and other streams always have one.
//
// A connection that no goroutine has read for a while is examined before it is used: a
// server that was restarted meanwhile has closed it, and a call that must not be repeated
// would be lost there. On Linux Go's scheduler is not told of reads and writes, which do
// not block (internal/socket).
//
// # Whose bytes
//
// A [Client.Call] that has returned, cancelled or not, uses nothing any more that it was given. The
// connection's reader and writer borrow parts of a call, and note that in it (borrowers). When a
// caller wants to leave, a deadline in the past interrupts the read or the write under way. The
// interrupted side gives the parts back, and the connection goes on where it was: the rest of the
// reply is dropped, the rest of the call is written from a copy. A leader leaves in the same way,
// and the next reader goes on with the reply at hand. Cancelling costs neither the connection nor
// another call. A clock ticks while there are calls, and looks for contexts that have ended;
// callers leave at its next tick. So a call neither allocates nor waits for two things at once.
//
// Results borrow from a reply until [Reply.Release]. A handler borrows its [Call] until it
// returns. Bulk that is lent to [Call.ReplyBulk] comes back through its [Releaser]. All
// buffers are counted: Stats().Buffers is 0 when all is done.
//
// # Connections
//
// A client has one connection while one is enough, and up to [ClientOptions].Conns when it
// is busy. File data then has connections of its own, so that a LOOKUP never queues behind
// megabytes. More are dialed in the background, and no call waits for them. Idle ones are
// closed, the last of them before the server would do it. When one is lost, its calls go
// to the others.
//
// # Numbers, time-outs, second tries
//
// A client numbers its calls in one sequence over all its connections, from a random start.
// A number is used again only to repeat its call: after a time-out or a lost connection, on
// another connection, and only if the procedure is repeatable or the caller has asked for it
// ([ClientOptions].Resend). Any other call that was sent and got no reply is an
// [ErrUnknownOutcome]. One that never left whole is an [ErrNotSent]. A connection on which a
// call timed out takes no new calls. It is kept until its other calls have ended.
//
// A soft call has a patience, Timeout x (Retries+1), which bounds all that it waits for; a hard one
// has its context. Within the patience each try waits longer than the one before. Only time ends a
// call, however many connections it loses to a server that restarts or a network that cuts them.
// Dials in a row have growing pauses between them until there is a reply. So have the tries of a
// call that loses one connection after the other while other calls are answered. Only a server that
// has never answered any call is given up sooner, when it has closed maxFirstTries connections.
//
// A server may break the protocol: a record without end, a message that is no reply. That
// connection is closed, and the call whose reply it was has one more try. If that ends in the same
// way it is an [ErrBadReply], hard or soft. A server that has never answered a call, and speaks
// HTTP, TLS or SSH, is one at once. If other calls were under way, so that the reply may have been
// theirs, a call has maxNearBreaches such tries. A reply that came whole and does not decode is an
// error at once.
//
// # The server
//
// Each connection has a goroutine that reads, and workers that run its handlers: one while
// no handler blocks, and always another about to start while something is left to do
// (server_work.go). So calls that were read together are answered in one write, and a
// handler that blocks holds up no other call.
//
// Back pressure is not reading. A connection is not read while it has too many calls under
// way, or while its request waits for memory. With too many calls in all, each connection
// has one at a time. A request takes all memory that it may need at once, clients take
// turns, and none has more than its share (internal/budget). A buffer grows with what has
// arrived, not with what was announced. A client that sends a request too slowly, or does
// not take its replies, loses its connection, and no other client does. Where requests
// wait for memory, the one that arrives most slowly is given up.
//
// Where something is divided among clients, a client is an address, or of IPv6 a network of
// 64 bits. A user of the server's own host is a client where it is known ([ShareOf],
// [UserAddr]). The clients that [ServerOptions].Admit does not admit have a small share of
// memory and connections together, and no reply of theirs is remembered.
//
// Datagrams ([Server.ServePacket]) are served by the same handlers, a call each.
//
// # Once
//
// The server asks a [Replies] about each call of a procedure that [Service].Once names: is
// the call new, under way, or answered? Package replycache has one, and says what it
// promises. Such a call, once begun, is finished even if its connection is lost. If the
// connection is lost before, the call is not executed at all.
//
// # Locks
//
// Client.mu, which is its hub's, guards the whole client: slots, queues, and the phases of
// calls and connections. It is held for a few instructions, and never while reading,
// writing, dialing, encoding or logging. What only the reader or the writer of a connection
// uses needs no lock: there is one of each at a time, and one hands over to the next under
// Client.mu.
//
// At the server Server.mu is taken before serverConn.mu, and the locks of the [Replies]
// between them. No other lock is held with a budget's. No lock is held while a handler, a
// Releaser or an option's function runs, but for the argument of [Server.Drop].
//
// # Neighbours
//
// Below: xdr (codec and descriptors), internal/base/bufpool (counted buffers),
// internal/base/metric (histograms). Above: replycache, and the clients and servers of
// protocols, which hand in descriptors, handlers, dialers and credentials.
package oncrpc
