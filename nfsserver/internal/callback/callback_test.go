package callback

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/proto/nsm"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// remote is a host on loopback: its port mapper and its status monitor listen on
// one free port of TCP and one of UDP, or of one of them alone.
type remote struct {
	ports  map[string]string // by network
	calls  atomic.Int32
	lost   atomic.Int32 // so many calls go without an answer
	listed bool
}

func host(t *testing.T, ip string, listed bool, networks ...string) *remote {
	t.Helper()
	r := &remote{ports: make(map[string]string), listed: listed}
	pm := make([]oncrpc.Handler, len(rpcbind.PMAPVERS.Procs))
	pm[rpcbind.PMAPPROC_GETPORT.Number] = func(_ context.Context, c *oncrpc.Call) error {
		return c.Reply(&rpcbind.PMAPPROC_GETPORTres{Value: uint32(r.port(c))})
	}
	pm4 := make([]oncrpc.Handler, len(rpcbind.RPCBVERS4.Procs))
	pm4[rpcbind.RPCBVERS4_RPCBPROC_GETADDR.Number] = func(_ context.Context, c *oncrpc.Call) error {
		p := r.port(c)
		return c.Reply(&rpcbind.RPCBVERS4_RPCBPROC_GETADDRres{Value: []byte("::1." + itoa(p>>8) + "." + itoa(p&255))})
	}
	sm := make([]oncrpc.Handler, len(nsm.SM_VERS.Procs))
	sm[nsm.SM_NOTIFY.Number] = func(_ context.Context, c *oncrpc.Call) error {
		r.calls.Add(1)
		if r.lost.Add(-1) >= 0 {
			return oncrpc.ErrDrop
		}
		return c.Reply(xdr.Void{})
	}
	srv, err := oncrpc.NewServer([]oncrpc.Service{{Program: &rpcbind.PMAPVERS, Handlers: pm}, {Program: &rpcbind.RPCBVERS4, Handlers: pm4},
		{Program: &nsm.SM_VERS, Handlers: sm}}, oncrpc.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var serve []func() error
	for _, network := range networks {
		if network == "tcp" {
			l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
			if err != nil {
				t.Skip(err)
			}
			r.ports["tcp"] = l.Addr().String()
			serve = append(serve, func() error { return srv.Serve(l) })
			continue
		}
		pc, err := net.ListenPacket("udp", net.JoinHostPort(ip, "0"))
		if err != nil {
			t.Skip(err)
		}
		r.ports["udp"] = pc.LocalAddr().String()
		serve = append(serve, func() error { return srv.ServePacket(pc) })
	}
	done := make(chan error, len(serve))
	for _, s := range serve {
		go func() { done <- s() }()
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		for range serve {
			if err := <-done; !errors.Is(err, oncrpc.ErrServerClosed) {
				t.Error(err)
			}
		}
	})
	return r
}

func itoa(n uint16) string { return strconv.Itoa(int(n)) }

func (r *remote) port(c *oncrpc.Call) uint16 {
	if !r.listed {
		return 0
	}
	return netip.MustParseAddrPort(r.ports[c.Local.Network()]).Port()
}

// caller reaches r's port mapper where a real one would be on port 111. A try has so
// much time that a busy machine answers within it: the tests count the calls.
func (r *remote) caller(once bool) *Caller {
	return &Caller{Machine: strings.Repeat("m", 300), Timeout: time.Second, Once: once,
		Dial: func(ctx context.Context, network string, local netip.Addr, to string) (net.Conn, error) {
			if strings.HasSuffix(to, ":111") {
				to = r.ports[network]
			}
			if to == "" {
				return nil, errors.New("nobody there")
			}
			return DialNet(ctx, network, local, to)
		}}
}

func TestCall(t *testing.T) {
	news := &nsm.StatChge{MonName: []byte("server"), State: 3}
	v4, v6 := "127.0.0.1", "::1"
	for name, tc := range map[string]struct {
		ip       string
		networks []string
		first    string
		lost     int32
		once     bool
		unlisted bool
		calls    int32
		fails    bool
		arrived  bool
	}{
		"udp":                           {ip: v4, networks: []string{"udp", "tcp"}, calls: 1},
		"tcp, as the client":            {ip: v4, networks: []string{"udp", "tcp"}, first: "tcp", calls: 1},
		"tcp alone":                     {ip: v4, networks: []string{"tcp"}, first: "udp", calls: 1},
		"udp alone":                     {ip: v4, networks: []string{"udp"}, first: "tcp", calls: 1},
		"over IPv6":                     {ip: v6, networks: []string{"udp", "tcp"}, calls: 1},
		"a lost datagram":               {ip: v4, networks: []string{"udp"}, lost: 1, calls: 2},
		"a lost datagram, said once":    {ip: v4, networks: []string{"udp", "tcp"}, lost: 1, once: true, calls: 1, fails: true, arrived: true},
		"nobody":                        {ip: v4, networks: nil, fails: true},
		"nothing that was asked for":    {ip: v4, networks: []string{"udp", "tcp"}, unlisted: true, fails: true},
		"no answer over either":         {ip: v4, networks: []string{"udp", "tcp"}, lost: 100, fails: true, calls: 4, arrived: true},
		"no answer, said once over tcp": {ip: v4, networks: []string{"udp", "tcp"}, first: "tcp", lost: 100, once: true, fails: true, calls: 1, arrived: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time nobody answers
			if tc.calls > 2 {
				need.Time(t, "a callback that is given up after its last try")
			}
			r := host(t, tc.ip, !tc.unlisted, tc.networks...)
			r.lost.Store(tc.lost)
			h := Host{Name: tc.ip, Network: tc.first}
			err := r.caller(tc.once).Call(t.Context(), h, nsm.SM_NOTIFY, news, &xdr.Void{})
			if (err != nil) != tc.fails || MayHaveArrived(err) != tc.arrived {
				t.Errorf("%v, arrived %t", err, MayHaveArrived(err))
			}
			if n := r.calls.Load(); n != tc.calls {
				t.Errorf("called %d times, want %d", n, tc.calls)
			}
			if tc.unlisted && !errors.Is(err, ErrNotThere) {
				t.Error(err)
			}
		})
	}
}

// TestBoundAddress calls from an address of the test's choice.
func TestBoundAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	from := netip.MustParseAddr("127.0.0.1")
	c, err := DialNet(t.Context(), "tcp", from, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if got := From(c.LocalAddr()).Addr(); got != from {
		t.Errorf("from %v", got)
	}
	if From(nil).IsValid() || From(&net.UnixAddr{}).IsValid() {
		t.Error("an address where there is none")
	}
}

// TestDatagrams cuts what is written in every place.
func TestDatagrams(t *testing.T) {
	args := &nlm4.Nlm4Notify{Name: []byte("somebody"), State: 3}
	body, err := args.AppendXDR(nil)
	if err != nil {
		t.Fatal(err)
	}
	record := append([]byte{0x80, 0, 0, byte(len(body))}, body...)
	two := append(append([]byte(nil), record...), record...)
	for cut := range two {
		var sent []string
		d := &datagrams{Conn: sink{&sent}}
		for _, p := range [][]byte{two[:cut], two[cut:]} {
			if n, err := d.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		if len(sent) != 2 || sent[0] != string(body) || sent[1] != string(body) {
			t.Errorf("cut at %d: %q", cut, sent)
		}
	}
	for _, mark := range [][]byte{{0x80, 1, 0, 0}, {0, 0, 0, 4}} {
		if _, err := (&datagrams{}).Write(mark); err == nil {
			t.Errorf("%x is sent", mark)
		}
	}
}

// sink keeps what is written to it.
type sink struct{ to *[]string }

func (s sink) Write(p []byte) (int, error)      { *s.to = append(*s.to, string(p)); return len(p), nil }
func (s sink) Read([]byte) (int, error)         { return 0, net.ErrClosed }
func (s sink) Close() error                     { return nil }
func (s sink) LocalAddr() net.Addr              { return nil }
func (s sink) RemoteAddr() net.Addr             { return nil }
func (s sink) SetDeadline(time.Time) error      { return nil }
func (s sink) SetReadDeadline(time.Time) error  { return nil }
func (s sink) SetWriteDeadline(time.Time) error { return nil }

func FuzzUniversal(f *testing.F) {
	for _, s := range []string{"", "192.0.2.1.8.1", "::1.0.111", "a.b", "1.2.3.256.0", "......"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		port, ok := UniversalPort(s)
		if !ok && port != 0 {
			t.Errorf("%q: port %d of what is none", s, port)
		}
		if ok && strings.Count(s, ".") < 2 {
			t.Errorf("%q is taken for an address", s)
		}
	})
}
