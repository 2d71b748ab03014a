package oncrpc

import "time"

// Bounds of the wire, the same on both sides.
const (
	// MaxAuthBody is the longest body of a credential or a verifier (RFC 5531,
	// section 8.2). A server denies a call above it; a client fails one.
	MaxAuthBody = 400

	// MaxMachineName and MaxGIDs bound the fields of AUTH_SYS (RFC 5531,
	// appendix A). A credential above them does not encode and does not parse.
	MaxMachineName = 255
	MaxGIDs        = 16

	// maxEmptyFragments is how many empty fragments a record may have, and one more for each
	// bytesPerEmpty bytes that have been announced for it. One more closes the connection.
	// The number of other fragments is bounded by the record's length alone. A megabyte in
	// pieces of one byte is five on the wire, and costs no more than as many bytes of small
	// calls.
	maxEmptyFragments = 256
	bytesPerEmpty     = 4

	// directRead bytes or more are read straight to where they belong. Fewer go through the
	// connection's read buffer, which then takes in what follows as well.
	directRead = 2048

	// growFactor bounds what an announced length costs: a buffer never grows to more than
	// growFactor times the bytes that have arrived, or smallRecord if that is more.
	growFactor  = 16
	smallRecord = 4096

	// inlineBulk is the size up to which bulk is copied next to its head. One more entry in
	// a vectored write costs about as much as copying this.
	inlineBulk = 2048

	// keepBytes is how much encoding space a connection keeps between writes. A larger one
	// is left to the garbage collector.
	keepBytes = 64 << 10

	// maxBatch is how many messages one write of a client carries, of two or three buffers
	// each: one writev takes 1024. Further messages wait for the next write.
	maxBatch = 256

	// maxIdleReads is how many reads in a row may return neither bytes nor an error. One
	// more ends the connection.
	maxIdleReads = 100
)

// Bounds of the client.
const (
	// slotCount is the size of the slot table, a power of two: a reply finds its call at
	// xid modulo slotCount. A number whose slot is taken is skipped. maxInFlight calls may
	// hold slots at once, so that a free one is never far. Above that a caller waits until
	// another call has returned.
	slotCount   = 1024
	maxInFlight = slotCount / 2

	// DefaultTimeout is how long one try waits for its reply, as nfs(5) has it for TCP.
	DefaultTimeout = 60 * time.Second

	// DefaultRetries makes a call's patience three times DefaultTimeout.
	DefaultRetries = 2

	// maxTimeout is what the time-out of one try grows to at most, as nfs(5) has it, unless
	// it was longer from the start. maxPatience stands for no bound.
	maxTimeout  = 600 * time.Second
	maxPatience = 100 * 365 * 24 * time.Hour

	// DefaultDialTries is how many failed dials one call waits for while the server has
	// never answered. At the bound the call fails.
	DefaultDialTries = 3

	// MaxConns is the most connections of one client, as Linux has it. Calls share them.
	MaxConns = 16

	// With busyMeta or busyBulk calls on each of its connections, a lane gets another one.
	// A few calls of a megabyte fill a connection for bulk. One for metadata takes many,
	// since calls that leave together are cheaper than calls on several connections. After
	// a dial for one more has failed, the next one waits for growPause. A connection that
	// the client can do without is closed after laneIdle without a call.
	busyMeta  = 64
	busyBulk  = 4
	growPause = 10 * time.Second
	laneIdle  = time.Minute

	// maxFirstTries is how many connections a call may lose while the server has never
	// answered any call. At the bound the call fails, after some seconds: a peer that
	// accepts connections and closes them is most likely a tunnel or a proxy with no
	// server behind it.
	maxFirstTries = 8

	// maxBreaches is how often a call's connection may end since what came instead of its
	// reply breaks the protocol in the same way. maxNearBreaches is how often if each time
	// it may have been another call's reply. At either bound the call fails.
	maxBreaches     = 2
	maxNearBreaches = 8

	// maxProcs is how many procedures have counters of their own. Calls of further ones are
	// not counted by procedure.
	maxProcs = 256

	// SilentAfter is how long a server may send nothing, while calls wait for it,
	// before [ClientOptions.Silent] is told.
	SilentAfter = 5 * time.Second

	// awayQuietly is how long a server may be out of reach before the log says so. maxNotes
	// is how many messages may wait for the log. More are dropped.
	awayQuietly = 3 * time.Second
	maxNotes    = 64

	// dialTimeout bounds one dial, securing the connection included. A longer one fails.
	dialTimeout = 30 * time.Second

	// backoffMin is the pause after a first failed dial; it doubles up to backoffMax. A
	// connection that was lost before it gave one reply counts as a failed dial. A call
	// that has lost a second connection on which others were answered waits as long, or up
	// to twice that, in spread steps.
	backoffMin = 20 * time.Millisecond
	backoffMax = 2 * time.Second
	spread     = 16

	// tickEvery is how often the client looks for overdue calls and for writers that are to
	// be interrupted, while calls are under way. Time-outs are this coarse.
	tickEvery = 10 * time.Millisecond

	// clientIdle closes a connection without calls, a minute before Linux' nfsd and our own
	// server do.
	clientIdle = 5 * time.Minute

	// writeRounds is how many writes one caller makes for others. Then a goroutine takes
	// over.
	writeRounds = 4

	// writePiece is how much one write moves where writes cannot be interrupted. A
	// connection that takes longer for it than the first try's time-out is closed.
	writePiece = 64 << 10

	// clientReadBuffer is the connection's read buffer, for many small replies at once. It
	// is no longer than MaxReply, or smallRecord. While a call waits for bulk, one read takes at most
	// bulkReadAhead, since what lands in the buffer must be copied: a page with its head, which programs
	// that read here and there ask for.
	clientReadBuffer = 64 << 10
	bulkReadAhead    = 4<<10 + replyHead

	// maxTogether is how many bytes of replies share one buffer. A caller that keeps one
	// of them keeps the whole buffer. Further replies come in the next.
	maxTogether = 16 << 10

	// replyHead is how much of a reply is read before it is looked at, and maxReplyHead how
	// much may stand before its bulk. A longer head fails the call.
	replyHead    = 512
	maxReplyHead = 64 << 10

	// DefaultMaxReply is how long a reply may be beside what its call asked for (see
	// [xdr.Asker]). A longer one closes the connection, and at most so much memory has been
	// taken for it.
	DefaultMaxReply = 8 << 20
	// maxSkipped is how long a reply may be that no call waits for, or a longer MaxReply. It
	// takes no memory. A longer one closes the connection.
	maxSkipped = 64 << 20

	// maxStray is how many replies in a row may belong to no call that was ever made. Above
	// it the connection is closed: the peer is no RPC server.
	maxStray = 256
)

// Bounds of the server: the defaults of [ServerOptions] and what has none.
const (
	// DefaultMaxConns is how many connections are served at once. At the bound one without
	// a call under way is closed for a new one: first those that are not admitted, then
	// those of the client with most connections, and of these the one that has been silent
	// longest. If there is none, the new one is closed.
	//
	// One client (ShareOf) has no more connections than it leaves free, or minShareConns if
	// that is more: many machines may share one address. Connections that are not admitted
	// count as free there. There are at most 1/strangerShare of DefaultMaxConns of them, or
	// minShareConns if that is more. At these bounds one of the client's own, or of theirs,
	// is closed in the same way.
	DefaultMaxConns = 4096
	strangerShare   = 2
	minShareConns   = 64

	// DefaultMaxRecord is the longest request: 1 MiB of data and ample space around it. A
	// longer one closes the connection.
	DefaultMaxRecord = 1<<20 + 64<<10

	// DefaultMaxCallsPerConn is how many calls of one connection may be under way. A call
	// is until its reply has left. At the bound the connection is not read.
	DefaultMaxCallsPerConn = 128

	// DefaultMaxCalls is how many calls of all connections together may be under way. At
	// the bound a connection is read while it has none itself, so that each has its turn.
	// The goroutines and small requests that wait for a slow disk are then no more than
	// these, and one for each connection.
	DefaultMaxCalls = 16384

	// DefaultMaxRequestBytes is how much memory all requests above smallRecord may take
	// together. At the bound connections with such requests are not read. Nor are those of
	// a client that has its share: as much as it leaves free. There is always room for two
	// of the longest requests.
	DefaultMaxRequestBytes = 192 << 20

	// strangerBytes is as much for all clients together that are not admitted. It is not
	// taken from the others. A client whose name is not known yet may need it for its first
	// requests.
	strangerBytes = 4 << 20

	// DefaultIdleTimeout closes a connection that has neither sent a request nor waited for
	// a reply for so long. Linux' nfsd has six minutes, too.
	DefaultIdleTimeout = 6 * time.Minute

	// DefaultHeadTimeout is how long a request that has begun may take to arrive, with a
	// second more for each leastRate bytes of it that have come, and the time that it waits
	// for memory. A slower one closes its connection.
	DefaultHeadTimeout = 10 * time.Second
	leastRate          = 64 << 10

	// DefaultWriteTimeout is how long a client may take for minWriteProgress bytes of the
	// replies that wait for it. A slower one loses its connection, and their memory is
	// free.
	DefaultWriteTimeout = 30 * time.Second
	minWriteProgress    = 64 << 10
	// drainWriteTime stands in for WriteTimeout once the server is ending, if that is longer:
	// a client that takes no replies must not hold up the end. It may send its calls again,
	// to the next server. On TLS, whose progress is not seen, WriteTimeout holds to the end.
	drainWriteTime = 2 * time.Second

	// lingerTime is how long after its last reply a drained connection is read until the
	// client closes it: to close with unread input destroys replies on their way. It is
	// also how long a client that has closed its side still gets replies. Then its
	// handlers' contexts end. lingerLeast is how long a connection is read whose last
	// reply is older: for calls on their way.
	lingerTime  = 2 * time.Second
	lingerLeast = 100 * time.Millisecond

	// serverReadBuffer is the connection's read buffer. It is small, since idle connections
	// have one, too.
	serverReadBuffer = 8 << 10

	// holdReplies: the reply of a call that took longer leaves at once. Others wait until
	// the worker has nothing left to do, and leave in one write.
	holdReplies = 50 * time.Microsecond

	// inlineReply is the size up to which an encoded reply is copied next to others. A
	// longer one is written from its own buffer.
	inlineReply = 4096

	// maxReplyHint bounds the buffer with which a reply begins. The buffer is as large as
	// the procedure's longest reply so far, so that those of listings do not grow step by
	// step each time. A longer reply grows.
	maxReplyHint = 64 << 10

	// acceptPauseMin and acceptPauseMax bound the pause after a failed accept. Most likely
	// there was no free descriptor, and there may be some later.
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)

// Bounds of RPC over datagrams.
const (
	// maxDatagram is the longest datagram that is taken. The system cuts a longer one, and
	// it is no call. maxDatagramReply is the longest reply. A longer one becomes
	// SYSTEM_ERR.
	maxDatagram      = 64 << 10
	maxDatagramReply = 65507 // what UDP over IPv4 carries

	// maxDatagramCalls is how many calls of one packet connection may be under way. At the
	// bound it is not read. The system drops what it has no room for, and clients send it
	// again. One client (ShareOf) has no more of them than it leaves free; nor have all
	// clients together that are not admitted. Their further calls are dropped.
	//
	// This bounds the memory of datagrams, too. They take none of MaxRequestBytes: there,
	// one that has to wait would make all clients of the socket wait.
	maxDatagramCalls = 64
)
