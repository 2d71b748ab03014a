package oncrpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestShutdown: calls finish, their replies arrive, and the client sees the end of the
// connection. A call that comes too late is not executed.
func TestShutdown(t *testing.T) {
	const size = 4 << 20
	s := newService()
	srv, addr := startServer(t, s, ServerOptions{})
	r := dialRaw(t, addr)
	r.send(record(message(1, procWait, nil)))
	s.begun(t)
	r.send(record(message(2, procRead, words(5, size))))
	half := dialRaw(t, addr)
	half.send(words(lastFragment | 100))
	waitFor(t, "the read", func() bool { return srv.Stats().Calls == 2 && s.pool.Outstanding() == 1 && srv.Stats().Conns == 2 })
	done := make(chan error)
	go func() { done <- srv.Shutdown(t.Context()) }()
	half.mustClose()
	if err := half.nc.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the server still listens")
	}
	r.send(record(message(3, procOnce, str("late"))))
	close(s.gate)
	want := make([]byte, size)
	pattern(want, 5)
	for range 2 {
		xid, results, err := r.reply()
		if err != nil {
			t.Fatal(err)
		}
		if xid == 2 && !bytes.Contains(results, want) {
			t.Error("the data is not the data")
		}
	}
	if _, _, err := r.reply(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last reply: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("Shutdown did not wait for the client's close: %v", err)
	default:
	}
	if err := r.nc.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s.once != 0 {
		t.Error("a call was taken after Shutdown")
	}
	if err := srv.Serve(newPipeListener()); !errors.Is(err, ErrServerClosed) {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

// TestShutdownGivesUp: Shutdown ends with its context, although a handler does not return
// and a client does not close.
func TestShutdownGivesUp(t *testing.T) {
	s := newService()
	srv, addr := startServer(t, s, ServerOptions{})
	r := dialRaw(t, addr)
	r.send(record(message(1, procWait, nil)))
	s.begun(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := srv.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	// The handler's context has ended too, and its reply may still get through.
	if _, _, err := r.reply(); !gone(err) {
		r.mustClose()
	}
}

// TestShutdownLingers: Shutdown waits for a client that never closes, for two seconds from
// its last call.
func TestShutdownLingers(t *testing.T) {
	const linger = 200 * time.Millisecond
	srv, addr := startServer(t, newService(), ServerOptions{linger: linger})
	r := dialRaw(t, addr)
	start := time.Now()
	r.send(record(message(1, procNull, nil)))
	r.mustReply(1)
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d < linger || d > linger+patience {
		t.Errorf("Shutdown took %v", d)
	}
}

// TestShutdownNotTaken: Shutdown ends a connection whose client takes no replies, and is no
// failure.
func TestShutdownNotTaken(t *testing.T) {
	s := newService()
	srv, _, _ := unread(t, s, 200*time.Millisecond)
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := s.pool.Outstanding(); n != 0 {
		t.Errorf("%d buffers were not given back", n)
	}
}

// TestShutdownTakenLate: a client that takes its replies only while the server is ending gets
// all of them.
func TestShutdownTakenLate(t *testing.T) {
	srv, r, calls := unread(t, newService(), time.Minute)
	done := begin(func() error { return srv.Shutdown(t.Context()) })
	waitFor(t, "the shutdown", srv.closing)
	for range calls {
		if _, _, err := r.reply(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.nc.Close(); err != nil {
		t.Error(err)
	}
	if err := await(t, done); err != nil {
		t.Error(err)
	}
}

// unread starts a server, and a client that has called for more than sockets hold and reads
// nothing. drain is the server's drainWriteTime.
func unread(t *testing.T, s *service, drain time.Duration) (srv *Server, r *rawConn, calls int) {
	srv, addr := startServer(t, s, ServerOptions{drain: drain})
	r, calls = dialRaw(t, addr), 32
	for i := range uint32(calls) {
		r.send(record(message(i, procRead, words(i, 1<<20))))
	}
	waitFor(t, "replies that wait", func() bool { return srv.Stats().Calls == uint64(calls) })
	return srv, r, calls
}

// quietConn is a client that sends nothing and does not close.
type quietConn struct {
	net.Conn
	until  time.Time
	closed bool
}

func (c *quietConn) CloseWrite() error                 { c.closed = true; return nil }
func (c *quietConn) SetReadDeadline(t time.Time) error { c.until = t; return nil }
func (c *quietConn) Read([]byte) (int, error)          { return 0, os.ErrDeadlineExceeded }

// TestLingersFromLastReply: a client whose last reply is old has had its time to read it.
func TestLingersFromLastReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct{ quiet, linger, want time.Duration }{
			{0, lingerTime, lingerTime},
			{lingerTime / 4, lingerTime, 3 * lingerTime / 4},
			{lingerTime, lingerTime, lingerLeast},
			{time.Hour, lingerTime, lingerLeast},
			{time.Hour, time.Millisecond, time.Millisecond},
		} {
			nc := new(quietConn)
			sc := &serverConn{s: &Server{o: ServerOptions{linger: x.linger}}, nc: nc, active: time.Now().Add(-x.quiet)}
			if sc.linger(); !nc.closed || time.Until(nc.until) != x.want {
				t.Errorf("%v after the last reply: read for %v, want %v", x.quiet, time.Until(nc.until), x.want)
			}
		}
	})
}

// TestServerClientCloses: clients that close their side get the replies that come soon. The
// contexts of handlers that take longer end.
func TestServerClientCloses(t *testing.T) {
	s := newService()
	srv, addr := startServer(t, s, ServerOptions{linger: time.Second})
	r := dialRaw(t, addr)
	r.send(record(message(1, procWait, nil)))
	s.begun(t)
	if err := r.nc.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s.gate <- struct{}{}
	r.mustReply(1)
	r.mustClose()
	r = dialRaw(t, addr)
	r.send(record(message(2, procWait, nil)))
	s.begun(t)
	if err := r.nc.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "connection closed", func() bool { return srv.Stats().Conns == 0 })
}

// TestStartTLS secures connections, and refuses bytes that come before the handshake.
func TestStartTLS(t *testing.T) {
	cert := selfSigned(t)
	secure := func(nc net.Conn) (net.Conn, error) {
		c := tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
		return c, c.Handshake()
	}
	_, addr := startServer(t, newService(), ServerOptions{Secure: secure})
	probe := record(append(words(1, 0, 2, testProgram, testVersion, 0, AuthTLS, 0), words(0, 0)...))
	upgrade := func(ctx context.Context, nc net.Conn) (net.Conn, error) {
		r := newRaw(t, nc)
		r.send(probe)
		if _, _, err := r.reply(); err != nil {
			return nil, err
		}
		c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
		if err := c.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		return c, nc.SetDeadline(time.Time{})
	}
	t.Run("upgrade", func(t *testing.T) {
		c := newClient(t, ClientOptions{Dial: dialTo(addr), Secure: upgrade})
		for _, n := range []int{0, 3000, 1 << 20} {
			if err := readBulk(t, c, uint32(n), n); err != nil {
				t.Error(err)
			}
			if err := writeBulk(t, c, n); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("early data", func(t *testing.T) {
		r := dialRaw(t, addr)
		r.send(append(append([]byte(nil), probe...), record(message(2, procNull, nil))...))
		r.mustClose()
	})
	t.Run("no handshake", func(t *testing.T) {
		r := dialRaw(t, addr)
		r.send(probe)
		r.mustReply(1)
		r.send(record(message(2, procNull, nil)))
		if _, err := io.Copy(io.Discard, r.nc); err != nil && !gone(err) {
			t.Errorf("connection lives on: %v", err)
		}
	})
	t.Run("no null", func(t *testing.T) {
		r := dialRaw(t, addr)
		r.send(record(append(words(1, 0, 2, testProgram, testVersion, procEcho, AuthTLS, 0), words(0, 0)...)))
		_, _, err := r.reply()
		if d, ok := errors.AsType[*DeniedError](err); !ok || d.Auth != AuthBadCred {
			t.Errorf("answer: %v", err)
		}
	})
	t.Run("Secure fails at the client", func(t *testing.T) {
		fails := func(context.Context, net.Conn) (net.Conn, error) { return nil, errTest }
		c := newClient(t, ClientOptions{Dial: dialTo(addr), Secure: fails, DialTries: 1})
		if err := callEcho(t.Context(), c, procEcho, "x"); !errors.Is(err, errTest) || !errors.Is(err, ErrNoConnection) {
			t.Errorf("call: %v", err)
		}
	})
}

// list is a listener that cannot be a key of a map.
type list []net.Listener

func (l list) Accept() (net.Conn, error) { return l[0].Accept() }
func (l list) Close() error              { return l[0].Close() }
func (l list) Addr() net.Addr            { return l[0].Addr() }

// TestServeAnyListener serves on one of a type that cannot be compared.
func TestServeAnyListener(t *testing.T) {
	s, err := NewServer(nil, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(list{l}) }()
	waitFor(t, "a connection", func() bool {
		c, err := net.Dial("tcp", l.Addr().String())
		return err == nil && c.Close() == nil && s.Stats().Accepted > 0
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, ErrServerClosed) {
		t.Error(err)
	}
}
