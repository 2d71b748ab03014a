package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestOnceUDP asks for locks in datagrams, each several times and from several sockets, with
// another client's calls between.
func TestOnceUDP(t *testing.T) {
	w := newOnceWorld(t)
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.srv.ServePacket(pc) }()
	t.Cleanup(func() {
		if err := w.srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, nfsserver.ErrClosed) {
			t.Error(err)
		}
	})
	ask := func(msg []byte) []byte {
		t.Helper()
		nc, err := net.Dial("udp", pc.LocalAddr().String())
		if err == nil {
			err = nc.SetDeadline(time.Now().Add(onceWait))
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = nc.Write(msg)
		p := make([]byte, 1024)
		n := 0
		if err == nil {
			n, err = nc.Read(p)
		}
		if err := errors.Join(err, nc.Close()); err != nil {
			t.Fatal(err)
		}
		return p[:n]
	}
	lock := onceMessage(t, 7, nlm4.NLMPROC4_LOCK, root, w.lockArgs(1))
	unlock := onceMessage(t, 8, nlm4.NLMPROC4_UNLOCK, root, &nlm4.Nlm4Unlockargs{Alock: w.lockOf(1)})
	locked, unlocked := ask(lock), ask(unlock)
	w.lock(2)
	for range 3 {
		if got := ask(lock); !bytes.Equal(got, locked) {
			t.Errorf("LOCK again: %x, was %x", got, locked)
		}
		w.held(2)
	}
	w.unlock(2)
	w.lock(1)
	for range 3 {
		if got := ask(unlock); !bytes.Equal(got, unlocked) {
			t.Errorf("UNLOCK again: %x, was %x", got, unlocked)
		}
		w.held(1)
	}
	w.unlock(1)
}

// onceSeeds are those of TestOnceStorm, or the one that NFSBOX_SEED names.
func onceSeeds(t *testing.T) []uint64 {
	t.Helper()
	s := os.Getenv("NFSBOX_SEED")
	if s == "" {
		return []uint64{1, 2}
	}
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("NFSBOX_SEED: %v", err)
	}
	return []uint64{seed}
}

// TestOnceStorm has clients make, move and remove names behind a proxy that
// loses replies, doubles calls and cuts connections. Each works in a directory
// of its own and alone, so that every call must succeed, and in the end there is
// what there must be. NFSBOX_SEED repeats what a failing one has printed.
func TestOnceStorm(t *testing.T) {
	const workers, steps = 4, 40
	for _, seed := range onceSeeds(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newOnceWorld(t)
			p := rpcfault.New(rpcfault.Options{Seed: seed, Rules: stormRules(), Upstream: func(ctx context.Context) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "tcp", w.addr)
			}})
			defer func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}()
			rand := sim.NewRand(seed)
			c := oncrpc.NewClient(oncrpc.ClientOptions{
				FirstXID: uint32(rand.Uint64()), Resend: true, Hard: true, Timeout: 50 * time.Millisecond, Conns: 3,
				Dial: func(ctx context.Context) (net.Conn, error) { return p.Dial(ctx, "tcp", "") },
			})
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			for range workers {
				b := &stormer{t: t, ctx: ctx, c: c, auth: cred(t, root), rand: rand.Fork(), made: map[string]bool{}}
				b.dir = w.dir(w.root, fmt.Sprintf("storm%d", b.rand.Uint64()), 0o777)
				wg.Go(func() { b.work(steps) })
				defer func() { b.look(w) }()
			}
			wg.Wait()
			if st := w.srv.Stats().Replies; st.Hits+st.Joined == 0 || st.UnderWay != 0 {
				t.Errorf("%v: %+v", p, st)
			}
			if t.Failed() {
				t.Log(p)
			}
		})
	}
}

func stormRules() []rpcfault.Rule {
	return []rpcfault.Rule{
		{Probability: 0.10, Fault: rpcfault.Fault{Kind: rpcfault.CutInReply, At: rpcfault.Anywhere}},
		{Probability: 0.05, Fault: rpcfault.Fault{Kind: rpcfault.CutInReply, Reset: true}},
		{Probability: 0.05, Fault: rpcfault.Fault{Kind: rpcfault.CutInCall, At: rpcfault.Anywhere}},
		{Probability: 0.10, Fault: rpcfault.Fault{Kind: rpcfault.DuplicateCall, Count: 2}},
		{Probability: 0.01, Fault: rpcfault.Fault{Kind: rpcfault.DropReply}},
		{Probability: 0.05, Fault: rpcfault.Fault{Kind: rpcfault.DelayCall, Jitter: 5 * time.Millisecond}},
	}
}

// stormer makes, moves and removes names in a directory of its own.
type stormer struct {
	t    *testing.T
	ctx  context.Context
	c    *oncrpc.Client
	auth oncrpc.Auth
	rand *sim.Rand
	dir  []byte
	made map[string]bool // what there must be
	next int
}

// do makes a call, which must succeed.
func (b *stormer) do(p *xdr.Proc, args xdr.Appender) bool {
	var res anyResult
	reply, err := b.c.Call(b.ctx, p, b.auth, args, &res)
	if err != nil {
		b.t.Errorf("%v: %v", p, err)
		return false
	}
	reply.Release()
	op := onceOp{proc: p}
	op.good(b.t, res.body)
	return !b.t.Failed()
}

// any is one of the names that there are, or "".
func (b *stormer) any() string {
	for i := range 8 {
		name := fmt.Sprint(max(b.next-1-b.rand.IntN(4*(i+1)), 0))
		if b.made[name] {
			return name
		}
	}
	return ""
}

func (b *stormer) work(steps int) {
	for range steps {
		old, name := b.any(), fmt.Sprint(b.next)
		var good bool
		switch what := b.rand.IntN(4); {
		case old == "" || what == 0:
			good = b.do(nfs3.NFSPROC3_CREATE, &nfs3.CREATE3args{Where: at(b.dir, name), How: guarded(0o600)})
			b.made[name] = true
			b.next++
		case what == 1:
			good = b.do(nfs3.NFSPROC3_MKDIR, &nfs3.MKDIR3args{Where: at(b.dir, name+"d")}) &&
				b.do(nfs3.NFSPROC3_RMDIR, &nfs3.RMDIR3args{Object: at(b.dir, name+"d")})
		case what == 2:
			good = b.do(nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: at(b.dir, old), To: at(b.dir, name)})
			delete(b.made, old)
			b.made[name] = true
			b.next++
		default:
			good = b.do(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: at(b.dir, old)})
			delete(b.made, old)
		}
		if !good {
			return
		}
	}
}

// look compares what there is with what there must be.
func (b *stormer) look(w *onceWorld) {
	for i := range b.next {
		name := fmt.Sprint(i)
		want := nfs3.NFS3ERR_NOENT
		if b.made[name] {
			want = nfs3.NFS3_OK
		}
		if st := w.lookup(b.dir, name).Status; st != want {
			b.t.Errorf("%q: %v, want %v", name, st, want)
		}
	}
}
