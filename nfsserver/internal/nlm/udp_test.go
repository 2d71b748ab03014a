package nlm

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// serveUDP serves on a free port of loopback until the test ends.
func serveUDP(t *testing.T, services []oncrpc.Service, state func(net.Addr) any) netip.AddrPort {
	t.Helper()
	srv, err := oncrpc.NewServer(services, oncrpc.ServerOptions{NewConn: func(remote, _ net.Addr) (any, error) { return state(remote), nil }})
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.ServePacket(pc) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, oncrpc.ErrServerClosed) {
			t.Error(err)
		}
	})
	return callback.From(pc.LocalAddr())
}

// TestUDP locks, waits and is granted without a connection.
func TestUDP(t *testing.T) {
	grants := make(chan string, 10)
	var port atomic.Uint32
	lm := make([]oncrpc.Handler, len(nlm4.NLM_V4.Procs))
	lm[nlm4.NLMPROC4_GRANTED.Number] = func(_ context.Context, c *oncrpc.Call) error {
		a, err := args[nlm4.Nlm4Testargs](c)
		if err != nil {
			return err
		}
		grants <- c.Remote.Network()
		return c.Reply(&nlm4.Nlm4Res{Cookie: a.Cookie})
	}
	pm := make([]oncrpc.Handler, len(rpcbind.PMAPVERS.Procs))
	pm[rpcbind.PMAPPROC_GETPORT.Number] = func(_ context.Context, c *oncrpc.Call) error {
		return c.Reply(&rpcbind.PMAPPROC_GETPORTres{Value: port.Load()})
	}
	none := func(net.Addr) any { return nil }
	client := serveUDP(t, []oncrpc.Service{{Program: &nlm4.NLM_V4, Handlers: lm}, {Program: &rpcbind.PMAPVERS, Handlers: pm}}, none)
	port.Store(uint32(client.Port()))

	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777})})
	if err != nil {
		t.Fatal(err)
	}
	svc, err := New(Options{Table: table, Dial: func(ctx context.Context, network string, local netip.Addr, to string) (net.Conn, error) {
		if strings.HasSuffix(to, ":111") {
			to = client.String()
		}
		return callback.DialNet(ctx, network, local, to)
	}})
	if err != nil {
		t.Fatal(err)
	}
	svc.Start()
	t.Cleanup(func() {
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
	})
	addr := serveUDP(t, svc.RPC(), func(remote net.Addr) any { return peer.NewConn(table, remote) })

	fh := (&lab{t: t, table: table}).file("f", 0o666)
	caller := &callback.Caller{Dial: callback.DialNet, Machine: "client"}
	call := func(p *xdr.Proc, args xdr.Appender) nlm4.Nlm4Stats {
		var res nlm4.Nlm4Res
		if err := caller.Ask(t.Context(), "udp", addr.Addr(), addr.String(), p, args, &res); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		return res.Stat.Stat
	}
	g := &guest{name: "client", state: 1}
	expect(t, "first", call(nlm4.NLMPROC4_LOCK, g.lockArgs(want{fh: fh, svid: 1, exclusive: true})), nlm4.NLM4_GRANTED)
	expect(t, "second", call(nlm4.NLMPROC4_LOCK, g.lockArgs(want{fh: fh, svid: 2, exclusive: true, block: true})), nlm4.NLM4_BLOCKED)
	expect(t, "unlock", call(nlm4.NLMPROC4_UNLOCK, &nlm4.Nlm4Unlockargs{Alock: g.alock(want{fh: fh, svid: 1})}), nlm4.NLM4_GRANTED)
	select {
	case network := <-grants:
		if network != "udp" {
			t.Errorf("granted over %s", network)
		}
	case <-time.After(time.Minute):
		t.Error("no grant")
	}
}
