package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/oncrpc/replycache"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// gate holds up one operation of a file system, and counts them all.
type gate struct {
	mu     sync.Mutex
	times  map[string]int
	hold   string        // the next one of this name waits
	inside chan struct{} // gets a token when it does
	free   chan struct{} // gives it leave
}

func newGate() *gate {
	return &gate{times: make(map[string]int), inside: make(chan struct{}, 1), free: make(chan struct{}, 1)}
}

func (g *gate) pass(ctx context.Context, op string, _ vfs.Handle) error {
	g.mu.Lock()
	g.times[op]++
	hold := g.hold == op
	if hold {
		g.hold = ""
	}
	g.mu.Unlock()
	if !hold {
		return nil
	}
	g.inside <- struct{}{}
	select {
	case <-g.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) count(op string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.times[op]
}

func (g *gate) stop(op string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold = op
}

// onceMessage is a call as a record without its mark.
func onceMessage(t testing.TB, xid uint32, p *xdr.Proc, who oncrpc.AuthSys, args xdr.Appender) []byte {
	t.Helper()
	auth := cred(t, who)
	b := binary.BigEndian.AppendUint32(nil, xid)
	for _, v := range [...]uint32{0, 2, p.Program, p.Version, p.Number, uint32(auth.Flavor)} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	b = xdr.AppendOpaque(b, auth.Body)
	b = append(b, make([]byte, 8)...) // no verifier
	b, err := args.AppendXDR(b)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// stream is a plain connection, without our client.
type stream struct {
	t testing.TB
	net.Conn
}

const onceWait = 20 * time.Second

func dialStream(t testing.TB, addr string) stream {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err == nil {
		err = nc.SetDeadline(time.Now().Add(onceWait))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() }) // many are closed already
	return stream{t, nc}
}

func (s stream) send(msg []byte) {
	s.t.Helper()
	mark := binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(msg)))
	if _, err := s.Write(append(mark, msg...)); err != nil {
		s.t.Fatal(err)
	}
}

// reply is the next record.
func (s stream) reply() []byte {
	s.t.Helper()
	var mark [4]byte
	if _, err := io.ReadFull(s, mark[:]); err != nil {
		s.t.Fatal(err)
	}
	p := make([]byte, binary.BigEndian.Uint32(mark[:])&^(1<<31))
	if _, err := io.ReadFull(s, p); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// cut ends the connection as a client does that crashes.
func (s stream) cut() {
	s.t.Helper()
	if err := errors.Join(s.Conn.(*net.TCPConn).SetLinger(0), s.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// body is what stands in an accepted reply.
func body(t testing.TB, xid uint32, msg []byte) []byte {
	t.Helper()
	const head = 24
	accepted := [head - 4]byte{3: 1} // a reply, accepted, no verifier, SUCCESS
	if len(msg) < head || !bytes.Equal(msg[:head], append(binary.BigEndian.AppendUint32(nil, xid), accepted[:]...)) {
		t.Fatalf("reply %x", msg)
	}
	return msg[head:]
}

// forOnce runs a test for each call that must not be executed twice.
func forOnce(t *testing.T, test func(t *testing.T, w *onceWorld, op *onceOp)) {
	for _, op := range onceOps() {
		t.Run(op.name, func(t *testing.T) {
			test(t, newOnceWorld(t), &op)
		})
	}
}

// waitOnce waits for what the server does in its own time.
func waitOnce(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(onceWait); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// TestOnceClient has our own client ask again, because a proxy had its call
// executed and cut the connection instead of passing the reply on.
func TestOnceClient(t *testing.T) {
	for name, lost := range map[string]rpcfault.Fault{
		"cut":     {Kind: rpcfault.CutInReply},
		"cut in":  {Kind: rpcfault.CutInReply, At: 20, Reset: true},
		"dropped": {Kind: rpcfault.DropReply},
		"doubled": {Kind: rpcfault.DuplicateCall},
	} {
		t.Run(name, func(t *testing.T) {
			forOnce(t, func(t *testing.T, w *onceWorld, op *onceOp) { lostReply(t, w, op, lost) })
		})
	}
}

func lostReply(t *testing.T, w *onceWorld, op *onceOp, lost rpcfault.Fault) {
	executed, meanwhile := make(chan struct{}, 2), make(chan struct{}, 2)
	pause := rpcfault.Fault{Kind: rpcfault.EditReply, Edit: func(*rpcfault.Message, *sim.Rand) {
		executed <- struct{}{}
		<-meanwhile
	}}
	procs := []*xdr.Proc{op.proc}
	rules := []rpcfault.Rule{{Procs: procs, Budget: 1, Fault: pause}, {Procs: procs, Budget: 1, Fault: lost}}
	if lost.Kind == rpcfault.DropReply {
		// Nothing is edited that is lost.
		rules = []rpcfault.Rule{{Procs: procs, Skip: 1, Budget: 1, Fault: pause}, rules[1]}
	}
	p := rpcfault.New(rpcfault.Options{Seed: 1, Rules: rules, Upstream: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", w.addr)
	}})
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := oncrpc.NewClient(oncrpc.ClientOptions{
		FirstXID: 77, Resend: true, Retries: 50, Timeout: onceTimeout(lost),
		Dial: func(ctx context.Context) (net.Conn, error) { return p.Dial(ctx, "tcp", "") },
	})
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	args := op.begin(w)
	before := w.gate.count(op.does)
	done := make(chan error, 1)
	var res anyResult
	go func() {
		reply, err := c.Call(t.Context(), op.proc, cred(t, root), args, &res)
		if err == nil {
			reply.Release()
		}
		done <- err
	}()
	<-executed
	if n := w.gate.count(op.does) - before; n != 1 {
		t.Errorf("executed %d times", n)
	}
	op.then(w)
	before = w.gate.count(op.does)
	meanwhile <- struct{}{}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	op.good(t, res.body)
	if n := w.gate.count(op.does) - before; n != 0 {
		t.Errorf("executed %d times more", n)
	}
	op.look(w)
	waitOnce(t, "the second try", func() bool {
		st := w.srv.Stats().Replies
		return st.Hits+st.Joined > 0
	})
}

// onceTimeout is short where nothing but time says that a reply was lost.
func onceTimeout(f rpcfault.Fault) time.Duration {
	if f.Kind == rpcfault.DropReply {
		return 50 * time.Millisecond
	}
	return onceWait
}

// TestOnceRaw sends the same bytes again on a new connection, after another client has
// undone the call.
func TestOnceRaw(t *testing.T) {
	forOnce(t, func(t *testing.T, w *onceWorld, op *onceOp) {
		msg := onceMessage(t, 7, op.proc, root, op.begin(w))
		first := dialStream(t, w.addr)
		first.send(msg)
		want := first.reply()
		op.good(t, body(t, 7, want))
		first.cut()
		op.then(w)
		before := w.gate.count(op.does)
		for range 2 {
			again := dialStream(t, w.addr)
			again.send(msg)
			if got := again.reply(); !bytes.Equal(got, want) {
				t.Errorf("the second reply is %x, the first was %x", got, want)
			}
		}
		if n := w.gate.count(op.does) - before; n != 0 {
			t.Errorf("executed %d times more", n)
		}
		op.look(w)
	})
}

// TestOnceUnderWay asks again, twice, while the first execution is under way;
// the connection that began it is lost.
func TestOnceUnderWay(t *testing.T) {
	forOnce(t, func(t *testing.T, w *onceWorld, op *onceOp) {
		msg := onceMessage(t, 7, op.proc, root, op.begin(w))
		before, joined := w.gate.count(op.does), w.srv.Stats().Replies.Joined
		w.gate.stop(op.does)
		first, second := dialStream(t, w.addr), dialStream(t, w.addr)
		first.send(msg)
		<-w.gate.inside
		first.send(msg)
		waitOnce(t, "the first's joining", func() bool { return w.srv.Stats().Replies.Joined == joined+1 })
		first.cut()
		second.send(msg)
		waitOnce(t, "the second's joining", func() bool { return w.srv.Stats().Replies.Joined == joined+2 })
		w.gate.free <- struct{}{}
		want := second.reply()
		op.good(t, body(t, 7, want))
		if n := w.gate.count(op.does) - before; n != 1 {
			t.Errorf("executed %d times", n)
		}
		op.then(w)
		second.send(msg)
		if got := second.reply(); !bytes.Equal(got, want) {
			t.Errorf("the second reply is %x, the first was %x", got, want)
		}
		op.look(w)
	})
}

// TestOnceOverRestart asks again after a planned restart, over which the replies
// were saved; locks are not, and clients take them again.
func TestOnceOverRestart(t *testing.T) {
	forOnce(t, func(t *testing.T, w *onceWorld, op *onceOp) {
		if op.does == "lock" || op.does == "unlock" {
			t.Skip("the server's end unlocks")
		}
		msg := onceMessage(t, 7, op.proc, root, op.begin(w))
		first := dialStream(t, w.addr)
		first.send(msg)
		want := first.reply()
		op.then(w)
		first.cut()
		if err := errors.Join(w.client.Close(), w.srv.Shutdown(t.Context())); err != nil {
			t.Error(err)
		}
		second := newOnceWorldAfter(t, w)
		before := w.gate.count(op.does)
		again := dialStream(t, second.addr)
		again.send(msg)
		if got := again.reply(); !bytes.Equal(got, want) {
			t.Errorf("the second reply is %x, the first was %x", got, want)
		}
		if n := w.gate.count(op.does) - before; n != 0 {
			t.Errorf("executed %d times more", n)
		}
		op.look(second)
	})
}

// newOnceWorldAfter starts another server of what w served, with what w
// remembers.
func newOnceWorldAfter(t *testing.T, w *onceWorld) *onceWorld {
	t.Helper()
	var file bytes.Buffer
	if err := w.replies.Save(&file); err != nil {
		t.Fatal(err)
	}
	replies := replycache.New(replycache.Options{})
	if err := replies.Load(&file); err != nil {
		t.Fatal(err)
	}
	second := *w
	second.rig = serve(t, w.fs, nfsserver.Options{Replies: replies, Locks: true})
	return &second
}

// TestOnceNumbers: under the same number, another user's call or one with other
// arguments is another call.
func TestOnceNumbers(t *testing.T) {
	forOnce(t, func(t *testing.T, w *onceWorld, op *onceOp) {
		args := op.begin(w)
		s := dialStream(t, w.addr)
		s.send(onceMessage(t, 7, op.proc, root, args))
		op.good(t, body(t, 7, s.reply()))
		op.then(w)
		before := w.srv.Stats().Replies
		s.send(onceMessage(t, 7, op.proc, alice, args))
		s.reply()
		msg := onceMessage(t, 7, op.proc, root, args)
		msg[len(msg)-1] ^= 1 // whatever that is
		s.send(msg)
		s.reply()
		if st := w.srv.Stats().Replies; st.Hits != before.Hits || st.Joined != before.Joined {
			t.Errorf("answered from memory: %+v, before %+v", st, before)
		}
	})
}
