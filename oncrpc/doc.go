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
// On either side messages gather in a queue. A goroutine that finds no writer at work
// becomes the writer; when there is company it yields once, so that the others
// can add theirs, and then writes all that is there with one system call. A
// message is never cut into two writes, and TCP_NODELAY is on: what is lone
// leaves at once, what comes in crowds leaves in crowds.
//
// # Who reads
//
// At the client it is, on a plain socket, one of the callers who wait: the
// leader. A lone call thus costs no goroutine and no wake-up, only a write and a
// read; when there are many, one large read brings the replies of all, and the
// leader hands them over together and wakes the others. One caller who makes
// many calls at once ([Client.CallMany]) wakes nobody. With its own reply in hand
// the leader deals with what stands in the buffer and makes another caller the
// leader. On Linux Go's scheduler is not told of these reads and writes, which do
// not block (quick_linux.go has what that saves). When nobody waits nobody
// reads, unless replies are owed to callers who have left, or who wait for others of
// their calls on another connection. A connection that has been silent is therefore
// looked at before it is used: a server that was restarted meanwhile has closed it,
// and a call that must not be repeated had better not find out by being lost. TLS and
// other streams have a goroutine that reads.
//
// # Whose bytes
//
// A [Client.Call] that has returned, cancelled or not, has let go of everything
// it was given. The connection's reader and writer borrow parts of a call and
// say so in it (reading, writing). To leave, a caller has the read or the write
// under way interrupted by a deadline in the past; the interrupted side gives
// back what is wanted, and the connection goes on where it was: the rest of the
// reply is read into nothing, the rest of the call is written from a copy. The
// same makes a reader leave that is a caller itself; the reply at hand, be it
// half of somebody's megabyte, is then the next reader's. Cancelling costs
// neither the connection nor anybody else's call. A clock that ticks while there
// are calls looks for contexts that have ended, so that a call neither allocates
// nor waits for two things at once; callers leave at its next tick.
//
// Results borrow from a reply until [Reply.Release]; a handler borrows its
// [Call] until it returns; bulk lent to [Call.ReplyBulk] comes back through its
// [Releaser]. All buffers are counted: Stats().Buffers is zero when all is done.
//
// # Connections
//
// A client has one connection as long as one is enough, and up to
// [ClientOptions].Conns when it is busy. File data then has lanes of its own, so
// that a LOOKUP never queues behind megabytes. More are dialed in the background
// and nobody waits for them; idle ones are closed, and the last of them before
// the server would do it. When one is lost, its calls go to the others.
//
// # Numbers, time-outs, second tries
//
// A client numbers its calls in one sequence over all its connections, from a
// random start, and finds the call of a reply at number modulo table size. A
// number is used again only to repeat its call: after a time-out or a lost
// connection, on another connection, and only if the procedure is repeatable or
// the caller has asked for it ([ClientOptions].Resend). Any other call that was
// sent and got no reply is an [ErrUnknownOutcome]; one that never left whole is
// an [ErrNotSent]. A connection on which a call timed out takes no new calls, but
// is kept until its other calls have their replies or time-outs, too.
//
// A soft call has a patience, Timeout x (Retries+1), which bounds all that it
// waits for; a hard one has its context. Within the patience each try waits
// longer than the one before. Nothing but time ends a call: however many
// connections it loses, be it to a server that restarts or to a network that
// cuts them. Dials that follow each other have growing pauses between them, until
// there is a reply, and so have the tries of a call that loses one connection after
// the other on which others are answered. Only a server that has never answered anybody is
// given up sooner, when it has closed maxFirstTries connections.
//
// What came instead of a reply may break the protocol: a record without end, a
// message that is none. That connection is closed, and the call whose reply it
// was has one more try; if that ends in the same way it is an [ErrBadReply], hard
// or soft. Where nobody can say whose reply it was, since others were under way,
// a call has maxNearBreaches such tries. A reply that came whole and does not
// decode is an error at once.
//
// # The server
//
// Each connection has a goroutine that reads, and workers that run its handlers:
// one as long as no handler blocks, and always another on its way while there is
// something left to do (see server_work.go). What was read at once is thus
// answered at once, in one write, and a handler that blocks holds up nobody. Back
// pressure is not reading: a connection with too many calls under way, or whose
// request finds no room in the server's budget of bytes, is left alone until
// there is room; with too many in all, each connection has one at a time. A
// request takes what it may need all at once, clients take turns, and none has
// more than its share. A buffer grows with what has arrived, not with what was
// announced. A client that sends a request too slowly, or does not take its
// replies, loses its connection, and nobody else loses anything; where others wait
// for memory, the request goes that gets on least.
//
// Where something is divided among clients, one is an address, or of IPv6 a network
// of 64 bits, or, where it is known, a user of the server's own host ([ShareOf],
// [UserAddr]). A client that [ServerOptions].Admit does not admit has a small share
// of its own of memory and connections, and nothing of it is remembered.
//
// Datagrams ([Server.ServePacket]) are served by the same handlers, a call each.
//
// # Once
//
// The server asks a [Replies] about each call of a procedure that [Service].Once names:
// is the call new, under way, or answered? Package replycache is the one that remembers,
// and says what is promised. Such a call, once begun, is finished even if its connection
// is lost. One whose connection is lost before it has begun is not executed at all.
//
// # Locks
//
// Client.mu guards the whole client: slots, queues, and the states of calls and
// connections. It is held for a few instructions and never while reading,
// writing, dialing, encoding or logging. What only the reader or the writer of a
// connection touches needs no lock: there is one of each at a time, and the duty
// passes from one to the next under Client.mu. At the server, the order is
// Server.mu before serverConn.mu, with those of the [Replies] between;
// budget.mu stands alone. No lock is
// held while a handler, an option's function or a Releaser runs.
//
// # Neighbours
//
// Below: xdr (codec and descriptors), internal/base/bufpool (counted buffers),
// internal/base/metric (histograms).
// Above: replycache, and the generated protocols' clients and servers, which hand in
// descriptors, handlers, dialers and credentials.
package oncrpc
