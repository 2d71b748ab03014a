package localio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/proto/localio"
)

// client is the process at the other end of a session. It is a stranger until its nonce
// comes over an RPC connection; conn is then that connection.
type client struct {
	s       *Service
	c       *session.Conn
	peer    session.Peer
	conn    atomic.Pointer[peer.Conn]
	foreign atomic.Bool // of another user namespace: its uids are not ours
	timer   *time.Timer // ends a stranger
	ctx     context.Context
	cancel  context.CancelFunc
	room    chan struct{} // a token when asked may have become shorter
	ended   sync.Once

	commitment [commitmentSize]byte // guarded by s.mu

	mu        sync.Mutex
	gone      bool                     // guarded by mu, as is what follows
	page      *session.Page            // nil before HELLO
	slots     []slot                   // as many as were needed so far
	free      []uint32                 // indices of slots that are free
	sending   bool                     // a goroutine sends
	greetings []localio.SessionMessage // to be sent: WELCOME and BOUND
	revoked   []localio.SessionFile    // to be sent; each slot at most once
	asked     []request                // files that wait to be opened; maxAsked at most
	opening   int                      // files that are being opened, or wait to be sent; maxOpening at most
	answers   []*answer                // to be sent; counted in opening
}

// newClient makes a stranger of a connection. s.mu is held.
func newClient(s *Service, conn *session.Conn) *client {
	c := &client{s: s, c: conn, peer: conn.Peer(), room: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.timer = time.AfterFunc(helloTime, func() { s.expire(c) })
	return c
}

// errLate ends a stranger that was not bound in time.
var errLate = errors.New("no nonce in time")

// expire ends c if it is still a stranger.
func (s *Service) expire(c *client) {
	s.mu.Lock()
	late := slices.Contains(s.strangers, c)
	s.mu.Unlock()
	if late {
		c.fail(errLate)
	}
}

// end ends the session: it marks the page as dead, shuts the socket down and ends all
// watches. When it returns, that is done, by this call or another. It does not wait for
// the goroutine that receives: see maxStuck.
func (c *client) end(why error) {
	c.ended.Do(func() {
		c.mu.Lock()
		c.gone = true
		page, slots, answers := c.page, c.slots, c.answers
		held := len(slots) - len(c.free)
		c.slots, c.free, c.asked, c.answers, c.revoked, c.greetings = nil, nil, nil, nil, nil, nil
		if page != nil {
			page.Store(0, 0)
		}
		c.mu.Unlock()

		s := c.s
		s.mu.Lock()
		s.estrange(c)
		delete(s.bound, c)
		s.mu.Unlock()
		c.timer.Stop()
		c.cancel()
		err := c.c.Shutdown()
		s.held.give(c.peer.UID, held)
		for i := range slots {
			slots[i].end(&s.n)
		}
		for _, a := range answers {
			err = errors.Join(err, c.land(a))
		}
		if page != nil {
			page.Close()
		}
		s.o.Log.Debug("local client gone", slog.Uint64("uid", uint64(c.peer.UID)), slog.Int("pid", int(c.peer.PID)),
			slog.Any("why", errors.Join(why, err)))
	})
}

func (c *client) serve() {
	defer func() { <-c.s.places }()
	defer func() {
		if err := c.c.Close(); err != nil {
			c.s.o.Log.Warn("closing a socket failed", slog.Any("error", err))
		}
	}()
	var m localio.SessionMessage
	for {
		_, err := c.c.Receive(&m) // the kernel drops descriptors that a client sends
		if err == nil {
			err = c.take(&m)
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

// fail ends the session for an error. It counts as the client's fault, unless either side
// has just ended the session.
func (c *client) fail(err error) {
	if c.ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) {
		c.s.n.broken.Add(1)
	}
	c.end(err)
}

// take serves one message. An error ends the session.
func (c *client) take(m *localio.SessionMessage) error {
	if m.Type == localio.SESSION_HELLO {
		return c.hello(&m.Hello)
	}
	if c.conn.Load() == nil {
		return fmt.Errorf("%v of a client that is not bound", m.Type)
	}
	if m.Type == localio.SESSION_OPEN {
		return c.openAll(m.Open.Files)
	}
	for _, f := range m.Close.Files {
		c.release(f.Slot, f.Generation, stateOpen, stateRevoked)
	}
	return nil
}

func (c *client) hello(h *localio.SessionHello) error {
	if h.Speaks < localio.SESSION_VERSION {
		return fmt.Errorf("a client of version %d", h.Speaks)
	}
	page, err := session.NewPage(c.s.o.MaxFiles)
	if err != nil {
		return err
	}
	page.Store(0, localio.PAGE_LIVE)
	c.mu.Lock()
	taken := c.gone || c.page != nil
	if !taken {
		c.page = page
	}
	c.mu.Unlock()
	if taken {
		page.Close()
		return errors.New("a second HELLO, or one too late")
	}
	c.foreign.Store(foreign(c.peer.UserNS, h.UserNs, c.s.ns))
	if err := c.commit(h.Commitment); err != nil {
		return err
	}
	c.queue(func() {
		c.greetings = append(c.greetings, localio.SessionMessage{Type: localio.SESSION_WELCOME, Welcome: localio.SessionWelcome{
			Speaks: localio.SESSION_VERSION, Uuid: c.s.o.UUID, Slots: uint32(c.s.o.MaxFiles),
		}})
	})
	return nil
}

// foreign reports whether a client is known to be in another user namespace than ours: by
// what the kernel says or, where it does not let us ask, by what the client says.
func foreign(kernel, says, ours uint64) bool {
	ns := cmp.Or(kernel, says)
	return ns != 0 && ours != 0 && ns != ours
}

// commit enters c under the hash of its nonce. A second client with the same hash is
// refused.
func (c *client) commit(hash [commitmentSize]byte) error {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.strangers, c) {
		return errLate
	}
	if s.pending[hash] != nil {
		return errors.New("another client's commitment")
	}
	c.commitment = hash
	s.pending[hash] = c
	c.timer.Reset(nonceTime)
	return nil
}
