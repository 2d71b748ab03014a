package nfsbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient"
	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/internal/client/readahead"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// Option changes how Dial works. It overrides the URL.
type Option func(*config)

// config is the configuration of a client.
type config struct {
	nfsclient.Options
	maxLoad int  // of each class; 0: auto
	debug   bool // log debug records at information level
	buffers writeback.Options
	ahead   readahead.Options

	stop context.Context // of WithStop; nil: none

	localIO      LocalIO
	localIOEager bool
	localIODir   string // "": the default directories

	attrs     bool // attributes are kept
	attrTimes AttrTimes
	lookups   LookupCache

	proxy *Proxy // nil: calls wait as the URL says

	cached    bool
	cacheDir  string // "": the default
	cacheConf string // "": the system's, for root
	cacheMark string
	cacheNote func(string) // nil: logged
}

// WithCaller sets the user that calls are made for. The first 16 of its groups are sent.
func WithCaller(c vfs.Caller) Option {
	return func(o *config) { o.FS.Caller = c }
}

// WithDialer makes connections with dial, which has the type of net.Dialer.DialContext and is
// called with "tcp" and "host:port". The URL's arguments about sockets then have no effect.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(o *config) { o.Dial = dial }
}

// WithMachineName sets this host's name in credentials; the default is its host name. More than
// 255 bytes are an error of Dial.
func WithMachineName(name string) Option {
	return func(o *config) { o.FS.Machine = name }
}

// WithRand takes random bytes (call numbers, hidden names, pauses) from fill
// instead of crypto/rand. It is called concurrently.
func WithRand(fill func(p []byte)) Option {
	return func(o *config) { o.Rand = fill }
}

// WithReadOnly makes every change fail with vfs.ErrROFS, like readonly in the URL.
func WithReadOnly() Option {
	return func(o *config) { o.FS.ReadOnly = true }
}

// WithHard makes calls go on until their context ends, however long the server does not answer,
// like hard in the URL. The logger learns what a call waits for.
func WithHard() Option {
	return func(o *config) { o.FS.Hard, o.FS.SoftErr = true, false }
}

// WithTimeout sends a call again when it has no reply after try. A soft call fails after try
// times retries+1, however often it was sent and connections were lost. With retries of 0
// nothing is sent again. They are timeo and retrans of the URL. A try of 0 is the default.
func WithTimeout(try time.Duration, retries int) Option {
	return func(o *config) {
		// So many retries never end, and do not overflow in sums.
		if o.Timeout, o.Retries = try, min(retries, math.MaxInt32); retries <= 0 {
			o.Retries = -1
		}
	}
}

// WithConnections makes at most n connections, from 1 to 16, like nconnect in the URL.
func WithConnections(n int) Option {
	return func(o *config) {
		if o.Conns = n; n <= 0 {
			o.Conns = -1 // nfsclient refuses it; its 0 is the default
		}
	}
}

// WithMaxLoad allows n calls of each class (metadata, reads, writes) in flight, from 1 to 512; 0
// measures what is best for the server. It is max-load in the URL.
func WithMaxLoad(n int) Option {
	return func(o *config) { o.maxLoad = n }
}

// WithReadAhead bounds what is read ahead in an open file, in bytes; 0 switches it off. It is
// readahead in the URL.
func WithReadAhead(bytes int64) Option {
	return func(o *config) {
		if o.ahead.File = bytes; bytes <= 0 {
			o.ahead.File = -1
		}
		o.ahead.Total = max(bytes, readahead.DefaultTotal)
	}
}

// WithDirty bounds the memory for written data that is not known to be stable on the server, in
// bytes; 0 is 96 MiB. At the bound writers wait. One file has at most seven eighths of it.
func WithDirty(bytes int64) Option {
	return func(o *config) { o.buffers.MaxDirty = bytes }
}

// WithLogger logs servers that do not answer, and other events at debug level. Without it
// nothing is logged.
func WithLogger(log *slog.Logger) Option {
	return func(o *config) { o.Log = log }
}

// Silence is a period in which a server has sent nothing although calls waited for it. Server is
// the host, as in the URL, and a port.
type Silence = oncrpc.Silence

// WithSilence calls f when a server has sent nothing for five seconds while calls wait for it,
// Dial's own included. f learns since when, and when the first of the calls gives up. When the
// server sends again, f is called again; and before that, if calls still wait five seconds after
// that time. Each of the client's ports (NFS, MOUNT, the portmapper) makes these calls, possibly
// concurrently. f must not close the client.
func WithSilence(f func(Silence)) Option {
	return func(o *config) { o.Silent = f }
}

// complete fills in what the parts of the client need.
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
	if err := errors.Join(o.checkCache(), o.checkAttrs()); err != nil {
		return err
	}
	o.buffers.Patience = o.behind()
	o.FS.Pace = pace.New(pace.Options{Max: [pace.Classes]int{o.maxLoad, o.maxLoad, o.maxLoad}})
	if o.debug && o.Log != nil {
		o.Log = slog.New(louder{o.Log.Handler()})
	}
	return nil
}

// behind is how long writes in the background are tried: as long as a call of the program's own.
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

// louder is a handler that raises debug records to information level, for debug= in a URL: the
// URL cannot set the logger's level.
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
