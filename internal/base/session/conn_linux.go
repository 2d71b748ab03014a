package session

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/xdr"
)

// maxPassed is how many descriptors the kernel accepts with one message (SCM_MAX_FD). With room
// for all of them, MSG_CTRUNC has only one cause.
const maxPassed = 253

// Conn is one end of a session.
type Conn struct {
	c      *net.UnixConn
	server bool // this end is the server's
	peer   Peer
	// patience is SendTimeout.
	patience time.Duration

	in, control []byte // of Receive

	once     sync.Once
	closeErr error

	mu     sync.Mutex
	out    []byte // guarded by mu
	failed error  // guarded by mu; why nothing more is sent
}

// newConn makes a Conn of c, and closes c if that fails.
func newConn(c *net.UnixConn, server bool) (*Conn, error) {
	peer, err := peerOf(c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	conn := &Conn{c: c, server: server, peer: peer, patience: SendTimeout, in: make([]byte, localio.SESSION_MAX_PACKET)}
	if !server {
		conn.control = make([]byte, unix.CmsgSpace(4*maxPassed))
	}
	return conn, nil
}

// Peer is the process at the other end.
func (c *Conn) Peer() Peer { return c.peer }

// Close ends the session. It may be called several times, and by any goroutine. After it has
// returned no message or descriptor is sent.
func (c *Conn) Close() error {
	c.once.Do(func() {
		if err := c.c.Close(); err != nil {
			c.closeErr = fmt.Errorf("localio: closing the socket: %w", err)
		}
	})
	return c.closeErr
}

// Shutdown ends the session like Close, but does not wait: Close waits for the goroutine that
// receives, and discards what was not received, which a peer can delay.
func (c *Conn) Shutdown() error {
	err := c.shut()
	c.mu.Lock() // excludes senders
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = fmt.Errorf("localio: %w", net.ErrClosed)
	}
	return err
}

// shut ends the connection for both sides.
func (c *Conn) shut() error {
	raw, err := c.c.SyscallConn()
	if err != nil {
		return fmt.Errorf("localio: %w", err)
	}
	var shut error
	if err := raw.Control(func(fd uintptr) { shut = unix.Shutdown(int(fd), unix.SHUT_RDWR) }); errors.Is(err, net.ErrClosed) {
		return nil
	} else if err = errors.Join(err, shut); err != nil && !errors.Is(err, unix.ENOTCONN) {
		return fmt.Errorf("localio: ending the session: %w", err)
	}
	return nil
}

// Send sends m with duplicates of fds, which the caller keeps. It may be called concurrently.
// It waits [SendTimeout] at most. An error other than [ErrNoDescriptors], or of encoding m,
// ends the session like Shutdown.
func (c *Conn) Send(m *localio.SessionMessage, fds ...int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return c.failed
	}
	b, err := m.AppendXDR(c.out[:0])
	if err != nil {
		return fmt.Errorf("localio: encoding %v: %w", m.Type, err)
	}
	c.out = b
	var control []byte
	if len(fds) > 0 {
		control = unix.UnixRights(fds...)
	}
	if err = c.c.SetWriteDeadline(time.Now().Add(c.patience)); err == nil {
		_, _, err = c.c.WriteMsgUnix(b, control, nil)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ETOOMANYREFS):
		return ErrNoDescriptors
	}
	c.failed = errors.Join(fmt.Errorf("localio: sending %v: %w", m.Type, err), c.shut())
	return c.failed
}

// Receive waits for the next message and decodes it into m. Handles in m are valid until the
// next Receive. The caller owns the descriptors, which are in the order of what they belong to.
// Only one goroutine may receive. The end of the session is io.EOF. Any error but
// [ErrNoDescriptors] closes the connection.
func (c *Conn) Receive(m *localio.SessionMessage) (fds []int, err error) {
	n, controls, flags, _, err := c.c.ReadMsgUnix(c.in, c.control)
	// An empty message looks like the end, and may carry descriptors.
	fds, rightsErr := rights(c.control[:controls])
	switch {
	case err == nil:
		err = rightsErr
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET): // ECONNRESET is the end after we have sent more
		err = io.EOF
	}
	if err == nil {
		err = c.decode(m, c.in[:n], flags, len(fds))
	}
	if err == nil {
		return fds, nil
	}
	err = errors.Join(err, closeAll(fds))
	if !errors.Is(err, ErrNoDescriptors) {
		err = errors.Join(err, c.Close())
	}
	return nil, err
}

// decode decodes a message and checks that this end may receive it.
func (c *Conn) decode(m *localio.SessionMessage, packet []byte, flags, fds int) error {
	if flags&unix.MSG_TRUNC != 0 {
		return fmt.Errorf("localio: a message of more than %d bytes", localio.SESSION_MAX_PACKET)
	}
	d := xdr.NewDecoder(packet)
	if err := m.DecodeXDR(&d); err != nil {
		return fmt.Errorf("localio: a message that is none: %w", err)
	}
	if err := d.Finish(); err != nil {
		return fmt.Errorf("localio: %v: %w", m.Type, err)
	}
	if fromClient(m.Type) != c.server {
		return fmt.Errorf("localio: %v is not for this end", m.Type)
	}
	want := beside(m)
	if flags&unix.MSG_CTRUNC != 0 && want > 0 && fds <= want {
		return ErrNoDescriptors
	}
	if flags&unix.MSG_CTRUNC != 0 || fds != want {
		return fmt.Errorf("localio: %v with other descriptors than it tells of", m.Type)
	}
	return nil
}

// fromClient reports whether clients send messages of this type.
func fromClient(t localio.SessionType) bool {
	return t == localio.SESSION_HELLO || t == localio.SESSION_OPEN || t == localio.SESSION_CLOSE
}

// beside is how many descriptors belong to m.
func beside(m *localio.SessionMessage) int {
	switch m.Type {
	case localio.SESSION_WELCOME:
		return 1
	case localio.SESSION_OPENED:
		n := 0
		for i := range m.Opened.Files {
			if m.Opened.Files[i].Why == localio.SESSION_OK {
				n++
			}
		}
		return n
	}
	return 0
}

// rights returns the descriptors in control messages. It returns those found even with an error.
func rights(control []byte) ([]int, error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("localio: control messages: %w", err)
	}
	var fds []int
	for i := range messages {
		got, parseErr := unix.ParseUnixRights(&messages[i])
		fds, err = append(fds, got...), errors.Join(err, parseErr)
	}
	return fds, err
}

func closeAll(fds []int) error {
	var err error
	for _, fd := range fds {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}
