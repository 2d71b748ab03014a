package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// joinRig is some servers that share a cache. Their handler of ONCE waits until the test
// lets it go on, even if its context ends.
type joinRig struct {
	t     *testing.T
	s     *service
	cache TestCache
	times atomic.Int32
}

func newJoinRig(t *testing.T) *joinRig {
	return &joinRig{t: t, s: newService(), cache: NewTestCache()}
}

func (j *joinRig) serve(o ServerOptions) (*Server, string) {
	j.t.Helper()
	svc := j.s.service()
	svc.Handlers[procOnce] = func(_ context.Context, c *Call) error {
		j.times.Add(1)
		j.s.seen <- struct{}{}
		<-j.s.gate
		return c.Reply(&opaque{b: []byte("done")})
	}
	o.Replies = j.cache
	srv, err := NewServer([]Service{svc}, o)
	if err != nil {
		j.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		j.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	j.t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			j.t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrServerClosed) {
			j.t.Errorf("Serve returned %v", err)
		}
		if st := srv.Stats(); st.Buffers != 0 || st.Conns != 0 || srv.underWay.Load() != 0 {
			j.t.Errorf("server left things behind: %+v, %d calls", st, srv.underWay.Load())
		}
	})
	return srv, l.Addr().String()
}

func (j *joinRig) joined(n uint64) {
	j.t.Helper()
	waitFor(j.t, "the joining", func() bool { return j.cache.Stats().Joined == n })
}

// TestJoinEnds: a connection that has joined a call and is lost does not wait for it. Nor
// does its server when it is closed. Another connection can still join.
func TestJoinEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, srv *Server, r *rawConn){
		"Close": func(t *testing.T, srv *Server, _ *rawConn) {
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		},
		"Shutdown": func(t *testing.T, srv *Server, _ *rawConn) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := srv.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		},
		"reset": func(t *testing.T, srv *Server, r *rawConn) {
			if err := errors.Join(r.nc.(*net.TCPConn).SetLinger(0), r.nc.Close()); err != nil {
				t.Error(err)
			}
			waitFor(t, "the connection's end", func() bool { return srv.Stats().Conns == 0 })
		},
		"end": func(t *testing.T, srv *Server, r *rawConn) {
			if err := r.nc.Close(); err != nil {
				t.Error(err)
			}
			waitFor(t, "the connection's end", func() bool { return srv.Stats().Conns == 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJoinRig(t)
			_, first := j.serve(ServerOptions{})
			second, addr := j.serve(ServerOptions{linger: 20 * time.Millisecond})
			ask := record(message(7, procOnce, nil))
			a := dialRaw(t, first)
			a.send(ask)
			j.s.begun(t)
			b := dialRaw(t, addr) // the newer one, which is to get the answer
			b.send(ask)
			j.joined(1)
			over := make(chan struct{})
			go func() {
				defer close(over)
				end(t, second, b)
			}()
			select {
			case <-over:
			case <-time.After(patience):
				t.Error("it waits for what another server executes")
			}
			j.s.gate <- struct{}{}
			<-over
			// The connection that had it executed is still there, and gets the answer.
			if got := a.mustReply(7); !bytes.Equal(got, str("done")) || j.times.Load() != 1 {
				t.Errorf("the answer is %q, executed %d times", got, j.times.Load())
			}
		})
	}
}

// TestJoinOlder: a client that sends the call again on an older connection, since the newer
// one is lost, gets the answer.
func TestJoinOlder(t *testing.T) {
	for _, how := range []string{"end", "reset"} {
		t.Run(how, func(t *testing.T) {
			j := newJoinRig(t)
			srv, addr := j.serve(ServerOptions{})
			older, newer := dialRaw(t, addr), dialRaw(t, addr)
			older.send(record(message(1, procNull, nil)))
			older.mustReply(1)
			ask := record(message(7, procOnce, nil))
			newer.send(ask)
			j.s.begun(t)
			if how == "reset" {
				if err := newer.nc.(*net.TCPConn).SetLinger(0); err != nil {
					t.Fatal(err)
				}
			}
			if err := newer.nc.Close(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the connection's end", func() bool { return srv.lost() == 1 })
			older.send(ask)
			j.joined(1)
			j.s.gate <- struct{}{}
			if got := older.mustReply(7); !bytes.Equal(got, str("done")) || j.times.Load() != 1 {
				t.Errorf("the answer is %q, executed %d times", got, j.times.Load())
			}
		})
	}
}

// lost is how many connections have ended.
func (s *Server) lost() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sc := range s.conns {
		if sc.Gone() {
			n++
		}
	}
	return n
}

// TestServerMaxCalls: with MaxCalls calls under way in all, each connection has one at a
// time, and all are answered in the end.
func TestServerMaxCalls(t *testing.T) {
	s := newService()
	const most, calls = 8, 6
	srv, addr := startServer(t, s, ServerOptions{MaxCalls: most})
	var all []*rawConn
	want := 0
	for _, n := range []int{calls, most - calls, 1, 1, 1} {
		r := dialRaw(t, addr)
		for i := range uint32(calls) {
			r.send(record(message(i, procWait, nil)))
		}
		all = append(all, r)
		for range n {
			s.begun(t)
		}
		want += n
	}
	if n := srv.underWay.Load(); n != int64(want) {
		t.Errorf("%d calls are under way, not %d", n, want)
	}
	close(s.gate)
	for _, r := range all {
		for range calls {
			if _, _, err := r.reply(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
