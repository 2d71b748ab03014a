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

	// maxEmptyFragments is how many empty fragments may follow each other. One
	// more closes the connection. Fragments that hold bytes have no bound but the
	// record's: each costs its sender a word besides, so that a megabyte in pieces
	// of one byte is five on the wire, and no dearer to take than so many bytes of
	// small calls.
	maxEmptyFragments = 256

	// directRead is the number of bytes from which on they are read straight
	// to where they belong. Fewer go through the connection's read buffer,
	// which then takes in what follows as well.
	directRead = 2048

	// growFactor bounds what an announced length costs: a buffer never grows
	// to more than growFactor times the bytes that have really arrived, or
	// smallRecord if that is more.
	growFactor  = 16
	smallRecord = 4096

	// inlineBulk is the size up to which bulk is copied next to its head. An
	// entry more in a vectored write costs about as much as copying this.
	inlineBulk = 2048

	// keepBytes is how much encoding space a connection keeps between
	// writes. A batch that needed more gives it back to the garbage collector.
	keepBytes = 64 << 10

	// maxBatch is how many messages one write carries, two or three buffers
	// each: below the 1024 buffers that one writev takes. What is more waits
	// for the next.
	maxBatch = 256

	// maxIdleReads is how often in a row a connection may answer a read with
	// neither bytes nor an error before it counts as broken.
	maxIdleReads = 100
)

// Bounds of the client.
const (
	// slotCount is the size of the slot table, a power of two: a reply finds
	// its call at xid modulo slotCount. A number whose slot is taken is
	// skipped. maxInFlight calls may hold slots at once, so that a free one is
	// never far; a caller above waits until another has returned.
	slotCount   = 1024
	maxInFlight = slotCount / 2

	// DefaultTimeout is how long one try waits for its reply. It is what
	// nfs(5) gives TCP mounts.
	DefaultTimeout = 60 * time.Second

	// DefaultRetries makes a call's patience three times DefaultTimeout.
	DefaultRetries = 2

	// maxTimeout bounds what the time-out of one try grows to, unless it was
	// longer from the start; it is nfs(5)'s. maxPatience stands for no bound.
	maxTimeout  = 600 * time.Second
	maxPatience = 100 * 365 * 24 * time.Hour

	// DefaultDialTries is how many failed dials one call waits for, as long as
	// the server has never answered.
	DefaultDialTries = 3

	// MaxConns bounds the connections of one client (Linux has 16 as well).
	MaxConns = 16

	// busyMeta and busyBulk are how many calls on each connection of a lane
	// make it worth another. A connection for bulk is filled by a few calls of
	// a megabyte; one for metadata is worth many, as calls that gather are
	// cheaper than calls that spread. After a dial for more has failed, the
	// next one is growPause away; what a lane has too much is closed after
	// laneIdle.
	busyMeta  = 64
	busyBulk  = 4
	growPause = 10 * time.Second
	laneIdle  = time.Minute

	// maxFirstTries is how many connections a call may lose while the server has never
	// answered any call. At the bound the call fails, after some seconds: a peer that
	// accepts connections and closes them is most likely a tunnel or a proxy with no
	// server behind it.
	maxFirstTries = 8

	// maxBreaches is how often a call's connection may end because what came
	// instead of its reply breaks the protocol in the same way, and maxNearBreaches
	// how often if it may have been another call's reply each time. At either bound
	// the call fails.
	maxBreaches     = 2
	maxNearBreaches = 8

	// maxProcs is how many procedures have counters of their own. The calls of
	// what is called later are not counted by procedure.
	maxProcs = 256

	// SilentAfter is how long a server may send nothing, while calls wait for it,
	// before [ClientOptions.Silent] is told.
	SilentAfter = 5 * time.Second

	// awayQuietly is how long a server may be out of reach before the log says
	// so, and maxNotes how many messages may wait for the log to take them;
	// more are dropped.
	awayQuietly = 3 * time.Second
	maxNotes    = 64

	// dialTimeout bounds one dial, securing the connection included.
	dialTimeout = 30 * time.Second

	// backoffMin is the pause after a first failed dial; it doubles up to
	// backoffMax. A connection that was lost before it gave one reply counts
	// as a failed dial. A call that has lost a second connection on which others were
	// answered waits as long, or up to twice that; spread is how many such waits there
	// are.
	backoffMin = 20 * time.Millisecond
	backoffMax = 2 * time.Second
	spread     = 16

	// tickEvery is how often the client looks for calls that are overdue and
	// for writers that ought to be interrupted. It rests while no call is
	// under way. Time-outs are this coarse.
	tickEvery = 10 * time.Millisecond

	// clientIdle closes a connection without calls: a minute before Linux nfsd
	// and our own server would.
	clientIdle = 5 * time.Minute

	// writeRounds is how many writes one caller does for others before a
	// goroutine takes over: no caller writes for others without end.
	writeRounds = 4

	// writePiece is how much a connection is given at a time whose writes cannot be
	// interrupted. A server that takes longer for it than a call's first try waits
	// loses the connection.
	writePiece = 64 << 10

	// clientReadBuffer is the connection's read buffer, for many small replies at once; it
	// is no longer than MaxReply. While a call waits for bulk, one read takes at most
	// bulkReadAhead, because what lands in the buffer must be copied out.
	clientReadBuffer = 64 << 10
	bulkReadAhead    = 4 << 10

	// maxTogether is how many bytes of replies share one buffer. A caller that keeps one
	// of them keeps the whole buffer. Further replies come in the next.
	maxTogether = 16 << 10

	// replyHead is how much of a reply is read before looking at it, and
	// maxReplyHead how much may stand before its bulk. A reply with a longer
	// head fails its call.
	replyHead    = 512
	maxReplyHead = 64 << 10

	// DefaultMaxReply is the longest reply. A longer one closes the
	// connection.
	DefaultMaxReply = 64 << 20

	// maxStray is how many replies in a row may belong to no call that was
	// ever made. Above it the connection is closed: the peer is no RPC server.
	maxStray = 256
)

// Bounds of the server: the defaults of [ServerOptions] and what has none.
const (
	// DefaultMaxConns is how many connections are served at once. Above it one
	// without a call under way makes room: of a client that is not admitted, of
	// the client that has most, the one that has been silent longest; if there is
	// none, the new one is closed. One client (ShareOf) has no more of them than it
	// leaves to others, but minShareConns if that is more; many machines may hide
	// behind one address, with some connections each. Those that are not admitted
	// count as free there, and have a part in strangerShare of all together, or also
	// minShareConns. At these bounds their own make room in the same way.
	DefaultMaxConns = 4096
	strangerShare   = 2
	minShareConns   = 64

	// DefaultMaxRecord is the longest request: 1 MiB of data and ample space
	// around it. A longer one closes the connection.
	DefaultMaxRecord = 1<<20 + 64<<10

	// DefaultMaxCallsPerConn is how many calls of one connection may be under
	// way, up to the reply's leaving. At the bound that connection is not read.
	DefaultMaxCallsPerConn = 128

	// DefaultMaxCalls is how many calls of all connections together may be
	// under way. At the bound a connection is read when none of its own is: each
	// has its turn, and the goroutines and small requests of those that wait for
	// a slow disk are no more than these and one of each connection.
	DefaultMaxCalls = 16384

	// DefaultMaxRequestBytes is how much memory requests may take, all
	// connections together and requests up to smallRecord left out. At the
	// bound connections with large requests are not read; those of a client
	// that has its share, as much as it leaves free, are not either. It is room for
	// two of the longest requests at least.
	DefaultMaxRequestBytes = 192 << 20

	// strangerBytes is what clients have of that together that are not admitted; it
	// is not taken from the others. A client whose name is not known yet may need
	// it for its first requests.
	strangerBytes = 4 << 20

	// DefaultIdleTimeout closes a connection that has neither sent a request
	// nor waited for a reply for so long. Six minutes is what Linux nfsd does.
	DefaultIdleTimeout = 6 * time.Minute

	// DefaultHeadTimeout is how long a request that has begun may take to arrive,
	// beside a second for each leastRate bytes of it that have, and the time that
	// it waits for memory. What is slower loses its connection.
	DefaultHeadTimeout = 10 * time.Second
	leastRate          = 64 << 10

	// DefaultWriteTimeout is how long a client may go on without taking
	// minWriteProgress bytes of the replies that wait for it. Then its
	// connection is closed, and their memory comes back.
	DefaultWriteTimeout = 30 * time.Second
	minWriteProgress    = 64 << 10

	// lingerTime is how long a drained connection is read, for the client's
	// own close: closing with unread input destroys replies already sent. It
	// is also how long a client that has closed its side still gets replies;
	// then its handlers' contexts end.
	lingerTime = 2 * time.Second

	// serverReadBuffer is the connection's read buffer. Idle connections hold
	// on to theirs, so it is small.
	serverReadBuffer = 8 << 10

	// holdReplies is how long a call may take for its reply to wait until the
	// worker has nothing left to do.
	holdReplies = 50 * time.Microsecond

	// inlineReply is the size up to which an encoded reply is copied into the
	// write; a longer one is written from its own buffer.
	inlineReply = 4096

	// maxReplyHint bounds the buffer with which a reply begins. It is as large
	// as the procedure's longest reply so far, so that long ones (listings of
	// directories) do not grow step by step every time; up to this.
	maxReplyHint = 64 << 10

	// acceptPauseMin and acceptPauseMax bound the pause after a failed
	// accept: out of descriptors, most likely, and some may come back.
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)

// Bounds of RPC over datagrams.
const (
	// maxDatagram is the longest datagram taken; what is longer is cut by the
	// system, and no call. maxDatagramReply is the longest reply: a longer one
	// becomes SYSTEM_ERR.
	maxDatagram      = 64 << 10
	maxDatagramReply = 65507 // what UDP over IPv4 carries

	// maxDatagramCalls is how many calls of one packet connection may be under
	// way. At the bound it is not read, and the system drops what it has no
	// room for; clients of datagrams ask again. One client (ShareOf) has no more of
	// them than it leaves to others, and neither have clients together that are not
	// admitted: what is more is dropped. It bounds their memory, too:
	// datagrams take none of MaxRequestBytes, for which one client's could make
	// those of all others wait.
	maxDatagramCalls = 64
)
