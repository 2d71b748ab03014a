package nlm

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/oncrpc/replycache"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/proto/nsm"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// wire is a network of pipes: listeners by "host:port", over TCP alone. It works
// in a synctest bubble.
type wire struct {
	mu     sync.Mutex
	listen map[string]*pipes
	ports  int
}

type pipes struct {
	w    *wire
	addr *net.TCPAddr
	in   chan net.Conn
	done chan struct{}
	once sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.in:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Addr() net.Addr { return p.addr }
func (p *pipes) Close() error {
	p.once.Do(func() {
		close(p.done)
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		delete(p.w.listen, p.addr.String())
	})
	return nil
}

// pipeEnd is one end of a connection, with addresses.
type pipeEnd struct {
	net.Conn
	local, remote *net.TCPAddr
}

func (p pipeEnd) LocalAddr() net.Addr  { return p.local }
func (p pipeEnd) RemoteAddr() net.Addr { return p.remote }

func (w *wire) listener(addr string) *pipes {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &pipes{w: w, addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)), in: make(chan net.Conn), done: make(chan struct{})}
	w.listen[addr] = p
	return p
}

func (w *wire) dial(ctx context.Context, network string, from netip.Addr, to string) (net.Conn, error) {
	w.mu.Lock()
	w.ports++
	l, port := w.listen[to], 600+w.ports%400
	w.mu.Unlock()
	if l == nil || network != "tcp" {
		return nil, syscall.ECONNREFUSED
	}
	local := &net.TCPAddr{IP: from.AsSlice(), Port: port}
	near, far := net.Pipe()
	select {
	case l.in <- pipeEnd{far, l.addr, local}:
		return pipeEnd{near, local, l.addr}, nil
	case <-l.done:
	case <-ctx.Done():
	}
	return nil, errors.Join(syscall.ECONNREFUSED, near.Close(), far.Close())
}

const (
	serverIP   = "192.0.2.1"
	serverAddr = serverIP + ":2049"
)

// lab is a server with locks, its clients and the network between them.
type lab struct {
	t     testing.TB
	wire  *wire
	table *export.Table
	svc   *Service
	srv   *oncrpc.Server
	log   *logbuf.Buffer
	ended bool
}

// newLab starts a server. o may bring a grace and a state directory.
func newLab(t testing.TB, o Options) *lab {
	t.Helper()
	return newLabOf(t, memfs.New(memfs.Options{Mode: 0o777}), o)
}

// newLabOf is newLab over fs.
func newLabOf(t testing.TB, fs vfs.FS, o Options) *lab {
	t.Helper()
	l := &lab{t: t, wire: &wire{listen: make(map[string]*pipes)}, log: &logbuf.Buffer{}}
	var err error
	l.table, err = export.NewTable(export.Key{1, 2, 3}, export.Export{Path: "/", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	l.start(o)
	t.Cleanup(l.end)
	return l
}

func (l *lab) start(o Options) {
	l.t.Helper()
	o.Table, o.Dial, o.Hostname = l.table, l.wire.dial, "server.example.org"
	o.Log = slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if l.svc, err = New(o); err != nil {
		l.t.Fatal(err)
	}
	l.srv = serveRPC(l.t, l.svc.RPC(), l.wire.listener(serverAddr), func(remote net.Addr) any { return peer.NewConn(l.table, remote) })
	l.svc.Start()
	l.ended = false
}

// end stops the server, as one that shuts down, and looks at what it left.
func (l *lab) end() {
	l.t.Helper()
	if l.ended {
		return
	}
	l.ended = true
	if err := l.srv.Close(); err != nil {
		l.t.Error(err)
	}
	l.audit()
	if err := l.svc.Close(); err != nil {
		l.t.Error(err)
	}
	if st := l.srv.Stats(); st.Panics != 0 || st.Buffers != 0 {
		l.t.Errorf("the server left things behind: %+v\n%s", st, l.log)
	}
}

// audit counts everything again.
func (l *lab) audit() {
	l.t.Helper()
	s := l.svc
	s.mu.Lock()
	defer s.mu.Unlock()
	locks, waits, shares := 0, 0, 0
	files := make(map[*client]map[*file]int)
	add := func(c *client, f *file, n int) {
		if files[c] == nil {
			files[c] = make(map[*file]int)
		}
		files[c][f] += n
	}
	for h, f := range s.files {
		if f.h != h || len(f.held)+len(f.queue)+len(f.shares) == 0 && f.uses == 0 {
			l.t.Errorf("an empty file is kept: %+v", f)
		}
		for _, have := range f.held {
			locks += len(have.set)
			add(have.c, f, len(have.set))
		}
		waits, shares = waits+len(f.queue), shares+len(f.shares)
		for _, w := range f.queue {
			add(w.c, f, 1)
		}
		for _, o := range f.shares {
			add(o.c, f, 1)
		}
		if _, queued := s.queued[f]; queued != (len(f.queue) > 0) {
			l.t.Errorf("%d wait, queued %t", len(f.queue), queued)
		}
		for _, w := range f.sent {
			if s.grants[w.cookie] != w {
				l.t.Error("a grant is sent that is not known")
			}
		}
	}
	if locks != s.locks || waits != s.waits || shares != s.shares {
		l.t.Errorf("%d locks, %d waits, %d shares; counted as %d, %d, %d", locks, waits, shares, s.locks, s.waits, s.shares)
	}
	names, results := 0, 0
	var sum home
	for _, h := range s.homes {
		names += h.clients
		sum.locks, sum.waits, sum.shares = sum.locks+h.locks, sum.waits+h.waits, sum.shares+h.shares
		sum.holdings, sum.results, sum.calling = sum.holdings+h.holdings, sum.results+h.results, sum.calling+h.calling
		if h.clients == 0 {
			l.t.Errorf("the home of nobody: %+v", h)
		}
	}
	if names != len(s.clients) || sum.locks != locks || sum.waits != waits || sum.shares != shares || sum.results != s.results || sum.calling != s.calling {
		l.t.Errorf("%d clients, %d at home; of the homes together %+v", len(s.clients), names, sum)
	}
	holdings := 0
	for _, f := range s.files {
		holdings += len(f.held)
	}
	if holdings != sum.holdings {
		l.t.Errorf("%d owners of locks, counted as %d", holdings, sum.holdings)
	}
	for _, c := range s.clients {
		results += len(c.out.results)
		if len(c.files) != len(files[c]) || c.uses != 0 {
			l.t.Errorf("%s: %d files, counted as %d; %d uses", c.key.name, len(files[c]), len(c.files), c.uses)
		}
		for f, n := range c.files {
			if files[c][f] != n {
				l.t.Errorf("%s: %d things in a file, counted as %d", c.key.name, files[c][f], n)
			}
		}
	}
	if results != s.results {
		l.t.Errorf("%d results wait, counted as %d", results, s.results)
	}
}

// serveRPC serves on a listener until the test ends, or the server is closed.
func serveRPC(t testing.TB, services []oncrpc.Service, on net.Listener, state func(net.Addr) any) *oncrpc.Server {
	t.Helper()
	srv, err := oncrpc.NewServer(services, oncrpc.ServerOptions{
		NewConn: func(remote, _ net.Addr) (any, error) { return state(remote), nil },
		Replies: replycache.New(replycache.Options{}), Peer: userOf,
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(on) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, oncrpc.ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
	})
	return srv
}

// file makes a file, as the program itself, and returns its handle on the wire.
func (l *lab) file(name string, mode uint32) []byte {
	l.t.Helper()
	v := l.table.As(nil)
	root, _, err := v.Root(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	h, _, _, err := v.Create(l.t.Context(), root, name, &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}})
	if err != nil {
		l.t.Fatal(err)
	}
	return bytes.Clone(h.Bytes())
}

// local is a program of the server's host, which locks past the server.
func (l *lab) local(fh []byte) (lock func() error, unlock func()) {
	h, err := vfs.MakeHandle(fh)
	if err != nil {
		l.t.Fatal(err)
	}
	power, ok := vfs.As[vfs.Locker](l.table.As(nil))
	if !ok {
		l.t.Fatal("no power to lock")
	}
	k := &vfs.Lock{Owner: vfs.Owner{Client: "a local program"}, Exclusive: true}
	return func() error { return power.Lock(context.Background(), h, k) },
		func() {
			if err := power.Unlock(context.Background(), h, k); err != nil {
				l.t.Error(err)
			}
		}
}

// guest is a client host: it calls the server, and has a lock manager, a status
// monitor and a port mapper of its own, all on port 111.
type guest struct {
	l    *lab
	name string
	ip   netip.Addr
	uid  uint32

	state   int32
	client  *oncrpc.Client
	serves  *oncrpc.Server
	asked   atomic.Int32           // for its state
	grants  chan nlm4.Nlm4Testargs // received
	results chan nlm4.Nlm4Res      // of messages
	news    chan nsm.StatChge

	mu     sync.Mutex
	answer func(*nlm4.Nlm4Testargs) (nlm4.Nlm4Stats, error) // guarded by mu; nil: granted
}

func (l *lab) guest(name, ip string) *guest {
	l.t.Helper()
	g := &guest{l: l, name: name, ip: netip.MustParseAddr(ip), state: 1,
		grants: make(chan nlm4.Nlm4Testargs, 1000), results: make(chan nlm4.Nlm4Res, 100), news: make(chan nsm.StatChge, 100)}
	g.client = oncrpc.NewClient(oncrpc.ClientOptions{
		Dial: func(ctx context.Context) (net.Conn, error) { return l.wire.dial(ctx, "tcp", g.ip, serverAddr) }})
	l.t.Cleanup(func() {
		if err := g.client.Close(); err != nil {
			l.t.Error(err)
		}
	})
	g.up()
	return g
}

// up starts the guest's own programs.
func (g *guest) up() {
	lm := make([]oncrpc.Handler, len(nlm4.NLM_V4.Procs))
	lm[nlm4.NLMPROC4_GRANTED.Number] = g.granted
	lm[nlm4.NLMPROC4_GRANTED_MSG.Number] = g.grantedMsg
	for _, p := range []*xdr.Proc{nlm4.NLMPROC4_LOCK_RES, nlm4.NLMPROC4_UNLOCK_RES, nlm4.NLMPROC4_CANCEL_RES} {
		lm[p.Number] = g.result
	}
	sm := make([]oncrpc.Handler, len(nsm.SM_VERS.Procs))
	sm[nsm.SM_NOTIFY.Number] = g.notified
	sm[nsm.SM_STAT.Number] = func(_ context.Context, c *oncrpc.Call) error {
		g.asked.Add(1)
		return c.Reply(&nsm.SmStatRes{ResStat: nsm.StatFail, State: g.state}) // as those do that cannot find the name
	}
	pm := make([]oncrpc.Handler, len(rpcbind.PMAPVERS.Procs))
	pm[rpcbind.PMAPPROC_GETPORT.Number] = func(_ context.Context, c *oncrpc.Call) error {
		return c.Reply(&rpcbind.PMAPPROC_GETPORTres{Value: rpcbind.PMAP_PORT})
	}
	g.serves = serveRPC(g.l.t, []oncrpc.Service{{Program: &nlm4.NLM_V4, Handlers: lm}, {Program: &nsm.SM_VERS, Handlers: sm},
		{Program: &rpcbind.PMAPVERS, Handlers: pm}}, g.l.wire.listener(netip.AddrPortFrom(g.ip, rpcbind.PMAP_PORT).String()), func(net.Addr) any { return nil })
}

// down stops them, as a crash does.
func (g *guest) down() {
	if err := g.serves.Close(); err != nil {
		g.l.t.Error(err)
	}
}

func (g *guest) answers(how func(*nlm4.Nlm4Testargs) (nlm4.Nlm4Stats, error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = how
}

func (g *guest) decide(c *oncrpc.Call) (*nlm4.Nlm4Testargs, nlm4.Nlm4Stats, error) {
	a, err := args[nlm4.Nlm4Testargs](c)
	if err != nil {
		return nil, 0, err
	}
	a.Cookie = bytes.Clone(a.Cookie)
	a.Alock.Oh, a.Alock.Fh, a.Alock.CallerName = bytes.Clone(a.Alock.Oh), bytes.Clone(a.Alock.Fh), bytes.Clone(a.Alock.CallerName)
	if from := c.Remote.(*net.TCPAddr).IP.String(); from != serverIP {
		g.l.t.Errorf("a grant comes from %s", from)
	}
	g.mu.Lock()
	how := g.answer
	g.mu.Unlock()
	if how == nil {
		g.grants <- *a
		return a, nlm4.NLM4_GRANTED, nil
	}
	st, err := how(a)
	return a, st, err
}

func (g *guest) granted(_ context.Context, c *oncrpc.Call) error {
	a, st, err := g.decide(c)
	if err != nil {
		return err
	}
	return c.Reply(&nlm4.Nlm4Res{Cookie: a.Cookie, Stat: nlm4.Nlm4Stat{Stat: st}})
}

func (g *guest) grantedMsg(_ context.Context, c *oncrpc.Call) error {
	a, st, err := g.decide(c)
	if err != nil {
		return err
	}
	go g.call(nlm4.NLMPROC4_GRANTED_RES, &nlm4.Nlm4Res{Cookie: a.Cookie, Stat: nlm4.Nlm4Stat{Stat: st}}, &xdr.Void{})
	return c.Reply(xdr.Void{})
}

func (g *guest) result(_ context.Context, c *oncrpc.Call) error {
	a, err := args[nlm4.Nlm4Res](c)
	if err != nil {
		return err
	}
	a.Cookie = bytes.Clone(a.Cookie)
	g.results <- *a
	return c.Reply(xdr.Void{})
}

func (g *guest) notified(_ context.Context, c *oncrpc.Call) error {
	a, err := args[nsm.StatChge](c)
	if err != nil {
		return err
	}
	a.MonName = bytes.Clone(a.MonName)
	g.news <- *a
	return c.Reply(xdr.Void{})
}

// call calls the server. What the result borrows is dead; numbers are not.
func (g *guest) call(p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) {
	g.l.t.Helper()
	cred, err := (&oncrpc.AuthSys{Machine: g.name, UID: g.uid, GID: g.uid}).Auth()
	if err != nil {
		g.l.t.Error(err)
		return
	}
	reply, err := g.client.Call(context.Background(), p, cred, args, res)
	if err != nil {
		g.l.t.Errorf("%s: %v", p.Name, err)
	}
	reply.Release()
}

// want is a lock of process svid.
type want struct {
	fh        []byte
	svid      int32
	off, len  uint64
	exclusive bool
	block     bool
	reclaim   bool
}

func (g *guest) alock(w want) nlm4.Nlm4Lock {
	return nlm4.Nlm4Lock{CallerName: []byte(g.name), Fh: w.fh, Oh: []byte{byte(w.svid)}, Svid: w.svid, LOffset: w.off, LLen: w.len}
}

func (g *guest) lockArgs(w want) *nlm4.Nlm4Lockargs {
	return &nlm4.Nlm4Lockargs{Cookie: []byte("cook"), Block: w.block, Exclusive: w.exclusive, Alock: g.alock(w), Reclaim: w.reclaim, State: g.state}
}

func (g *guest) lock(w want) nlm4.Nlm4Stats {
	g.l.t.Helper()
	var res nlm4.Nlm4Res
	g.call(nlm4.NLMPROC4_LOCK, g.lockArgs(w), &res)
	return res.Stat.Stat
}

func (g *guest) unlock(w want) nlm4.Nlm4Stats {
	g.l.t.Helper()
	var res nlm4.Nlm4Res
	g.call(nlm4.NLMPROC4_UNLOCK, &nlm4.Nlm4Unlockargs{Cookie: []byte("c"), Alock: g.alock(w)}, &res)
	return res.Stat.Stat
}

func (g *guest) cancel(w want) nlm4.Nlm4Stats {
	g.l.t.Helper()
	var res nlm4.Nlm4Res
	g.call(nlm4.NLMPROC4_CANCEL, &nlm4.Nlm4Cancargs{Block: w.block, Exclusive: w.exclusive, Alock: g.alock(w)}, &res)
	return res.Stat.Stat
}

// notify tells the server that the guest has restarted, under that name.
func (g *guest) notify(name string) {
	g.l.t.Helper()
	g.call(nsm.SM_NOTIFY, &nsm.StatChge{MonName: []byte(name), State: g.state}, &xdr.Void{})
}

func expect(t testing.TB, what string, got, want nlm4.Nlm4Stats) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
