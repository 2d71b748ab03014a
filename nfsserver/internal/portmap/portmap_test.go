package portmap

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// serve serves on free ports of loopback until the test ends.
func serve(t *testing.T, services []oncrpc.Service) (tcp, udp net.Addr) {
	t.Helper()
	srv, err := oncrpc.NewServer(services, oncrpc.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- srv.Serve(l) }()
	go func() { done <- srv.ServePacket(pc) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-done; !errors.Is(err, oncrpc.ErrServerClosed) {
				t.Error(err)
			}
		}
	})
	return l.Addr(), pc.LocalAddr()
}

// client calls at an address of TCP until the test ends.
func client(t *testing.T, to net.Addr) *oncrpc.Client {
	t.Helper()
	c := oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, to.Network(), to.String())
	}})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func call(t *testing.T, c *oncrpc.Client, p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) {
	t.Helper()
	reply, err := c.Call(t.Context(), p, oncrpc.Auth{}, args, res)
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	t.Cleanup(reply.Release)
}

func port(a net.Addr) uint32 {
	_, p, _ := strings.Cut(a.String(), ":")
	return uint32(netip.MustParseAddrPort("0.0.0.0:" + p).Port())
}

// TestItself is where clients ask it, and not where the other programs are.
func TestItself(t *testing.T) {
	s := New(&nfs3.NFS_V3)
	tcp, _ := serve(t, s.RPC())
	mapperTCP, mapperUDP := serve(t, s.RPC())
	s.Listening(tcp)
	s.Mapping(mapperTCP)
	s.Mapping(mapperUDP)
	for _, c := range []*oncrpc.Client{client(t, mapperTCP), client(t, tcp)} {
		var list rpcbind.Pmaplist
		call(t, c, rpcbind.PMAPPROC_DUMP, xdr.Void{}, &list)
		for _, x := range list {
			want := port(tcp)
			switch {
			case x.Map.Prog == rpcbind.RPCBPROG && x.Map.Prot == rpcbind.IPPROTO_TCP:
				want = port(mapperTCP)
			case x.Map.Prog == rpcbind.RPCBPROG:
				want = port(mapperUDP)
			}
			if x.Map.Port != want {
				t.Errorf("program %d over %d is at %d, want %d", x.Map.Prog, x.Map.Prot, x.Map.Port, want)
			}
		}
		if len(list) != 1+3+3 {
			t.Errorf("DUMP: %+v", list)
		}
	}
}

// TestAnswers asks on the port of the programs, and on one where nothing else is.
func TestAnswers(t *testing.T) {
	s := New(&nfs3.NFS_V3, &mount3.MOUNT_V3, &mount3.MOUNT_V1)
	s.OverUDP(&mount3.MOUNT_V3, &mount3.MOUNT_V1)
	tcp, udp := serve(t, s.RPC())
	asked, _ := serve(t, s.RPC())
	main, mapper := client(t, tcp), client(t, asked)
	getport := func(c *oncrpc.Client, prog, prot uint32) uint32 {
		var res rpcbind.PMAPPROC_GETPORTres
		call(t, c, rpcbind.PMAPPROC_GETPORT, &rpcbind.Mapping{Prog: prog, Vers: 3, Prot: prot}, &res)
		return res.Value
	}
	const nfs, mnt, foreign = 100003, 100005, 100021
	if p := getport(main, nfs, rpcbind.IPPROTO_TCP); p != port(tcp) {
		t.Errorf("with no port named, NFS is at %d, want %d", p, port(tcp))
	}
	if p := getport(mapper, mnt, rpcbind.IPPROTO_UDP); p != 0 {
		t.Errorf("with no port named, MOUNT over UDP is at %d", p)
	}
	s.Listening(tcp)
	s.Listening(udp)
	s.Listening(udp)
	s.Listening(&net.UnixAddr{Name: "/x", Net: "unix"})
	for _, c := range []*oncrpc.Client{main, mapper} {
		for _, tc := range []struct{ prog, prot, want uint32 }{
			{nfs, rpcbind.IPPROTO_TCP, port(tcp)}, {nfs, rpcbind.IPPROTO_UDP, 0}, {mnt, rpcbind.IPPROTO_TCP, port(tcp)},
			{mnt, rpcbind.IPPROTO_UDP, port(udp)}, {foreign, rpcbind.IPPROTO_TCP, 0}, {nfs, 99, 0},
		} {
			if p := getport(c, tc.prog, tc.prot); p != tc.want {
				t.Errorf("program %d over %d is at %d, want %d", tc.prog, tc.prot, p, tc.want)
			}
		}
	}
	var list rpcbind.Pmaplist
	call(t, mapper, rpcbind.PMAPPROC_DUMP, xdr.Void{}, &list)
	if len(list) != 3+2+2*3 || !slices.Contains(list, rpcbind.PmaplistNode{Map: rpcbind.Mapping{Prog: mnt, Vers: 1, Prot: rpcbind.IPPROTO_UDP, Port: port(udp)}}) {
		t.Errorf("DUMP: %+v", list)
	}
	var addr rpcbind.RPCBVERS_RPCBPROC_GETADDRres
	for _, tc := range []struct {
		p     *xdr.Proc
		vers  uint32
		netid string
		at    net.Addr
	}{
		{rpcbind.RPCBVERS4_RPCBPROC_GETADDR, 3, "tcp", tcp}, {rpcbind.RPCBVERS_RPCBPROC_GETADDR, 9, "udp", udp},
		{rpcbind.RPCBPROC_GETVERSADDR, 1, "udp", udp}, {rpcbind.RPCBPROC_GETVERSADDR, 9, "udp", nil},
		{rpcbind.RPCBVERS4_RPCBPROC_GETADDR, 3, "tcp6", nil}, {rpcbind.RPCBVERS4_RPCBPROC_GETADDR, 3, "", tcp},
	} {
		call(t, mapper, tc.p, &rpcbind.Rpcb{RProg: mnt, RVers: tc.vers, RNetid: []byte(tc.netid)}, &addr)
		want := ""
		if tc.at != nil {
			_, want = universal("", netip.MustParseAddr("127.0.0.1"), uint16(port(tc.at)))
		}
		if string(addr.Value) != want {
			t.Errorf("%s of version %d over %q: %q, want %q", tc.p.Name, tc.vers, tc.netid, addr.Value, want)
		}
	}
	var all rpcbind.RpcblistPtr
	call(t, mapper, rpcbind.RPCBVERS4_RPCBPROC_DUMP, xdr.Void{}, &all)
	if len(all) != len(list) {
		t.Errorf("version 4 lists %d, version 2 %d", len(all), len(list))
	}
	var set rpcbind.PMAPPROC_SETres
	call(t, main, rpcbind.PMAPPROC_SET, &rpcbind.Mapping{Prog: 5, Vers: 5, Prot: 6, Port: 5}, &set)
	if set.Value || getport(main, 5, 6) != 0 {
		t.Error("anybody can register")
	}
	tcps, udps := s.Programs()
	if len(tcps) != 3 || len(udps) != 2 {
		t.Errorf("%d programs over TCP, %d over UDP", len(tcps), len(udps))
	}
}

// rpcbindd is the registry of a host.
type rpcbindd struct {
	have   []record
	refuse uint32 // a program that it does not take
}

func (r *rpcbindd) services(versions ...uint32) (all []oncrpc.Service) {
	v2 := make([]oncrpc.Handler, len(rpcbind.PMAPVERS.Procs))
	v2[rpcbind.PMAPPROC_DUMP.Number] = func(_ context.Context, c *oncrpc.Call) error {
		var list rpcbind.Pmaplist
		for _, e := range r.have {
			list = append(list, rpcbind.PmaplistNode{Map: rpcbind.Mapping{Prog: e.prog, Vers: e.vers, Prot: protocol(e.netid), Port: uint32(e.port)}})
		}
		return c.Reply(&list)
	}
	v2[rpcbind.PMAPPROC_SET.Number] = r.change2(func(e record) bool { return r.set(e) })
	v2[rpcbind.PMAPPROC_UNSET.Number] = r.change2(func(e record) bool { // both transports at once
		return r.unset(func(o record) bool { return o.prog == e.prog && o.vers == e.vers })
	})
	v4 := make([]oncrpc.Handler, len(rpcbind.RPCBVERS4.Procs))
	v4[rpcbind.RPCBVERS4_RPCBPROC_DUMP.Number] = func(_ context.Context, c *oncrpc.Call) error {
		list := rpcbind.RpcblistPtr{{RpcbMap: rpcbind.Rpcb{RProg: rpcbind.RPCBPROG, RVers: 4, RNetid: []byte("local"), RAddr: []byte("/run/rpcbind.sock")}}}
		for _, e := range r.have {
			list = append(list, rpcbind.RpList{RpcbMap: rpcbind.Rpcb{RProg: e.prog, RVers: e.vers, RNetid: []byte(e.netid), RAddr: []byte(e.addr)}})
		}
		return c.Reply(&list)
	}
	v4[rpcbind.RPCBVERS4_RPCBPROC_SET.Number] = r.change4(func(e record) bool { return r.set(e) })
	v4[rpcbind.RPCBVERS4_RPCBPROC_UNSET.Number] = r.change4(func(e record) bool {
		return r.unset(func(o record) bool { return o.prog == e.prog && o.vers == e.vers && o.netid == e.netid })
	})
	for _, v := range versions {
		s := oncrpc.Service{Program: &rpcbind.PMAPVERS, Handlers: v2}
		if v == 4 {
			s = oncrpc.Service{Program: &rpcbind.RPCBVERS4, Handlers: v4}
		}
		all = append(all, s)
	}
	return all
}

func (r *rpcbindd) set(e record) bool {
	if e.prog == r.refuse {
		return false
	}
	for _, o := range r.have {
		if o.prog == e.prog && o.vers == e.vers && o.netid == e.netid {
			return o.port == e.port
		}
	}
	r.have = append(r.have, e)
	return true
}

func (r *rpcbindd) unset(which func(record) bool) bool {
	n := len(r.have)
	r.have = slices.DeleteFunc(r.have, which)
	return len(r.have) < n
}

func (r *rpcbindd) change2(do func(record) bool) oncrpc.Handler {
	return func(_ context.Context, c *oncrpc.Call) error {
		var a rpcbind.Mapping
		if err := args(c, &a); err != nil {
			return err
		}
		netid := map[uint32]string{6: "tcp", 17: "udp"}[a.Prot]
		_, addr := universal(netid, netip.IPv4Unspecified(), uint16(a.Port))
		return c.Reply(&rpcbind.PMAPPROC_SETres{Value: do(record{a.Prog, a.Vers, netid, addr, uint16(a.Port)})})
	}
}

func (r *rpcbindd) change4(do func(record) bool) oncrpc.Handler {
	return func(_ context.Context, c *oncrpc.Call) error {
		var a rpcbind.Rpcb
		if err := args(c, &a); err != nil {
			return err
		}
		port, _ := callback.UniversalPort(string(a.RAddr))
		return c.Reply(&rpcbind.RPCBVERS4_RPCBPROC_SETres{Value: do(record{a.RProg, a.RVers, string(a.RNetid), string(a.RAddr), port})})
	}
}

func TestRegister(t *testing.T) {
	own := []Entry{
		{&nfs3.NFS_V3, &net.TCPAddr{IP: net.IPv6unspecified, Port: 2049}},
		{&mount3.MOUNT_V3, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2049}},
		{&mount3.MOUNT_V1, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2049}},
		{&mount3.MOUNT_V3, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2049}},
	}
	kernel4 := record{100003, 4, "tcp", "0.0.0.0.8.2", 2050}
	mountd := record{100005, 3, "udp", "0.0.0.0.3.1", 769}
	ours := record{100005, 3, "tcp", "0.0.0.0.8.1", 2049}
	for name, tc := range map[string]struct {
		versions []uint32
		before   []record
		refuse   uint32
		entered  int // in the end
		left     int
		after    []record
		fails    bool
	}{
		"version 4":                     {versions: []uint32{4, 2}, entered: 5},
		"version 2":                     {versions: []uint32{2}, entered: 4},
		"the kernel's NFSv4":            {versions: []uint32{4}, before: []record{kernel4}, entered: 4 + 1, left: 1, after: []record{kernel4}},
		"another mountd":                {versions: []uint32{4}, before: []record{mountd}, entered: 4 + 1, left: 1, after: []record{mountd}},
		"ours of before":                {versions: []uint32{4}, before: []record{ours}, entered: 5},
		"a registry that refuses":       {versions: []uint32{4}, before: []record{mountd}, refuse: 100005, fails: true, after: []record{mountd}},
		"refuses in version 2":          {versions: []uint32{2}, refuse: 100005, fails: true},
		"another mountd, in version 2":  {versions: []uint32{2}, before: []record{mountd}, entered: 3 + 1, left: 1, after: []record{{100005, 3, "tcp", "0.0.0.0.8.1", 2049}, mountd}},
		"a registry of another program": {versions: nil, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &rpcbindd{have: slices.Clone(tc.before), refuse: tc.refuse}
			addr, _ := serve(t, append(d.services(tc.versions...), oncrpc.Service{Program: &nfs3.NFS_V3}))
			dial := func(ctx context.Context) (net.Conn, error) {
				var n net.Dialer
				return n.DialContext(ctx, "tcp", addr.String())
			}
			r, err := Register(t.Context(), dial, own...)
			if (err != nil) != tc.fails {
				t.Fatal(err)
			}
			sorted := func(list []record) []record {
				return slices.SortedFunc(slices.Values(list), func(a, b record) int { return strings.Compare(a.netid, b.netid) })
			}
			if err == nil {
				if len(d.have) != tc.entered || len(r.Left) != tc.left {
					t.Errorf("entered %v, left %v", d.have, r.Left)
				}
				err := r.Close(t.Context())
				if partial := len(tc.after) > len(tc.before); partial != (err != nil) {
					t.Error(err)
				}
			}
			if got, want := sorted(d.have), sorted(tc.after); !slices.Equal(got, want) {
				t.Errorf("in the end there is %v, want %v", got, want)
			}
		})
	}
	if _, err := Register(t.Context(), func(context.Context) (net.Conn, error) { return nil, errors.New("no registry") }, own...); err == nil {
		t.Error("registered with nobody")
	}
	if _, err := Register(t.Context(), nil, make([]Entry, maxEntries+1)...); err == nil {
		t.Error("no bound")
	}
}
