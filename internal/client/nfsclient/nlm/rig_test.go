package nlm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient/nlm"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

func TestMain(m *testing.M) { leak.Main(m) }

const address = "10.0.0.1:4045"

// who is an owner as the server knows it.
type who struct {
	name, oh string
	svid     int32
}

// server is a lock manager in memory, and the network that leads to it.
type server struct {
	net *sim.Network
	rpc *oncrpc.Server

	mu     sync.Mutex
	held   map[string]map[who]byterange.Set // by handle
	grace  bool
	full   bool
	starts int
	calls  map[*xdr.Proc]int
	conns  []*conn // all that there were
	// lie, if not nil, changes what TEST answers. s.mu is held.
	lie func(*nlm4.Nlm4Testres)
	// before, if not nil, is called before a call is executed. false drops it.
	before func(p *xdr.Proc) bool
}

// conn is a connection as the server has it. It is guarded by server.mu.
type conn struct {
	cut bool // none of its calls is executed any more
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{net: sim.NewNetwork(1), held: make(map[string]map[who]byterange.Set), calls: make(map[*xdr.Proc]int)}
	all := make([]oncrpc.Handler, len(nlm4.NLM_V4.Procs))
	for p, h := range map[*xdr.Proc]oncrpc.Handler{
		nlm4.NLMPROC4_NULL: func(_ context.Context, c *oncrpc.Call) error { return c.Reply(xdr.Void{}) },
		nlm4.NLMPROC4_LOCK: s.lock, nlm4.NLMPROC4_UNLOCK: s.unlock, nlm4.NLMPROC4_TEST: s.test,
	} {
		for i := range nlm4.NLM_V4.Procs {
			if &nlm4.NLM_V4.Procs[i] == p {
				all[i] = s.counted(p, h)
			}
		}
	}
	var err error
	if s.rpc, err = oncrpc.NewServer([]oncrpc.Service{{Program: &nlm4.NLM_V4, Handlers: all}}, oncrpc.ServerOptions{NewConn: s.accept}); err != nil {
		t.Fatal(err)
	}
	l, err := s.net.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.rpc.Serve(l) }()
	t.Cleanup(func() {
		if err := s.rpc.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, oncrpc.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

func (s *server) accept(net.Addr, net.Addr) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := new(conn)
	s.conns = append(s.conns, c)
	return c, nil
}

func (s *server) counted(p *xdr.Proc, h oncrpc.Handler) oncrpc.Handler {
	return func(ctx context.Context, c *oncrpc.Call) error {
		s.mu.Lock()
		s.calls[p]++
		before := s.before
		s.mu.Unlock()
		if before != nil && !before(p) {
			return oncrpc.ErrDrop
		}
		return h(ctx, c)
	}
}

// execute does what a call asks for, and answers it. Once its connection is cut it does nothing: its client
// sends the call again, and this server has no cache of replies that would tell the two for one.
func (s *server) execute(c *oncrpc.Call, do func() xdr.Appender) error {
	s.mu.Lock()
	if on, ok := c.State.(*conn); !ok || on.cut {
		s.mu.Unlock()
		return oncrpc.ErrDrop
	}
	res := do()
	s.mu.Unlock()
	return c.Reply(res)
}

func (s *server) called(p *xdr.Proc) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[p]
}

func (s *server) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		n += c
	}
	return n
}

func spanOf(l *nlm4.Nlm4Lock, exclusive bool) byterange.Span {
	span, _ := byterange.Of(l.LOffset, l.LLen, exclusive)
	return span
}

// conflict finds a lock of another owner. s.mu is held.
func (s *server) conflict(h string, me who, span byterange.Span) (who, byterange.Span, bool) {
	for o, set := range s.held[h] {
		if o != me {
			if have, ok := set.Conflict(span); ok {
				return o, have, true
			}
		}
	}
	return who{}, byterange.Span{}, false
}

func (s *server) lock(_ context.Context, c *oncrpc.Call) error {
	var a nlm4.Nlm4Lockargs
	if err := a.DecodeXDR(&c.Args); err != nil {
		return err
	}
	res := nlm4.Nlm4Res{Cookie: append([]byte(nil), a.Cookie...)}
	me, h, span := who{string(a.Alock.CallerName), string(a.Alock.Oh), a.Alock.Svid}, string(a.Alock.Fh), spanOf(&a.Alock, a.Exclusive)
	return s.execute(c, func() xdr.Appender {
		_, _, locked := s.conflict(h, me, span)
		switch {
		case a.Block:
			res.Stat.Stat = nlm4.NLM4_FAILED // no client of ours asks for it
		case s.grace != a.Reclaim:
			res.Stat.Stat = nlm4.NLM4_DENIED_GRACE_PERIOD
		case s.full:
			res.Stat.Stat = nlm4.NLM4_DENIED_NOLOCKS
		case locked:
			res.Stat.Stat = nlm4.NLM4_DENIED
		default:
			if s.held[h] == nil {
				s.held[h] = make(map[who]byterange.Set)
			}
			s.held[h][me] = s.held[h][me].Put(span)
		}
		return &res
	})
}

func (s *server) unlock(_ context.Context, c *oncrpc.Call) error {
	var a nlm4.Nlm4Unlockargs
	if err := a.DecodeXDR(&c.Args); err != nil {
		return err
	}
	me, h, span := who{string(a.Alock.CallerName), string(a.Alock.Oh), a.Alock.Svid}, string(a.Alock.Fh), spanOf(&a.Alock, false)
	return s.execute(c, func() xdr.Appender {
		of := s.held[h]
		if set := of[me].Take(span); len(set) == 0 {
			delete(of, me)
		} else {
			of[me] = set
		}
		return &nlm4.Nlm4Res{Cookie: append([]byte(nil), a.Cookie...)}
	})
}

func (s *server) test(_ context.Context, c *oncrpc.Call) error {
	var a nlm4.Nlm4Testargs
	if err := a.DecodeXDR(&c.Args); err != nil {
		return err
	}
	res := nlm4.Nlm4Testres{Cookie: append([]byte(nil), a.Cookie...)}
	me, h, span := who{string(a.Alock.CallerName), string(a.Alock.Oh), a.Alock.Svid}, string(a.Alock.Fh), spanOf(&a.Alock, a.Exclusive)
	return s.execute(c, func() xdr.Appender {
		by, have, locked := s.conflict(h, me, span)
		switch {
		case s.grace:
			res.TestStat.Stat = nlm4.NLM4_DENIED_GRACE_PERIOD
		case locked:
			res.TestStat.Stat = nlm4.NLM4_DENIED
			res.TestStat.Holder = nlm4.Nlm4Holder{Exclusive: have.Exclusive, Svid: by.svid, Oh: []byte(by.oh), LOffset: have.First, LLen: have.Len()}
		}
		if s.lie != nil {
			s.lie(&res)
		}
		return &res
	})
}

// cut resets all connections.
func (s *server) cut(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	conns := s.condemn(t)
	s.mu.Unlock()
	for _, c := range conns {
		c.Reset()
	}
}

// condemn notes that the connections are cut, and returns them, to be reset. s.mu is held.
func (s *server) condemn(t testing.TB) []*sim.Conn {
	t.Helper()
	for _, c := range s.conns {
		c.cut = true
	}
	conns, err := s.net.Conns(address)
	if err != nil {
		t.Error(err)
	}
	return conns
}

// restart forgets all locks, and has a grace for that long. No call of an earlier start is executed by
// this one.
func (s *server) restart(t testing.TB, grace time.Duration) {
	t.Helper()
	s.mu.Lock()
	s.held = make(map[string]map[who]byterange.Set)
	s.grace = grace > 0
	s.starts++
	start := s.starts
	conns := s.condemn(t)
	s.mu.Unlock()
	for _, c := range conns {
		c.Reset()
	}
	if grace > 0 {
		time.AfterFunc(grace, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.starts == start { // else it is the grace of a later start
				s.grace = false
			}
		})
	}
}

// holders are how many owners have locks, of all files.
func (s *server) holders() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.held {
		n += len(of)
	}
	return n
}

// client is a client of s, over files in memory.
type client struct {
	*nlm.FS
	t   testing.TB
	mem *memfs.FS
}

// client makes a client, which differs from others by its seed. Its files are mem's.
func (s *server) client(t testing.TB, mem *memfs.FS, seed uint64) *client {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	fs := nlm.New(mem, nlm.Options{
		Server: "server", Host: "client",
		Rand: func(p []byte) {
			mu.Lock()
			defer mu.Unlock()
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
		},
		Auth: func(*vfs.Caller) (oncrpc.Auth, error) { return oncrpc.Auth{}, nil },
		Connect: func(ctx context.Context, dialed func()) (*oncrpc.Client, error) {
			first := true
			rpc := oncrpc.NewClient(oncrpc.ClientOptions{
				FirstXID: uint32(seed) << 16,
				Timeout:  5 * time.Second,
				Dial: func(ctx context.Context) (net.Conn, error) {
					c, err := s.net.DialContext(ctx, "tcp", address)
					if err == nil && !first {
						dialed()
					}
					first = first && err != nil
					return c, err
				},
			})
			reply, err := rpc.Call(ctx, nlm4.NLMPROC4_NULL, oncrpc.Auth{}, xdr.Void{}, xdr.Void{})
			reply.Release()
			if err != nil {
				return nil, errors.Join(err, rpc.Close())
			}
			return rpc, nil
		},
	})
	c := &client{FS: fs, t: t, mem: mem}
	t.Cleanup(func() {
		if err := fs.Close(); err != nil && !errors.Is(err, vfs.ErrIO) {
			t.Error(err)
		}
		if st := fs.Stats(); st.Pending != 0 {
			t.Errorf("left behind: %+v", st)
		}
	})
	return c
}

// simple is a server with one client, and the handle of a file.
func simple(t *testing.T) (*server, *client, vfs.Handle) {
	t.Helper()
	s := newServer(t)
	mem := memfs.New(memfs.Options{Mode: 0o777})
	return s, s.client(t, mem, 1), create(t, mem, "file")
}

func create(t testing.TB, fs vfs.FS, name string) vfs.Handle {
	t.Helper()
	root, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, _, _, err := fs.Create(t.Context(), root, name, &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o666}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func owner(n int) (o vfs.Owner) {
	o.N = uint8(copy(o.ID[:], binary.BigEndian.AppendUint32(nil, uint32(n))))
	return o
}

func alone(n int, off, size uint64) *vfs.Lock {
	return &vfs.Lock{Owner: owner(n), Exclusive: true, Off: off, Len: size}
}

func shared(n int, off, size uint64) *vfs.Lock {
	return &vfs.Lock{Owner: owner(n), Off: off, Len: size}
}

// must ends the test unless err is want.
func must(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}

func open(t testing.TB, fs vfs.FS, h vfs.Handle, n int) vfs.File {
	t.Helper()
	f, _, err := fs.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite, Owner: owner(n)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

func read(t testing.TB, f vfs.File) error {
	_, _, err := f.ReadAt(t.Context(), make([]byte, 1), 0, nil)
	return err
}

func write(t testing.TB, f vfs.File) error {
	var w vfs.Written
	_, err := f.WriteAt(t.Context(), []byte("x"), 0, vfs.Unstable, &w)
	return err
}

// bubble runs a test with a clock of its own.
func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }
