package sim

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

// Conn is one end of a connection of a [Network]: a net.Conn with the CloseWrite
// of a TCP connection, and with handles for faults. Every method may be called
// concurrently.
type Conn struct {
	net           *Network
	in, out       *stream
	local, remote netip.AddrPort
	peer          *Conn
	closed        bool // guarded by net.mu
}

// Read returns what has arrived, at most len(p) bytes.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.wrap("read", err)
}

// Write sends p. It blocks while the connection's buffer is full.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	if c.out.wasCut() {
		c.in.cutBehind()
	}
	return n, c.wrap("write", err)
}

// CloseWrite ends the outgoing direction: the peer reads what was sent, then
// io.EOF.
func (c *Conn) CloseWrite() error { return c.wrap("close", c.out.closeWrite()) }

// Close closes the connection. What was sent before arrives. But if the peer's bytes have not
// all been read, the peer is reset and loses what it had not yet read, as with TCP (RFC 2525,
// section 2.17).
func (c *Conn) Close() error {
	unread, err := c.in.closeRead()
	if err != nil {
		return c.wrap("close", err)
	}
	c.net.forget(c)
	if unread {
		c.out.reset()
	} else {
		c.out.finish()
	}
	return nil
}

// Reset cuts the connection at once: both ends fail with ECONNRESET, and bytes in flight are lost.
func (c *Conn) Reset() {
	c.net.forget(c)
	c.net.forget(c.peer)
	c.in.reset()
	c.out.reset()
}

// LocalAddr is a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.local) }

// RemoteAddr is a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline makes Reads fail from t on, including blocked ones.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.wrap("set", c.in.setReadDeadline(t))
}

// SetWriteDeadline makes Writes fail from t on, including blocked ones.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.wrap("set", c.out.setWriteDeadline(t))
}

// SetFaults sets the faults of the bytes that this end sends from now on. Bytes that an earlier
// StallAfter held back are released, unless f holds them again.
func (c *Conn) SetFaults(f Faults) { c.out.setFaults(f) }

// Peer is the other end.
func (c *Conn) Peer() *Conn { return c.peer }

// Stats counts what went through this end.
func (c *Conn) Stats() Stats {
	var s Stats
	s.Writes, s.BytesWritten = c.out.written()
	s.Reads, s.BytesRead = c.in.taken()
	return s
}

// Stats are the counters of one end of a connection. They only grow.
type Stats struct {
	// Writes counts the calls of Write that sent at least one byte: one for
	// each message, if every message leaves in one write. net.Buffers calls
	// Write once for each of its parts on any connection but the system's own.
	Writes       int64
	BytesWritten int64
	Reads        int64 // calls of Read that returned at least one byte
	BytesRead    int64
}

// wrap wraps err as package net does; io.EOF is returned as it is.
func (c *Conn) wrap(op string, err error) error {
	if err == nil || errors.Is(err, errEOF) {
		return err
	}
	return opError(op, c.LocalAddr(), c.remote, err)
}
