// Package oncrpc is ONC RPC version 2 over streams (RFC 5531): the client, the
// server, and the record marking, messages and credentials that they share. It
// carries any program and knows none: a client is handed the [xdr.Proc] that it
// calls, a server the [xdr.Program] that it serves with a handler for each
// procedure. Whatever a peer sends is taken for hostile; bounds.go names every
// bound and says what happens at it.
//
// # Bulk
//
// File data is not copied on its way out: arguments and results that are
// [xdr.BulkArgs] leave in one vectored write, the head, the bytes where they
// are, the tail. On its way in, only what has come with the head is copied: a
// result that is an [xdr.BulkResult] is read from the socket into the caller's
// buffer, across the fragments that some servers cut their records into, and a
// request into the buffer that its handler will see. (Bulk of up to 2 KiB is
// copied next to its head, which is cheaper, and connections other than plain
// sockets get one copied buffer, because there a vectored write would be
// several.)
//
// # One write for many
//
// On either side messages gather in a queue. Whoever finds no writer at work
// becomes the writer; when there is company it yields once, so that the others
// can add theirs, and then writes all that is there with one system call. A
// message is never cut into two writes, and TCP_NODELAY is on: what is lone
// leaves at once, what comes in crowds leaves in crowds.
//
// # Whose bytes
//
// A [Client.Call] that has returned, cancelled or not, has let go of everything
// it was given. The connection's reader and writer borrow parts of a call and
// say so in it (reading, writing). To leave, a caller has the read or the write
// under way interrupted by a deadline in the past; the interrupted side gives
// back what is wanted, reads the rest of the reply into nothing, or writes the
// rest of the call from a copy, and the connection goes on where it was.
// Cancelling costs neither the connection nor anybody else's call.
//
// Results borrow from a reply until [Reply.Release]; a handler borrows its
// [Call] until it returns; bulk lent to [Call.ReplyBulk] comes back through its
// [Releaser]. All buffers are counted: Stats().Buffers is zero when all is done.
//
// # Numbers, time-outs, second tries
//
// A client numbers its calls in one sequence over all its connections, from a
// random start, and finds the call of a reply at number modulo table size. A
// number is used again only to repeat its call: after a time-out or a lost
// connection, on a new connection, and only if the procedure is repeatable. Any
// other call that was sent and got no reply is an [ErrUnknownOutcome]. A
// connection on which a call timed out takes no new calls, but is kept until its
// other calls have their replies or time-outs, too. One timer, which runs while
// there are calls, does all of this: on a plain socket a call costs no timer, no
// goroutine and no allocation. A connection without calls is closed before the
// server would do it.
//
// # The server
//
// Each connection has a goroutine that reads, each call one that runs its
// handler. Back pressure is not reading: a connection with too many calls under
// way, or whose request finds no room in the server's budget of bytes, is left
// alone until there is room. A buffer grows with what has arrived, not with what
// was announced. A client that sends a request too slowly, or does not take its
// replies, loses its connection, and nobody else loses anything.
//
// # Locks
//
// Client.mu guards the whole client: slots, queues, and the states of calls and
// connections. It is held for a few instructions and never while reading,
// writing, dialing or encoding. At the server, the order is Server.mu before
// serverConn.mu; budget.mu stands alone. No lock is held while a handler, an
// option's function or a Releaser runs.
//
// # Neighbours
//
// Below: xdr (codec and descriptors), internal/bufpool (counted buffers).
// Above: the generated protocols' clients and servers, who hand in descriptors,
// handlers, dialers and credentials.
package oncrpc
