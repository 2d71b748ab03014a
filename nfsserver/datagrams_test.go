package nfsserver_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestNoListsOverUDP: what answers a datagram is about as long as that, so that
// a host is not flooded that is falsely said to have sent it.
func TestNoListsOverUDP(t *testing.T) {
	table, err := export.NewTable(export.Key{1, 2, 3}, export.Export{Path: "/", FS: memfs.New(memfs.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := nfsserver.New(nfsserver.Options{Exports: table})
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
		if err := errors.Join(srv.Close(), <-done); !errors.Is(err, nfsserver.ErrClosed) {
			t.Error(err)
		}
	})
	ask := func(p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) error {
		c := &callback.Caller{Dial: callback.DialNet}
		return c.Ask(t.Context(), "udp", netip.Addr{}, pc.LocalAddr().String(), p, args, res)
	}
	for _, p := range []*xdr.Proc{
		mount3.MOUNTPROC3_DUMP, mount3.MOUNTPROC3_EXPORT, mount3.MOUNTPROC_DUMP, mount3.MOUNTPROC_EXPORT,
		rpcbind.PMAPPROC_DUMP, rpcbind.RPCBVERS_RPCBPROC_DUMP, rpcbind.RPCBVERS4_RPCBPROC_DUMP,
	} {
		err := ask(p, xdr.Void{}, &rpcbind.Pmaplist{})
		if refused, ok := errors.AsType[*oncrpc.AcceptError](err); !ok || refused.Stat != oncrpc.ProcUnavail {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	var port rpcbind.PMAPPROC_GETPORTres
	query := &rpcbind.Mapping{Prog: rpcbind.PMAPVERS.Number, Vers: 2, Prot: rpcbind.IPPROTO_UDP}
	if err := ask(rpcbind.PMAPPROC_GETPORT, query, &port); err != nil || int(port.Value) != pc.LocalAddr().(*net.UDPAddr).Port {
		t.Errorf("GETPORT: %d, %v", port.Value, err)
	}
}
