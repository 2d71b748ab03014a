package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/budget"
)

// NewServer returns a server of services. It is an error if two of them are the
// same version of the same program, or if one has more handlers than procedures.
func NewServer(services []Service, o ServerOptions) (*Server, error) {
	o.defaults()
	for i, s := range services {
		if s.Program == nil {
			return nil, fmt.Errorf("oncrpc: service %d has no program", i)
		}
		if n := max(len(s.Handlers), len(s.Once)); n > len(s.Program.Procs) {
			return nil, fmt.Errorf("oncrpc: %s has %d procedures and %d handlers", s.Program.Name, len(s.Program.Procs), n)
		}
		for _, t := range services[:i] {
			if s.Program.Number == t.Program.Number && s.Program.Version == t.Program.Version {
				return nil, fmt.Errorf("oncrpc: program %d version %d is there twice", s.Program.Number, s.Program.Version)
			}
		}
	}
	epoch := time.Now()
	s := &Server{
		o:              o,
		epoch:          epoch,
		budget:         budget.New(o.MaxRequestBytes, o.MaxRecord, epoch),
		strangerBudget: budget.New(strangerBytes, o.MaxRecord, epoch),
		shares:         make(map[string]int),
		listeners:      make(map[*net.Listener]struct{}),
		conns:          make(map[*serverConn]struct{}),
		packets:        make(map[*packetConn]struct{}),
	}
	for _, svc := range services {
		s.services = append(s.services, binding{svc, make([]procServerCounters, len(svc.Program.Procs))})
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Serve accepts connections on l until Shutdown or Close. These close l, and Serve returns
// [ErrServerClosed]. A listener that fails for good ends it, too.
func (s *Server) Serve(l net.Listener) error {
	if !s.track(&l) {
		return errors.Join(ErrServerClosed, l.Close())
	}
	defer s.untrack(&l)
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.accept(nc)
			continue
		}
		if s.closing() {
			return ErrServerClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("oncrpc: listener %v: %w", l.Addr(), err)
		}
		pause = min(max(2*pause, acceptPauseMin), acceptPauseMax)
		s.o.Log.Error("accepting a connection failed, trying again", "listener", l.Addr(), "err", err, "pause", pause)
		if !s.sleep(pause) {
			return ErrServerClosed
		}
	}
}

func (s *Server) track(l *net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ending {
		s.listeners[l] = struct{}{}
	}
	return !s.ending
}

func (s *Server) untrack(l *net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// accept begins to serve nc, or closes it if there is no room and none can be made.
func (s *Server) accept(nc net.Conn) {
	s.stats.accepted.Add(1)
	remote := s.peer(nc, nc.RemoteAddr(), nc.LocalAddr())
	s.mu.Lock()
	defer s.mu.Unlock()
	share := ShareOf(remote)
	if s.ending || !s.roomFor(share) {
		s.stats.refused.Add(1)
		_ = nc.Close() // nothing was read or written
		return
	}
	sc := newServerConn(s, nc, remote, share)
	s.conns[sc] = struct{}{}
	s.shares[share]++
	s.wg.Add(1)
	go sc.serve()
}

func newServerConn(s *Server, nc net.Conn, remote net.Addr, share string) *serverConn {
	sc := &serverConn{s: s, nc: nc, share: share, remote: remote, local: nc.LocalAddr(),
		stop: make(chan struct{}), opened: time.Now(), out: &batch{}, spare: &batch{}}
	sc.active = sc.opened
	sc.fewer.L = &sc.mu
	sc.worker = sc.work
	sc.ctx, sc.cancel = context.WithCancel(s.ctx)
	if s.o.Replies != nil {
		sc.serial = s.o.Replies.Serial()
	}
	return sc
}

// serve is the connection's life.
func (sc *serverConn) serve() {
	s := sc.s
	defer s.wg.Done()
	defer sc.cancel()
	sc.memory, sc.strangerMemory = s.budget.Join(sc.share), s.strangerBudget.Join(sc.share)
	defer sc.memory.Leave()
	defer sc.strangerMemory.Leave()
	if r := s.o.Replies; r != nil {
		m := r.Client(sc.remote)
		defer m.Release()
		sc.mu.Lock()
		sc.client = m
		sc.mu.Unlock()
	}
	err := sc.open()
	if err == nil && !s.join(sc) {
		err = errEvicted
	}
	if err == nil {
		window := s.pool.Get(serverReadBuffer)
		sc.r = recordReader{src: (*serverSource)(sc), buf: window.B, ahead: serverReadBuffer, max: s.o.MaxRecord}
		err = sc.readCalls()
		window.Release()
		sc.finish(err)
	} else {
		s.stats.refused.Add(1)
		sc.fail(err)
	}
	s.mu.Lock()
	s.remove(sc)
	s.mu.Unlock()
}

// open prepares the connection for use.
func (sc *serverConn) open() error {
	if t, ok := sc.nc.(*net.TCPConn); ok {
		if err := t.SetNoDelay(!sc.s.o.nagle); err != nil {
			return err
		}
	}
	if sc.s.o.NewConn == nil {
		return nil
	}
	state, err := sc.s.o.NewConn(sc.remote, sc.local)
	sc.state = state
	return err
}

// finish ends a connection whose reading has ended with err. No reply is lost where the
// server shuts down, or where the client has closed its side alone and gets its replies
// within lingerTime.
func (sc *serverConn) finish(err error) {
	switch {
	case errors.Is(err, io.EOF):
		// The client may be gone altogether. Handlers must not wait for ever on its behalf.
		sc.mu.Lock()
		sc.eof = true
		sc.mu.Unlock()
		defer time.AfterFunc(sc.s.o.linger, func() { sc.fail(err) }).Stop()
	case !errors.Is(err, errDraining):
		sc.fail(err)
	}
	sc.await(0)
	if errors.Is(err, errDraining) {
		sc.linger()
	}
	sc.fail(err)
}

// linger closes our side, and reads until the client has closed its own: to close with
// unread input would destroy replies on their way. A client without calls may not look for
// minutes, but has had its time to read the last reply.
func (sc *serverConn) linger() {
	sc.mu.Lock()
	until := sc.active.Add(sc.s.o.linger)
	sc.mu.Unlock()
	if least := time.Now().Add(min(lingerLeast, sc.s.o.linger)); until.Before(least) {
		until = least
	}
	half, ok := sc.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || sc.nc.SetReadDeadline(until) != nil {
		return
	}
	if sc.over() {
		return // Close has come before the deadline was set, and must not wait for it
	}
	_, _ = io.Copy(io.Discard, sc.nc) // it does not matter what ends it
}

// Shutdown ends the server without losing a reply. It closes the listeners, reads no more
// calls, lets those under way finish and sends their replies. Then it waits, for at most
// two seconds from the last reply, until the clients have closed. If ctx ends before, it
// closes everything and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.end((*serverConn).drain)
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.stop()
		return err
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err(), s.Close())
		<-done
		return err
	}
}

// Close ends the server at once: the contexts of handlers end, and replies that are not
// yet sent are lost. It waits for the handlers to return.
func (s *Server) Close() error {
	s.stop()
	err := s.end(func(sc *serverConn) { sc.fail(ErrServerClosed) })
	s.wg.Wait()
	return err
}

// end closes the listeners, and each connection by how.
func (s *Server) end(how func(*serverConn)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	var errs []error
	for l := range s.listeners {
		errs = append(errs, (*l).Close())
	}
	clear(s.listeners)
	for sc := range s.conns {
		how(sc)
	}
	for p := range s.packets {
		p.halt()
	}
	return errors.Join(errs...)
}
