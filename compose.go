package nfsbox

import (
	"github.com/nfsbox/nfsbox/internal/client/attrcache"
	"github.com/nfsbox/nfsbox/internal/client/cache"
	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient/nlm"
	"github.com/nfsbox/nfsbox/internal/client/readahead"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
)

// compose puts the client's file systems above each other, from the wire up. Locks go over the wire
// also for files that are read and written without it, so that other clients meet them. They
// stand below what keeps bytes, which passes them on and does what they mean for its bytes. st is
// where what is read is kept; nil: nowhere. What is local anyway bypasses it, so it stands above
// local I/O, and above what answers for a silent server, by which it may go on. What is read ahead comes
// from it, and all that is written passes through it.
// What keeps attributes stands below the owner of dirty bytes: so it sees each WRITE and COMMIT as the
// server does, and sizes that it keeps are the server's. Without ac, or its like, it is not there.
func (c *Client) compose(o *config, st *store.Store) {
	fs := c.conn.FS()
	if c.local != nil {
		fs = c.local
	}
	c.locks = nlm.New(fs, c.conn.Locks())
	fs = o.bounded(c.locks)
	if st != nil {
		c.cache = cache.New(fs, st, cache.Options{Server: o.server(), Mark: o.cacheMark, Caller: o.FS.Caller})
		fs = c.cache
	}
	c.direct = fs
	c.ahead = readahead.New(fs, o.ahead)
	fs = c.ahead
	if o.keepsAttrs() {
		c.attrs = attrcache.New(fs, attrcache.Options{Times: attrcache.Times(o.attrTimes), Names: attrcache.Names(o.lookups), Caller: o.FS.Caller})
		fs = c.attrs
	}
	c.fs = writeback.New(fs, o.buffers)
}
