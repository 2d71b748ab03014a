package nfsclient

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// host is a server in memory, of which tests decide what is at which port.
type host struct {
	t   *testing.T
	net *sim.Network
	ip  string

	mu  sync.Mutex
	log []string // of MOUNT
}

func newHost(t *testing.T, ip string) *host {
	return &host{t: t, net: sim.NewNetwork(1), ip: ip}
}

// at serves services at a port until the test ends.
func (h *host) at(port string, services ...oncrpc.Service) {
	h.t.Helper()
	srv, err := oncrpc.NewServer(services, oncrpc.ServerOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	l, err := h.net.Listen(net.JoinHostPort(h.ip, port))
	if err != nil {
		h.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	h.t.Cleanup(func() {
		err := srv.Close()
		if e := <-done; err != nil || !errors.Is(e, oncrpc.ErrServerClosed) {
			h.t.Errorf("%v, %v", err, e)
		}
	})
}

func (h *host) options(o Options) Options {
	o.Host, o.Path, o.Dial = h.ip, "/export/a/b", h.net.DialContext
	o.FS.Machine = "test"
	return o
}

func serve(prog *xdr.Program, answers map[*xdr.Proc]func(c *oncrpc.Call) xdr.Appender) oncrpc.Service {
	s := oncrpc.Service{Program: prog, Handlers: make([]oncrpc.Handler, len(prog.Procs))}
	for i := range s.Handlers {
		if answer := answers[&prog.Procs[i]]; answer != nil {
			s.Handlers[i] = func(_ context.Context, c *oncrpc.Call) error { return c.Reply(answer(c)) }
		}
	}
	return s
}

// nfs has one directory, with nothing in it.
func nfs() oncrpc.Service {
	return serve(&nfs3.NFS_V3, map[*xdr.Proc]func(*oncrpc.Call) xdr.Appender{
		nfs3.NFSPROC3_GETATTR: func(*oncrpc.Call) xdr.Appender {
			return &nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: nfs3.Fattr3{Type: nfs3.NF3DIR}}}
		},
		nfs3.NFSPROC3_LOOKUP: func(*oncrpc.Call) xdr.Appender {
			return &nfs3.LOOKUP3res{Status: nfs3.NFS3ERR_NOENT}
		},
	})
}

// mountd mounts what the paths say, and writes down what it was asked.
func (h *host) mountd(flavors []int32, paths ...string) oncrpc.Service {
	path := func(c *oncrpc.Call) string {
		var args mount3.Mountargs
		if err := args.DecodeXDR(&c.Args); err != nil {
			return err.Error()
		}
		return string(args.Path)
	}
	note := func(what string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.log = append(h.log, what)
	}
	return serve(&mount3.MOUNT_V3, map[*xdr.Proc]func(*oncrpc.Call) xdr.Appender{
		mount3.MOUNTPROC3_MNT: func(c *oncrpc.Call) xdr.Appender {
			p := path(c)
			note("MNT " + p)
			if !slices.Contains(paths, p) {
				return &mount3.Mountres3{FhsStatus: mount3.MNT3ERR_ACCES}
			}
			return &mount3.Mountres3{Mountinfo: mount3.Mountres3Ok{Fhandle: []byte(p), AuthFlavors: flavors}}
		},
		mount3.MOUNTPROC3_UMNT: func(c *oncrpc.Call) xdr.Appender {
			note("UMNT " + path(c))
			return xdr.Void{}
		},
		mount3.MOUNTPROC3_EXPORT: func(*oncrpc.Call) xdr.Appender {
			return &mount3.Exports{
				{ExDir: []byte("/export"), ExGroups: mount3.Groups{{GrName: []byte("10.0.0.0/8")}, {GrName: []byte("@lab")}}},
				{ExDir: []byte("/open")},
			}
		},
	})
}

// portmap answers ports by program, over IPv4.
func portmap(ports map[uint32]uint32) oncrpc.Service {
	return serve(&rpcbind.PMAPVERS, map[*xdr.Proc]func(*oncrpc.Call) xdr.Appender{
		rpcbind.PMAPPROC_GETPORT: func(c *oncrpc.Call) xdr.Appender {
			var args rpcbind.Mapping
			if args.DecodeXDR(&c.Args) != nil || args.Prot != rpcbind.IPPROTO_TCP || args.Vers != 3 {
				return &rpcbind.PMAPPROC_GETPORTres{}
			}
			return &rpcbind.PMAPPROC_GETPORTres{Value: ports[args.Prog]}
		},
	})
}

// rpcb answers a universal address in version 4, over IPv6.
func rpcb(addr string) oncrpc.Service {
	return serve(&rpcbind.RPCBVERS4, map[*xdr.Proc]func(*oncrpc.Call) xdr.Appender{
		rpcbind.RPCBVERS4_RPCBPROC_GETADDR: func(c *oncrpc.Call) xdr.Appender {
			var args rpcbind.Rpcb
			if args.DecodeXDR(&c.Args) != nil || string(args.RNetid) != "tcp6" {
				return &rpcbind.RPCBVERS4_RPCBPROC_GETADDRres{}
			}
			return &rpcbind.RPCBVERS4_RPCBPROC_GETADDRres{Value: []byte(addr)}
		},
	})
}

// TestPorts finds NFS and MOUNT wherever they are, or says what is missing.
func TestPorts(t *testing.T) {
	const v4, v6 = "10.0.0.1", "fd00::1"
	all := []string{"/export/a/b"}
	for name, tc := range map[string]struct {
		ip    string
		setup func(h *host)
		o     Options
		say   string // of the error
	}{
		"all on one port":     {v4, func(h *host) { h.at("7000", nfs(), h.mountd(nil, all...)) }, Options{Port: 7000}, ""},
		"a port for each":     {v4, func(h *host) { h.at("7000", nfs()); h.at("7001", h.mountd(nil, all...)) }, Options{NFSPort: 7000, MountPort: 7001}, ""},
		"MOUNT at NFS's port": {v4, func(h *host) { h.at("7000", nfs(), h.mountd(nil, all...)) }, Options{NFSPort: 7000}, ""},
		"MOUNT is elsewhere": {v4, func(h *host) {
			h.at("7000", nfs())
			h.at("7001", h.mountd(nil, all...))
			h.at("111", portmap(map[uint32]uint32{mount3.MOUNT_V3.Number: 7001}))
		}, Options{Port: 7000}, ""},
		"by the portmapper": {v4, func(h *host) {
			h.at("7000", nfs())
			h.at("7001", h.mountd(nil, all...))
			h.at("111", portmap(map[uint32]uint32{mount3.MOUNT_V3.Number: 7001, nfs3.NFS_V3.Number: 7000}))
		}, Options{}, ""},
		"by IPv6":                 {v6, func(h *host) { h.at("7000", nfs(), h.mountd(nil, all...)); h.at("111", rpcb("::.27.88")) }, Options{}, ""},
		"by IPv6, nonsense":       {v6, func(h *host) { h.at("111", rpcb("::.27.888")) }, Options{}, "no address"},
		"without portmapper":      {v4, func(h *host) { h.at("2049", nfs(), h.mountd(nil, all...)) }, Options{}, ""},
		"nobody there":            {v4, func(*host) {}, Options{}, "neither at port 111 (portmapper) nor at 2049 (MOUNT): connection refused (give"},
		"nobody at the port":      {v4, func(*host) {}, Options{Port: 7000}, "10.0.0.1:7000: dial: connection refused"},
		"not registered":          {v4, func(h *host) { h.at("111", portmap(nil)) }, Options{}, "portmapper does not know"},
		"no such port":            {v4, func(h *host) { h.at("111", portmap(map[uint32]uint32{mount3.MOUNT_V3.Number: 70000})) }, Options{}, "70000"},
		"MOUNT but not NFS":       {v4, func(h *host) { h.at("7000", h.mountd(nil, all...)) }, Options{Port: 7000}, "NFS version 3 at port 7000"},
		"NFS in another version":  {v4, func(h *host) { h.at("7000", nfs4(), h.mountd(nil, all...)) }, Options{Port: 7000}, "4 to 4"},
		"another flavor":          {v4, func(h *host) { h.at("7000", nfs(), h.mountd([]int32{390003}, all...)) }, Options{Port: 7000}, "krb5"},
		"AUTH_SYS among others":   {v4, func(h *host) { h.at("7000", nfs(), h.mountd([]int32{390003, 1}, all...)) }, Options{Port: 7000}, ""},
		"a version of the future": {v4, func(*host) {}, Options{Version: 4}, "use version 3"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, tc.ip)
			tc.setup(h)
			c, err := Mount(t.Context(), h.options(tc.o))
			if tc.say != "" {
				if err == nil {
					err = c.Close()
				}
				if err == nil || !strings.Contains(err.Error(), tc.say) {
					t.Errorf("%v; want %q", err, tc.say)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			h.asked("MNT /export/a/b", "UMNT /export/a/b")
		})
	}
}

// TestMountDoesNotWaitForPartings: "/", which a mount only looks at, is given back, and
// the mount is there before the server has taken notice.
func TestMountDoesNotWaitForPartings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, "10.0.0.1")
		mountd := h.mountd(nil, "/", "/export/a/b")
		umnt := &mountd.Handlers[mount3.MOUNTPROC3_UMNT.Number]
		prompt := *umnt
		const slow = umountTime / 4 // Close waits longer
		*umnt = func(ctx context.Context, c *oncrpc.Call) error {
			time.Sleep(slow)
			return prompt(ctx, c)
		}
		h.at("7000", nfs(), mountd)
		begin := time.Now()
		c, err := Mount(t.Context(), h.options(Options{Port: 7000}))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took >= slow {
			t.Errorf("the mount took %v", took)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		h.asked("MNT /export/a/b", "UMNT /", "UMNT /export/a/b")
	})
}

// nfs4 is a server that has version 4 alone.
func nfs4() oncrpc.Service {
	return oncrpc.Service{Program: &xdr.Program{Name: "NFS_V4", Number: nfs3.NFS_V3.Number, Version: 4}}
}

// TestClimb tries the parents, and says what was wrong with the path itself.
func TestClimb(t *testing.T) {
	h := newHost(t, "10.0.0.1")
	h.at("7000", nfs(), h.mountd(nil, "/export/a"))
	o := h.options(Options{Port: 7000})
	c, err := Mount(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if c.Target() != "b" {
		t.Errorf("target %q", c.Target())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	h.asked("MNT /export/a/b", "MNT /export/a", "UMNT /export/a")
	for path, want := range map[string]error{
		"/export/a/b/c":                         fs.ErrNotExist,   // the directory that would hold it
		"/other/x":                              fs.ErrPermission, // what the server said first
		"relative":                              nil,
		"/a/../b":                               nil,
		"/export/" + strings.Repeat("x/", 600):  nil, // above MNTPATHLEN
		"/export/" + strings.Repeat("x/", 5000): vfs.ErrNameTooLong,
	} {
		o.Path = path
		c, err := Mount(t.Context(), o)
		if err == nil {
			t.Errorf("%.20s: mounted", path)
			err = c.Close()
		}
		if want != nil && !errors.Is(err, want) {
			t.Errorf("%.20s: %v, want %v", path, err, want)
		}
	}
}

func TestLists(t *testing.T) {
	h := newHost(t, "10.0.0.1")
	h.at("7000", h.mountd(nil))
	exports, err := Exports(t.Context(), h.options(Options{Port: 7000}))
	if err != nil || len(exports) != 2 || exports[0].Path != "/export" || !slices.Equal(exports[0].Groups, []string{"10.0.0.0/8", "@lab"}) || exports[1].Groups != nil {
		t.Errorf("%+v, %v", exports, err)
	}
}

// TestDialOnce keeps a lost connection lost.
func TestDialOnce(t *testing.T) {
	for _, once := range []bool{false, true} {
		h := newHost(t, "10.0.0.1")
		h.at("7000", nfs(), h.mountd(nil, "/export/a/b"))
		c, err := Mount(t.Context(), h.options(Options{Port: 7000, DialOnce: once, DialTries: 1}))
		if err != nil {
			t.Fatal(err)
		}
		conns, err := h.net.Conns("10.0.0.1:7000")
		if err != nil {
			t.Fatal(err)
		}
		for _, conn := range conns {
			conn.Reset()
		}
		_, _, err = c.FS().Root(t.Context())
		if errors.Is(err, errLost) != once {
			t.Errorf("once %v: %v", once, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMoved finds a server again that has come back at another address: the name
// is resolved with every connection.
func TestMoved(t *testing.T) {
	h := newHost(t, "10.0.0.1")
	h.at("7000", nfs(), h.mountd(nil, "/export/a/b"))
	o := h.options(Options{Port: 7000})
	var moved atomic.Bool
	o.Host = "filer"
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		name, port, err := net.SplitHostPort(address)
		if err != nil || name != "filer" || network != "tcp" {
			t.Errorf("dial %s %s: %v", network, address, err)
		}
		ip := "10.0.0.1"
		if moved.Load() {
			ip = "10.0.0.2"
		}
		return h.net.DialContext(ctx, network, net.JoinHostPort(ip, port))
	}
	c, err := Mount(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	conns, err := h.net.Conns("10.0.0.1:7000")
	if err != nil {
		t.Fatal(err)
	}
	h.ip = "10.0.0.2"
	h.at("7000", nfs(), h.mountd(nil, "/export/a/b"))
	moved.Store(true)
	for _, conn := range conns {
		conn.Reset()
	}
	if _, _, err := c.FS().Root(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n, err := h.net.Conns("10.0.0.2:7000"); err != nil || len(n) > 0 {
		t.Errorf("%d connections are left, %v", len(n), err)
	}
}

// TestStalePath walks a path once more if a directory on it was replaced.
func TestStalePath(t *testing.T) {
	for stale, want := range map[int]error{1: nil, 99: vfs.ErrStale} {
		calls := 0
		h := newHost(t, "10.0.0.1")
		h.at("7000", h.mountd(nil, "/export/a"), serve(&nfs3.NFS_V3, map[*xdr.Proc]func(*oncrpc.Call) xdr.Appender{
			nfs3.NFSPROC3_GETATTR: func(*oncrpc.Call) xdr.Appender {
				return &nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: nfs3.Fattr3{Type: nfs3.NF3DIR}}}
			},
			nfs3.NFSPROC3_LOOKUP: func(*oncrpc.Call) xdr.Appender {
				if calls++; calls <= stale {
					return &nfs3.LOOKUP3res{Status: nfs3.NFS3ERR_STALE}
				}
				return &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: nfs3.NfsFh3{Data: []byte("b")}}}
			},
		}))
		c, err := Mount(t.Context(), h.options(Options{Port: 7000}))
		if !errors.Is(err, want) {
			t.Errorf("%d times stale: %v", stale, err)
		}
		if calls != 2 {
			t.Errorf("%d times stale: %d LOOKUPs", stale, calls)
		}
		if err == nil {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestConnections(t *testing.T) {
	for n, want := range map[int]int{0: DefaultConns, 1: 1, oncrpc.MaxConns: oncrpc.MaxConns, -1: 0, oncrpc.MaxConns + 1: 0} {
		o := Options{Host: "h", Conns: n, FS: v3.Options{Machine: "m"}}
		err := o.fill()
		if (err == nil) != (want > 0) || err == nil && o.Conns != want {
			t.Errorf("%d: %d, %v", n, o.Conns, err)
		}
	}
	o := Options{Host: "h", Conns: 8, DialOnce: true, FS: v3.Options{Machine: "m"}}
	if err := o.fill(); err != nil || o.Conns != 1 {
		t.Errorf("%d, %v: a lost connection is to stay lost", o.Conns, err)
	}
}

func TestUniversalPort(t *testing.T) {
	for addr, want := range map[string]uint16{
		"10.0.0.1.8.1": 2049, "::1.0.111": 111, ".0.1": 1, "x.255.255": 65535,
		"": 0, "1": 0, "8.1": 0, "::1.0.0": 0, "a.256.1": 0, "a.-1.1": 0, "a.1.": 0, "a..1": 0, "a.1.1x": 0,
	} {
		if got, err := universalPort(addr); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v; want %d", addr, got, err, want)
		}
	}
}

// TestReservedPort binds to one where the process may, and says so where not.
func TestReservedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	o := Options{Host: "127.0.0.1", SourcePort: PortReserved}
	if err := o.fill(); err != nil {
		t.Fatal(err)
	}
	c, err := o.dial(t.Context(), uint16(l.Addr().(*net.TCPAddr).Port))
	if err != nil {
		if !strings.Contains(err.Error(), "reserved source port") {
			t.Fatal(err)
		}
		t.Skip("this process may not bind to reserved ports: ", err)
	}
	if port := c.LocalAddr().(*net.TCPAddr).Port; port < firstReserved || port > lastReserved {
		t.Errorf("port %d", port)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// asked checks what MOUNT was asked, but for "MNT /": that goes beside the others, and
// need not come to it.
func (h *host) asked(want ...string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	got := slices.DeleteFunc(slices.Clone(h.log), func(line string) bool { return line == "MNT /" })
	if !slices.Equal(got, want) {
		h.t.Errorf("MOUNT was asked %q, want %q", got, want)
	}
}

// TestMountTrips counts the round trips of Mount, by time that is simulated: one for
// both services, MNT of the path and of "/", and one for GETATTR of what the first has
// answered, and its limits. Close takes one, for UMNT.
func TestMountTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const oneWay = 50 * time.Millisecond
		h := newHost(t, "10.0.0.1")
		h.at("7000", nfs(), h.mountd(nil, "/export/a/b"))
		h.net.SetFaults(sim.Faults{Latency: oneWay}, sim.Faults{Latency: oneWay})
		start := time.Now()
		c, err := Mount(t.Context(), h.options(Options{Port: 7000}))
		if err != nil {
			t.Fatal(err)
		}
		if trips := time.Since(start) / (2 * oneWay); trips != 2 {
			t.Errorf("%d round trips, want 2", trips)
		}
		start = time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if trips := time.Since(start) / (2 * oneWay); trips != 1 {
			t.Errorf("%d round trips of Close, want 1", trips)
		}
		h.asked("MNT /export/a/b", "UMNT /export/a/b")
	})
}

// TestCloseConnects: UMNT goes by the connection that is there if MOUNT is at the same
// port as NFS; far away another one takes a round trip. Else one is made.
func TestCloseConnects(t *testing.T) {
	for name, tc := range map[string]struct {
		o     Options
		dials int32 // by Close
	}{
		"one port":        {Options{Port: 7000}, 0},
		"a port for each": {Options{NFSPort: 7000, MountPort: 7001}, 1},
	} {
		h := newHost(t, "10.0.0.1")
		h.at("7000", nfs(), h.mountd(nil, "/export/a/b"))
		h.at("7001", h.mountd(nil, "/export/a/b"))
		o := h.options(tc.o)
		var dials atomic.Int32
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return h.net.DialContext(ctx, network, address)
		}
		c, err := Mount(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		before := dials.Load()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := dials.Load() - before; n != tc.dials {
			t.Errorf("%s: %d connections to close, want %d", name, n, tc.dials)
		}
		h.asked("MNT /export/a/b", "UMNT /export/a/b")
	}
}

// TestMountTripsOfName counts those of a file in the root of a server that mounts
// directories alone: both services, MNT of the path and of "/"; and a LOOKUP, which is
// what the path is found to be. Limits of a directory that holds it are known then.
func TestMountTripsOfName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const oneWay = 50 * time.Millisecond
		h := newHost(t, "10.0.0.1")
		h.at("7000", treeNFS("/f"), h.mountd(nil, "/"))
		h.net.SetFaults(sim.Faults{Latency: oneWay}, sim.Faults{Latency: oneWay})
		for path, missing := range map[string]bool{"/x": true, "/f": false} {
			h.log = nil
			o := h.options(Options{Port: 7000})
			o.Path = path
			start := time.Now()
			c, err := Mount(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if trips := time.Since(start) / (2 * oneWay); trips != 2 {
				t.Errorf("%s: %d round trips, want 2", path, trips)
			}
			start = time.Now() // "/f" is a directory of its own
			if info, err := c.FS().Info(t.Context(), c.Root(), vfs.InfoLimits); err != nil || info.WriteMax != 4096 || missing && time.Since(start) != 0 {
				t.Errorf("%s: WRITEs of %d after %v, %v", path, info.WriteMax, time.Since(start), err)
			}
			if found, err := c.Found(); errors.Is(err, fs.ErrNotExist) != missing || !missing && found.Handle != c.Root() {
				t.Errorf("%s: found %+v, %v", path, found, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			h.asked("MNT "+path, "UMNT /")
		}
	})
}
