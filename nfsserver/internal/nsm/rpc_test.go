package nsm

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nsm"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// end is a pipe's end with the addresses that a test wants.
type end struct {
	net.Conn
	local, remote netip.AddrPort
}

func (e end) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(e.local) }
func (e end) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(e.remote) }

// listener hands out the connections that are put into it.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *listener) Close() error   { close(l.done); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// serve serves until the test ends, and returns how to connect from an address.
func serve(t *testing.T, services ...oncrpc.Service) func(ctx context.Context, from string) (net.Conn, error) {
	t.Helper()
	srv, err := oncrpc.NewServer(services, oncrpc.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{make(chan net.Conn), make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, oncrpc.ErrServerClosed) {
			t.Error(err)
		}
	})
	return func(ctx context.Context, from string) (net.Conn, error) {
		near, far := net.Pipe()
		addr, here := netip.MustParseAddrPort(from), netip.MustParseAddrPort("127.0.0.1:2049")
		select {
		case l.conns <- end{far, here, addr}:
			return end{near, addr, here}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ask makes one call from an address.
func ask(t *testing.T, dial func(context.Context, string) (net.Conn, error), from string, p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) {
	t.Helper()
	c := oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, from) }})
	reply, err := c.Call(t.Context(), p, oncrpc.Auth{}, args, res)
	if err != nil {
		t.Errorf("%s: %v", p.Name, err)
	}
	reply.Release()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

const (
	root     = "127.0.0.1:700"
	somebody = "127.0.0.1:7000"
	remote   = "192.0.2.11:700"
)

// TestLocalPrograms has programs of this host use the monitor, and others try to.
func TestLocalPrograms(t *testing.T) {
	told := make(chan nsm.Status, 10)
	const prog, vers, proc = 100021, 4, 1
	lockd := &xdr.Program{Name: "LOCKD", Number: prog, Version: vers, Procs: []xdr.Proc{{Name: "NULL", Program: prog, Version: vers}, {Name: "TOLD", Program: prog, Version: vers, Number: proc}}}
	pmap := make([]oncrpc.Handler, len(rpcbind.PMAPVERS.Procs))
	pmap[rpcbind.PMAPPROC_GETPORT.Number] = func(_ context.Context, c *oncrpc.Call) error {
		return c.Reply(&rpcbind.PMAPPROC_GETPORTres{Value: 999})
	}
	host := serve(t, oncrpc.Service{Program: lockd, Handlers: []oncrpc.Handler{nil, func(_ context.Context, c *oncrpc.Call) error {
		var s nsm.Status
		if err := args(c, &s); err != nil {
			return err
		}
		s.MonName = bytes.Clone(s.MonName)
		told <- s
		return c.Reply(xdr.Void{})
	}}}, oncrpc.Service{Program: &rpcbind.PMAPVERS, Handlers: pmap})

	var news []Notice
	crashes := 0
	m, err := New(Options{Dir: t.TempDir(), Call: &callback.Caller{Dial: func(ctx context.Context, network string, _ netip.Addr, to string) (net.Conn, error) {
		if network != "tcp" || to != "127.0.0.1:111" && to != "127.0.0.1:999" {
			return nil, syscall.ECONNREFUSED
		}
		return host(ctx, root)
	}}, Restarted: func(_ context.Context, n Notice) { news = append(news, n) }, Crashed: func(context.Context) { crashes++ }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	dial := serve(t, m.RPC())

	id := nsm.MonId{MonName: []byte("192.0.2.11"), MyId: nsm.MyId{MyName: []byte("me"), MyProg: prog, MyVers: vers, MyProc: proc}}
	for _, from := range []string{somebody, remote, root} {
		var stat, mon nsm.SmStatRes
		ask(t, dial, from, nsm.SM_STAT, &nsm.SmName{MonName: []byte("x")}, &stat)
		ask(t, dial, from, nsm.SM_MON, &nsm.Mon{MonId: id, Priv: [16]byte{42}}, &mon)
		if from == root {
			if stat != mon || mon.ResStat != nsm.StatSucc || mon.State != m.State() || m.Watched() != 1 {
				t.Errorf("%+v, %+v, %d watched", stat, mon, m.Watched())
			}
		} else if stat != mon || mon.ResStat != nsm.StatFail || mon.State != -1 || m.Watched() != 0 {
			t.Errorf("%s: %+v, %+v, %d watched", from, stat, mon, m.Watched())
		}
	}
	ask(t, dial, "192.0.2.12:5", nsm.SM_NOTIFY, &nsm.StatChge{MonName: []byte("other"), State: 3}, &xdr.Void{})
	ask(t, dial, remote, nsm.SM_NOTIFY, &nsm.StatChge{MonName: []byte("whatever"), State: 5}, &xdr.Void{})
	if s := <-told; string(s.MonName) != "192.0.2.11" || s.State != 5 || s.Priv != [16]byte{42} || len(told) != 0 {
		t.Errorf("told %+v, and %d more", s, len(told))
	}
	if len(news) != 2 || news[1].Name != "whatever" || news[1].From.Addr() != netip.MustParseAddr("192.0.2.11") || news[1].State != 5 {
		t.Errorf("%+v", news)
	}

	before := m.State()
	ask(t, dial, somebody, nsm.SM_SIMU_CRASH, xdr.Void{}, &xdr.Void{})
	if m.State() != before || crashes != 0 {
		t.Error("anybody can simulate a crash")
	}
	ask(t, dial, root, nsm.SM_SIMU_CRASH, xdr.Void{}, &xdr.Void{})
	if m.State() != before+2 || crashes != 1 || m.Owed() != 1 {
		t.Errorf("state %d after %d, %d crashes, %d owed", m.State(), before, crashes, m.Owed())
	}

	var state nsm.SmStat
	ask(t, dial, somebody, nsm.SM_UNMON, &id, &state)
	if len(m.watchers) != 1 || state.State != m.State() {
		t.Errorf("%d watchers, state %d", len(m.watchers), state.State)
	}
	ask(t, dial, root, nsm.SM_UNMON_ALL, &nsm.MyId{MyName: []byte("another")}, &state)
	ask(t, dial, root, nsm.SM_UNMON, &id, &state)
	ask(t, dial, root, nsm.SM_UNMON_ALL, &id.MyId, &state)
	if len(m.watchers) != 0 || m.Watched() != 0 {
		t.Errorf("%d watchers, %d hosts", len(m.watchers), m.Watched())
	}
}
