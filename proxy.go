package nfsbox

import (
	"time"

	"github.com/nfsbox/nfsbox/internal/client/outage"
	"github.com/nfsbox/nfsbox/vfs"
)

// Proxy says how a client waits for its server on behalf of others.
type Proxy struct {
	// Answer is the most that a call waits for the server; 0: 5 s. Then it is vfs.ErrBusy, and so are all
	// calls, at once, until the server answers again. A change goes on, and the next call with the same one for the
	// same caller gets its outcome.
	Answer time.Duration
	// Offline is how long attributes, rights and look-ups that the server told are told on in its stead while it does
	// not answer, and files read that the cache has; 0: not at all.
	Offline time.Duration
	// Silent is told that the server does not answer, and that it does again. It is called by any goroutine, and
	// must not use the client. nil: nobody is told.
	Silent func(bool)
}

// WithProxy is for a server that passes its own clients' calls on, by [Client.Direct]. A call of that waits for a bounded time.
// It is one call to the server: nothing is fetched ahead, and a file that is removed while it is open is gone.
// Calls are sent again until they are answered (hard).
func WithProxy(p Proxy) Option {
	return func(o *config) {
		o.proxy, o.FS.Plain = &p, true
		o.FS.Hard, o.FS.SoftErr = true, false
	}
}

// Direct is FS without what is read ahead and without written data that is kept: a call reaches the server, unless a cache has
// what is read. Written data is as stable as the server says. A program uses Direct or FS, not both: what FS keeps
// is not seen here.
func (c *Client) Direct() vfs.FS { return c.direct }

// bounded puts what a proxy needs above fs.
func (o *config) bounded(fs vfs.FS) vfs.FS {
	if o.proxy == nil {
		return fs
	}
	return outage.New(fs, outage.Options{Answer: o.proxy.Answer, Offline: o.proxy.Offline, Caller: o.FS.Caller, Changed: o.proxy.Silent})
}
