package jetstream

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/natsd"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/queue/queuetest"
)

func TestMain(m *testing.M) { leak.Main(m, "nats-io") }

// shortLease is what the suite's brokers have in place of queue.LeaseTime.
const shortLease = 2 * time.Second

func TestSuite(t *testing.T) {
	queuetest.Run(t, func(t *testing.T, test func(*testing.T, *queuetest.Lab)) {
		t.Parallel()
		s := natsd.Start(t, natsd.Options{})
		l := newLine(t, s.Addr)
		test(t, &queuetest.Lab{
			Connect: func(t testing.TB) queue.Broker {
				t.Helper()
				b, err := Connect(t.Context(), Options{URLs: []string{"nats://" + l.addr}})
				if err != nil {
					t.Fatal(err)
				}
				b.lease = shortLease
				return b
			},
			Lease: shortLease,
			Forget: func(t testing.TB) {
				s.Forget(t)
				s.Restart(t)
			},
			Outage:   l.outage,
			Forge:    func(t testing.TB, j queue.Job, it queue.Item) { forge(t, s, itemSubject(j, it.ID), it.Body) },
			ForgeJob: func(t testing.TB, j queue.Job) { forge(t, s, subjectOf(j)+"job", j.Spec) },
		})
	})
}

// forge publishes a message as a stranger.
func forge(t testing.TB, s *natsd.Server, subject string, body []byte) {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), subject, body); err != nil {
		t.Fatal(err)
	}
}

// line is a way to a server that can be cut.
type line struct {
	addr, to string

	mu    sync.Mutex
	up    bool
	l     net.Listener
	conns []net.Conn
	wg    sync.WaitGroup
}

func newLine(t testing.TB, to string) *line {
	t.Helper()
	l := &line{addr: "127.0.0.1:0", to: to}
	l.open(t)
	l.addr = l.l.Addr().String()
	t.Cleanup(l.close)
	return l
}

// open listens.
func (l *line) open(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.l, l.up = listener, true
	l.wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.carry(c) })
		}
	})
}

// carry carries the bytes of a connection.
func (l *line) carry(c net.Conn) {
	defer func() { _ = c.Close() }()
	far, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	l.mu.Lock()
	if !l.up {
		l.mu.Unlock()
		return
	}
	l.conns = append(l.conns, c, far)
	l.mu.Unlock()
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, far}, {far, c}} {
		wg.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // either end may go at any time
			_ = c.Close()
			_ = far.Close()
		})
	}
	wg.Wait()
}

// close cuts all.
func (l *line) close() {
	l.mu.Lock()
	l.up = false
	_ = l.l.Close()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
	l.mu.Unlock()
	l.wg.Wait()
}

func (l *line) outage(t testing.TB) (back func()) {
	l.close()
	return func() { l.open(t) }
}
