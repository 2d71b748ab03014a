package writeback

import "github.com/nfsbox/nfsbox/vfs"

// closed remembers, of objects whose last file was closed, when bytes of them became stable last.
// Replies to calls that were made before may not know of these bytes. shared.mu guards it.
type closed struct {
	stableAt map[vfs.Handle]uint64 // shared.stableCount then
	order    []vfs.Handle          // its keys, at most maxClosed
	oldest   int                   // in order, once that is full
	forgot   uint64                // the latest of those that are remembered no more
}

// add notes that the last file of h was closed. At the bound the oldest is forgotten.
func (c *closed) add(h vfs.Handle, stableAt uint64) {
	if c.stableAt == nil {
		c.stableAt = make(map[vfs.Handle]uint64)
	}
	if _, known := c.stableAt[h]; !known {
		if len(c.order) < maxClosed {
			c.order = append(c.order, h)
		} else {
			place := &c.order[c.oldest]
			c.oldest = (c.oldest + 1) % maxClosed
			c.forgot = max(c.forgot, c.stableAt[*place])
			delete(c.stableAt, *place)
			*place = h
		}
	}
	c.stableAt[h] = stableAt
}

// behind reports whether a reply about h may be older than bytes that have become stable. Its call
// was made when shared.stableCount was since.
func (c *closed) behind(h vfs.Handle, since uint64) bool {
	return max(c.forgot, c.stableAt[h]) > since
}
