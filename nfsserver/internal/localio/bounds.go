package localio

import (
	"time"

	"github.com/nfsbox/nfsbox/proto/localio"
)

const (
	// DefaultMaxFiles is the default bound of the files that one client has at once,
	// and MaxFiles the largest. At the bound a file is SESSION_CROWDED.
	DefaultMaxFiles = 1024
	MaxFiles        = localio.SESSION_MAX_SLOTS // the protocol's

	// DefaultMaxSessions is the default bound of clients that are served at once. Each
	// has a descriptor for its socket and one for its page. At the bound a client that
	// sends its nonce loses its socket, and stays remote. If another user has more
	// clients, one of that user's loses its session instead.
	DefaultMaxSessions = 256

	// maxStrangers bounds the connections that are not yet bound to an RPC connection.
	// At the bound the oldest one of the user with the most of them is closed, so that
	// one user cannot keep out the others.
	maxStrangers = 64

	// helloTime is the timeout of a connection until HELLO, and nonceTime until its
	// nonce comes by RPC. Then the connection is closed.
	helloTime = 2 * time.Second
	nonceTime = 5 * time.Second

	// maxStuck bounds the clients whose session has ended, but which still block the
	// goroutine that receives from them, and its thread. Before Linux 6.16 a client can
	// do that with a descriptor whose close blocks (see package session). At the bound
	// no more clients are accepted. readersTime is how long Close waits for such
	// goroutines.
	maxStuck    = 256
	readersTime = 2 * time.Second

	// maxOpening bounds the files of one client that are being opened or wait to be
	// sent, and so its descriptors and goroutines. At the bound further requests wait,
	// maxAsked at most. At that bound nothing is read from the client, and its end is
	// not noticed until one of the files is opened.
	maxOpening = 16
	maxAsked   = 512

	// maxAloft bounds the files of all clients together that are being opened, or are
	// open and not yet sent. maxAloftOfUser bounds those of one user: a client that
	// receives nothing holds them for session.SendTimeout. At either bound a file is
	// SESSION_CROWDED.
	maxAloft       = 384
	maxAloftOfUser = 192

	// maxFilesOfUser bounds the files that the clients of one user have at once. Each is
	// watched, and file systems bound their watches. At the bound a file is
	// SESSION_CROWDED.
	maxFilesOfUser = 16 << 10

	// acceptPauseMin and acceptPauseMax bound the pause after an accept that
	// failed, which doubles each time.
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)
