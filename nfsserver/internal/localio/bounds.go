package localio

import (
	"time"

	"github.com/nfsbox/nfsbox/proto/localio"
)

const (
	// DefaultMaxFiles is how many files one client has at once, and
	// MaxFiles how many it may be. At the bound a file is SESSION_CROWDED.
	DefaultMaxFiles = 1024
	MaxFiles        = localio.SESSION_MAX_SLOTS

	// DefaultMaxSessions is how many clients are served at once, each of which
	// has a descriptor for its socket and one for its page. At the bound a
	// client that hands in its nonce loses its socket, and stays remote, unless
	// another user has more of them: then that one loses one.
	DefaultMaxSessions = 256

	// maxStrangers is how many connections may be there of whom no RPC
	// connection has told yet. At the bound the oldest of the user who has most
	// of them goes, so that one user cannot keep out the others.
	maxStrangers = 64

	// helloTime is how long a connection may be silent at its beginning, and
	// nonceTime how long a nonce is good. Then the connection is closed.
	helloTime = 2 * time.Second
	nonceTime = 5 * time.Second

	// maxStuck is how many clients whose session has ended may hold up the goroutine that
	// receives from them all the same, on a thread of his own: before Linux 6.16 they can,
	// with a descriptor that does not close (see package session). At the bound no
	// more clients are accepted.
	// readersTime is how long Close waits for them.
	maxStuck    = 256
	readersTime = 2 * time.Second

	// maxOpening is how many files of one client are opened at once, or wait to be
	// sent: so many descriptors, and goroutines, it costs at most. At the bound
	// others wait, maxAsked at most. Then the client is not read, and its end is
	// not seen until one of them is opened.
	maxOpening = 16
	maxAsked   = 512

	// maxAloft is how many files of all clients together are being opened, or are
	// open and not yet sent, and maxAloftOfUser how many of them those of one
	// user: a client that takes nothing has them for session.SendTimeout. At
	// either bound a file is SESSION_CROWDED.
	maxAloft       = 384
	maxAloftOfUser = 192

	// maxFilesOfUser is how many files the clients of one user have at once, each
	// of which is watched, of which file systems do not bear any number. At the
	// bound a file is SESSION_CROWDED.
	maxFilesOfUser = 16 << 10

	// acceptPauseMin and acceptPauseMax bound the pause after an accept that
	// failed, which doubles each time.
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)
