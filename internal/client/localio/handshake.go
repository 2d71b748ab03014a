package localio

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/proto/localio"
)

// run makes handshakes and serves sessions until the FS is closed.
func (s *shared) run() {
	var pause, flap time.Duration
	for s.pause(pause) {
		l, err := s.meet()
		if err != nil {
			s.remote(err.Error())
			pause = min(max(retryMin, 2*pause), retryMax)
			continue
		}
		began := time.Now()
		s.local(l)
		stop := context.AfterFunc(s.ctx, func() { _ = l.conn.Close() })
		err = l.receive()
		stop()
		s.link.CompareAndSwap(l, nil)
		s.remote("the session with the server has ended: " + err.Error())
		l.end()
		s.hints.Store(maxHints)
		if flap = min(max(flapPause, 2*flap), retryMin); time.Since(began) >= lastsTime {
			flap = 0
		}
		pause = flap
	}
	s.remote("it is closed")
}

// pause waits for between half of d and d, or until there is a hint and retryMin has passed. It returns
// false if the FS is closed.
func (s *shared) pause(d time.Duration) bool {
	if d == 0 {
		return s.ctx.Err() == nil
	}
	half := uint64(d) / 2
	d -= time.Duration(s.random() % (half + 1))
	least := min(d, retryMin)
	timer := time.NewTimer(least)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		return false
	}
	if d == least {
		return true
	}
	timer.Reset(d - least)
	select {
	case <-timer.C:
	case <-s.hint:
		s.hints.Add(-1)
	case <-s.ctx.Done():
		return false
	}
	return true
}

// hear is called when the server has answered over the network. If a session was lost recently,
// that is a hint for a handshake.
func (s *shared) hear() {
	if s.link.Load() == nil && s.hints.Load() > 0 {
		select {
		case s.hint <- struct{}{}:
		default:
		}
	}
}

// meet finds out whether the server is on this host, and begins a session.
func (s *shared) meet() (*link, error) {
	uuid, err := s.p.ServerUUID(s.ctx)
	if err != nil {
		return nil, fmt.Errorf("the server does not speak LOCALIO, or cannot be asked: %w", err)
	}
	ctx, cancel := context.WithTimeout(s.ctx, greetTime)
	defer cancel()
	conn, path, err := s.connect(ctx, uuid)
	if err != nil {
		return nil, err
	}
	// Closing the socket is the only way to end the wait for a message.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	l := &link{
		s: s, conn: conn, socket: path,
		pending: make(map[uint32]*ask), bySlot: make(map[uint32]*grant), strangers: make(map[claim]struct{}),
	}
	err = l.greet(ctx, uuid)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if l.page != nil {
			l.page.Close()
		}
		_ = conn.Close()
		if ctx.Err() != nil {
			err = errors.New("it did not answer in time")
		}
		return nil, fmt.Errorf("what owns the socket %s is not the server, or does not know what to say: %w", path, err)
	}
	return l, nil
}

// connect finds the server's socket.
func (s *shared) connect(ctx context.Context, uuid [localio.UUID_SIZE]byte) (conn *session.Conn, path string, err error) {
	var reasons []string
	for _, dir := range s.o.Dirs {
		conn, err := session.Connect(ctx, dir, uuid)
		if err == nil {
			return conn, dir + "/" + session.FormatUUID(uuid) + ".sock", nil
		}
		if refused, ok := errors.AsType[*session.Refused](err); ok {
			reasons = append(reasons, refused.Why)
		} else if !errors.Is(err, fs.ErrNotExist) {
			reasons = append(reasons, err.Error())
		}
	}
	if len(reasons) > 0 {
		return nil, "", errors.New("the server's socket cannot be used: " + strings.Join(reasons, "; "))
	}
	return nil, "", fmt.Errorf("the server speaks LOCALIO, but has no socket in %s: it is on another host, or its socket in another directory",
		strings.Join(s.o.Dirs, " or "))
}

// greet makes the handshake. Nothing is trusted before BOUND, which shows that what was sent over the
// network has reached the owner of the socket.
func (l *link) greet(ctx context.Context, uuid [localio.UUID_SIZE]byte) error {
	var nonce [localio.UUID_SIZE]byte
	l.s.o.Rand(nonce[:])
	hello := localio.SessionMessage{Type: localio.SESSION_HELLO, Hello: localio.SessionHello{
		Speaks: localio.SESSION_VERSION, Commitment: sha256.Sum256(nonce[:]), UserNs: session.UserNS(),
	}}
	if err := l.conn.Send(&hello); err != nil {
		return err
	}
	if err := l.welcome(uuid); err != nil {
		return err
	}
	if err := l.s.p.OfferNonce(ctx, nonce); err != nil {
		return fmt.Errorf("it does not take the second step: %w", err)
	}
	var m localio.SessionMessage
	switch fds, err := l.conn.Receive(&m); {
	case err != nil:
		return fmt.Errorf("it has not been told over the network: %w", err)
	case m.Type != localio.SESSION_BOUND:
		return errors.Join(fmt.Errorf("%v instead of %v", m.Type, localio.SESSION_BOUND), closeAll(fds))
	case subtle.ConstantTimeCompare(m.Bound.Nonce[:], nonce[:]) != 1:
		return errors.New("it was told something else over the network")
	}
	return nil
}

// welcome takes the server's greeting, and its page.
func (l *link) welcome(uuid [localio.UUID_SIZE]byte) error {
	var m localio.SessionMessage
	fds, err := l.conn.Receive(&m)
	if err != nil {
		return err
	}
	w := &m.Welcome
	switch {
	case m.Type != localio.SESSION_WELCOME:
		err = fmt.Errorf("%v instead of %v", m.Type, localio.SESSION_WELCOME)
	case w.Speaks != localio.SESSION_VERSION:
		err = fmt.Errorf("it speaks version %d, and we %d", w.Speaks, localio.SESSION_VERSION)
	case w.Uuid != uuid:
		err = errors.New("it is another server")
	case w.Slots < 1 || w.Slots > localio.SESSION_MAX_SLOTS:
		err = fmt.Errorf("%d files at once", w.Slots)
	default:
		l.slots = int(w.Slots)
		l.page, err = session.MapPage(fds[0], l.slots)
	}
	return errors.Join(err, closeAll(fds))
}

func closeAll(fds []int) (err error) {
	for _, fd := range fds {
		err = errors.Join(err, closeFD(fd))
	}
	return err
}

// local makes l the current session.
func (s *shared) local(l *link) {
	s.mu.Lock()
	s.why, s.some = "", ""
	s.mu.Unlock()
	s.count.handshakes.Add(1)
	s.o.Log.Info("LOCALIO: files are read and written past the network", "socket", l.socket)
	s.link.Store(l)
	s.meeting.Do(func() { close(s.met) })
}

// remote records why there is no session. The same reason is logged once.
func (s *shared) remote(why string) {
	s.mu.Lock()
	news := s.why != why
	s.why = why
	s.mu.Unlock()
	if news && s.ctx.Err() == nil {
		s.o.Log.Info("LOCALIO: files are read and written over the network", "why", why)
	}
	s.meeting.Do(func() { close(s.met) })
}
