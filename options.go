package nfsbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient"
	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// Option changes how Dial works. Where a URL says the same, the Option holds.
type Option func(*config)

// config is what Dial goes by.
type config struct {
	nfsclient.Options
	maxLoad int  // of each class; 0: auto
	debug   bool // what is logged at debug level is information
	buffers writeback.Options

	stop context.Context // of WithStop; nil: none

	localIO      LocalIO
	localIOEager bool
	localIODir   string // "": those of this host
}

// WithCaller says who is asking. Of the caller's groups the first 16 are sent.
func WithCaller(c vfs.Caller) Option {
	return func(o *config) { o.FS.Caller = c }
}

// WithDialer makes connections with dial, which has the type of
// net.Dialer.DialContext and is called with "tcp" and "host:port". The arguments
// of the URL that are about sockets then have no effect.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(o *config) { o.Dial = dial }
}

// WithMachineName says what this host is called in credentials; the default is
// its host name. More than 255 bytes are an error of Dial.
func WithMachineName(name string) Option {
	return func(o *config) { o.FS.Machine = name }
}

// WithRand takes random bytes (call numbers, hidden names, pauses) from fill
// instead of crypto/rand. It is called concurrently.
func WithRand(fill func(p []byte)) Option {
	return func(o *config) { o.Rand = fill }
}

// WithReadOnly makes whatever changes something vfs.ErrROFS, as readonly in the
// URL does.
func WithReadOnly() Option {
	return func(o *config) { o.FS.ReadOnly = true }
}

// WithHard makes calls go on until their context ends, as hard in the URL does,
// however long the server does not answer. What a call without an end waits for
// tells the logger.
func WithHard() Option {
	return func(o *config) { o.FS.Hard, o.FS.SoftErr = true, false }
}

// WithTimeout makes a call that is not answered be sent again after try. After try
// times retries+1 a soft call has failed, however often it was sent and connections
// were lost; with retries of 0 nothing is sent again. They are timeo and retrans of
// the URL. A try of 0 is the default.
func WithTimeout(try time.Duration, retries int) Option {
	return func(o *config) {
		// So many retries are for ever, and do not overflow where they are added to.
		if o.Timeout, o.Retries = try, min(retries, math.MaxInt32); retries <= 0 {
			o.Retries = -1
		}
	}
}

// WithConnections makes as many connections as n at most, from 1 to 16, as
// nconnect in the URL does.
func WithConnections(n int) Option {
	return func(o *config) {
		if o.Conns = n; n <= 0 {
			o.Conns = -1 // which nfsclient refuses; its 0 is the default
		}
	}
}

// WithMaxLoad allows n calls of each class (metadata, reads, writes) under way
// at once, from 1 to 512; 0 finds out what is best for the server. It is
// max-load in the URL.
func WithMaxLoad(n int) Option {
	return func(o *config) { o.maxLoad = n }
}

// WithReadAhead bounds what is read ahead in an open file, in bytes; 0 is no
// reading ahead. It is readahead in the URL.
func WithReadAhead(bytes int64) Option {
	return func(o *config) {
		if o.buffers.ReadAhead = bytes; bytes <= 0 {
			o.buffers.ReadAhead = -1
		}
		o.buffers.ReadAheadTotal = max(bytes, writeback.DefaultReadAheadTotal)
	}
}

// WithDirty bounds the memory, in bytes, for what was written and is not yet
// known to be stable on the server; 0 is 96 MiB. At the bound writers wait.
func WithDirty(bytes int64) Option {
	return func(o *config) { o.buffers.MaxDirty = bytes }
}

// WithLogger has log told of a server that does not answer, and at debug level
// of what else happens. Without it there is silence.
func WithLogger(log *slog.Logger) Option {
	return func(o *config) { o.Log = log }
}

// Silence is a time in which a server has sent nothing although calls waited for it.
// Its Server is the host, as the URL has it, and a port.
type Silence = oncrpc.Silence

// WithSilence has f told of a server that has sent nothing for five seconds while
// calls wait for it, Dial's own included: since when, and when the first of them gives
// up. When the server sends again, f is told so. It is told once of each time, by
// each of the client's ports (NFS, MOUNT, the portmapper), and called concurrently. It
// must not close the client.
func WithSilence(f func(Silence)) Option {
	return func(o *config) { o.Silent = f }
}

// complete makes what the parts of the client need of what was asked for.
func (o *config) complete() error {
	switch {
	case o.maxLoad < 0 || o.maxLoad > maxLoad:
		return fmt.Errorf("nfs: %d calls at once, from 1 to %d allowed", o.maxLoad, maxLoad)
	case o.Timeout < 0:
		return fmt.Errorf("nfs: a time-out of %v; a positive one is wanted", o.Timeout)
	case int(o.localIO) >= len(localIOModes):
		return fmt.Errorf("nfs: there is no %v", o.localIO)
	case o.localIODir != "":
		if err := checkLocalIODir(o.localIODir); err != nil {
			return fmt.Errorf("nfs: directory of local I/O: %w", err)
		}
	}
	o.buffers.Patience = o.behind()
	o.FS.Pace = pace.New(pace.Options{Max: [pace.Classes]int{o.maxLoad, o.maxLoad, o.maxLoad}})
	if o.debug && o.Log != nil {
		o.Log = slog.New(louder{o.Log.Handler()})
	}
	return nil
}

// behind is how long what was written behind a program's back is tried: as long
// as a call of its own would be.
func (o *config) behind() time.Duration {
	if o.FS.Hard {
		return math.MaxInt64
	}
	tries := int64(max(cmp.Or(o.Retries, oncrpc.DefaultRetries), 0)) + 1
	try := cmp.Or(o.Timeout, oncrpc.DefaultTimeout)
	if tries > int64(math.MaxInt64/try) {
		return math.MaxInt64
	}
	return time.Duration(tries) * try
}

// louder is a handler that takes records of debug level for information: what
// debug= in a URL asks for, whose writer does not set the logger's level.
type louder struct{ slog.Handler }

func (l louder) Enabled(ctx context.Context, level slog.Level) bool {
	return l.Handler.Enabled(ctx, max(level, slog.LevelInfo))
}

func (l louder) Handle(ctx context.Context, r slog.Record) error {
	r.Level = max(r.Level, slog.LevelInfo)
	return l.Handler.Handle(ctx, r)
}

func (l louder) WithAttrs(attrs []slog.Attr) slog.Handler { return louder{l.Handler.WithAttrs(attrs)} }
func (l louder) WithGroup(name string) slog.Handler       { return louder{l.Handler.WithGroup(name)} }
