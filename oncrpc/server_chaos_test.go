package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"
)

// chaosServer executes ONCE, and counts how often each call was executed. Some calls wait
// until they are told to go on, or the server is closed.
type chaosServer struct {
	gate chan struct{}

	mu    sync.Mutex
	times map[string]int
}

func (s *chaosServer) once(ctx context.Context, c *Call) error {
	name := fmt.Sprint(c.XID)
	s.mu.Lock()
	s.times[name]++
	s.mu.Unlock()
	switch c.XID % 5 {
	case 0:
		select {
		case <-s.gate:
		case <-ctx.Done():
		}
	case 1:
		runtime.Gosched()
	}
	return c.Reply(&opaque{b: []byte(name)})
}

// chaosClient makes calls on connections that it cuts, until the server is closed.
func (s *chaosServer) client(addr string, seed uint64, stop <-chan struct{}) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	large := make([]byte, 100<<10)
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			return nil // it is closed, or has no room for us
		}
		err = nc.SetDeadline(time.Now().Add(20 * time.Millisecond))
		for i := 0; err == nil && i < 1+rnd.IntN(20); i++ {
			msg := record(message(rnd.Uint32N(400), procOnce, nil))
			switch rnd.IntN(10) {
			case 0:
				msg = record(message(1, procEcho, str(string(large[:rnd.IntN(len(large))]))))
			case 1:
				msg = msg[:rnd.IntN(len(msg))]
			case 2:
				select {
				case s.gate <- struct{}{}:
				default:
				}
			}
			_, err = nc.Write(msg)
		}
		if err == nil && rnd.IntN(2) == 0 {
			_, _ = nc.Read(large) // whatever it is, or the deadline
		}
		if rnd.IntN(2) == 0 {
			err = nc.(*net.TCPConn).SetLinger(0)
		}
		if closing := nc.Close(); closing != nil {
			return errors.Join(err, closing)
		}
	}
}

// TestServerChaos has many clients make the same calls on connections that they cut, to a
// server with small bounds. The server is closed while they go on. No call is executed
// twice, and nothing is left.
func TestServerChaos(t *testing.T) {
	for _, o := range []ServerOptions{
		{},
		{MaxConns: 8, MaxCalls: 4, MaxCallsPerConn: 3, MaxRecord: 128 << 10, MaxRequestBytes: 1, linger: time.Millisecond},
	} {
		noLeaks(t)
		s := &chaosServer{gate: make(chan struct{}), times: make(map[string]int)}
		svc := newService().service()
		svc.Handlers[procOnce] = s.once
		o.Replies = NewTestCache()
		srv, err := NewServer([]Service{svc}, o)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(l) }()
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for seed := range uint64(24) {
			wg.Go(func() {
				if err := s.client(l.Addr().String(), seed, stop); err != nil {
					t.Error(err)
				}
			})
		}
		waitFor(t, "work", func() bool { return srv.stats.calls.Load() > 800 })
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, ErrServerClosed) {
			t.Error(err)
		}
		close(stop)
		wg.Wait()
		st := srv.Stats()
		if st.Buffers != 0 || st.RequestBytes != 0 || st.Conns != 0 || srv.underWay.Load() != 0 {
			t.Errorf("left behind: %+v, %d calls", st, srv.underWay.Load())
		}
		cached := o.Replies.Stats()
		if cached.UnderWay != 0 || cached.Connected != 0 || cached.Waiting != 0 || cached.Hits == 0 { // joins may not happen here: server_join_test.go
			t.Errorf("%+v", cached)
		}
		for name, n := range s.times {
			if n != 1 {
				t.Errorf("call %s was executed %d times", name, n)
			}
		}
	}
}
