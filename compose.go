package nfsbox

import (
	"github.com/nfsbox/nfsbox/internal/client/cache"
	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/internal/client/readahead"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
)

// compose puts the client's file systems above each other, from the wire up. st is where what is read
// is kept; nil: nowhere. What is local anyway bypasses it, so it stands above local I/O. What is read ahead
// comes from it, and all that is written passes through it.
func (c *Client) compose(o *config, st *store.Store) {
	fs := c.conn.FS()
	if c.local != nil {
		fs = c.local
	}
	if st != nil {
		c.cache = cache.New(fs, st, cache.Options{Server: o.server(), Mark: o.cacheMark, Caller: o.FS.Caller})
		fs = c.cache
	}
	c.ahead = readahead.New(fs, o.ahead)
	c.fs = writeback.New(c.ahead, o.buffers)
}
