package v3_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// script is what a server answers, by procedure: n counts the calls of that
// procedure, from 1. A nil answer is none.
type script map[*xdr.Proc]func(n int, c *oncrpc.Call) xdr.Appender

// stage is a server that follows a script, and a client of it.
type stage struct {
	fs  *v3.FS
	rpc *oncrpc.Client
	net *sim.Network

	mu    sync.Mutex
	calls map[*xdr.Proc]int
}

const address = "10.0.0.1:2049"

// play starts a server that follows s until the test ends. FSINFO has an answer
// of its own.
func play(t testing.TB, s script, o v3.Options) *stage {
	t.Helper()
	st := &stage{net: sim.NewNetwork(1), calls: make(map[*xdr.Proc]int)}
	services := []oncrpc.Service{{Program: &nfs3.NFS_V3, Handlers: st.handlers(&nfs3.NFS_V3, s)}}
	if s[nfsacl3.ACLPROC3_GETACL] != nil {
		services = append(services, oncrpc.Service{Program: &nfsacl3.NFS_ACL_V3, Handlers: st.handlers(&nfsacl3.NFS_ACL_V3, s)})
	}
	srv, err := oncrpc.NewServer(services, oncrpc.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := st.net.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	st.rpc = oncrpc.NewClient(oncrpc.ClientOptions{
		Dial:   func(ctx context.Context) (net.Conn, error) { return st.net.DialContext(ctx, "tcp", address) },
		Resend: true,
		Hard:   o.Hard,
	})
	st.fs, err = v3.New(st.rpc, handle(t, "root"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s := st.rpc.Stats(); s.InFlight != 0 {
			t.Errorf("calls under way at the end: %+v", s)
		}
		if err := st.rpc.Close(); err != nil {
			t.Error(err)
		}
		if n := st.rpc.Stats().Buffers; n != 0 {
			t.Errorf("%d replies were not released", n)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, oncrpc.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return st
}

func (st *stage) handlers(prog *xdr.Program, s script) []oncrpc.Handler {
	all := make([]oncrpc.Handler, len(prog.Procs))
	for i := range all {
		p := &prog.Procs[i]
		answer := s[p]
		if answer == nil && p == nfs3.NFSPROC3_FSINFO {
			answer = func(int, *oncrpc.Call) xdr.Appender {
				return &nfs3.FSINFO3res{Resok: nfs3.FSINFO3resok{Rtmax: 65536, Wtmax: 65536}}
			}
		}
		if answer == nil {
			continue
		}
		all[i] = func(_ context.Context, c *oncrpc.Call) error {
			st.mu.Lock()
			st.calls[p]++
			n := st.calls[p]
			st.mu.Unlock()
			if res := answer(n, c); res != nil {
				return c.Reply(res)
			}
			return oncrpc.ErrDrop
		}
	}
	return all
}

// called is how often p was called.
func (st *stage) called(p *xdr.Proc) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.calls[p]
}

// cut resets the client's connection.
func (st *stage) cut(t testing.TB) {
	conns, err := st.net.Conns(address)
	if err != nil {
		t.Error(err)
	}
	for _, c := range conns {
		c.Reset()
	}
}

// always answers res to every call.
func always(res xdr.Appender) func(int, *oncrpc.Call) xdr.Appender {
	return func(int, *oncrpc.Call) xdr.Appender { return res }
}

func handle(t testing.TB, s string) vfs.Handle {
	t.Helper()
	h, err := vfs.MakeHandle([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// open opens the file "file" by its handle alone.
func (st *stage) open(t testing.TB) vfs.File {
	t.Helper()
	f, _, err := st.fs.Open(t.Context(), vfs.At{H: handle(t, "file")}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
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

// isUntrue fails the test if err is not a ReplyError.
func isUntrue(t testing.TB, err error) {
	t.Helper()
	if _, ok := errors.AsType[*v3.ReplyError](err); !ok {
		t.Errorf("%v: want a ReplyError", err)
	}
}
