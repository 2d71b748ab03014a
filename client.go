package nfsbox

import (
	"github.com/nfsbox/nfsbox/internal/nfsclient"
	"github.com/nfsbox/nfsbox/internal/writeback"
	"github.com/nfsbox/nfsbox/vfs"
)

// Client is an open connection to a server. All methods but Close may be called
// concurrently.
type Client struct {
	conn *nfsclient.Conn
	fs   *writeback.FS
}

// FS is the file system below the URL's directory. It is valid until Close.
func (c *Client) FS() vfs.FS { return c.fs }

// Target is the name of what the URL names, in FS's root, where it need not
// exist; "" is the root itself.
func (c *Client) Target() string { return c.conn.Target() }

// Stats are counters of a client. All but InFlight only grow.
type Stats struct {
	RPCs        uint64 // calls made
	Retransmits uint64 // calls sent again
	Timeouts    uint64 // tries that got no reply in time
	Cancelled   uint64 // calls given up by their caller
	Reconnects  uint64
	BytesIn     uint64 // received
	BytesOut    uint64 // sent
	InFlight    int    // calls under way
	Dirty       int64  // memory, in bytes, of what was written and is not yet known to be stable
}

// Stats returns the counters since Dial.
func (c *Client) Stats() Stats {
	s := c.conn.Stats()
	return Stats{
		RPCs:        s.Calls,
		Retransmits: s.Retransmits,
		Timeouts:    s.Timeouts,
		Cancelled:   s.Cancelled,
		Reconnects:  s.Reconnects,
		BytesIn:     s.BytesIn,
		BytesOut:    s.BytesOut,
		InFlight:    s.InFlight,
		Dirty:       c.fs.Dirty(),
	}
}

// Close ends the client. Files are to be closed before: what they have not made
// stable is lost, as it would be in a crash. The server is told, if it answers
// within two seconds.
func (c *Client) Close() error { return c.conn.Close() }
