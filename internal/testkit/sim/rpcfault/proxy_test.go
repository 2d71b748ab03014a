package rpcfault

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/xdr"
)

// echo is the program of these tests: its replies are its arguments.
var echo = xdr.Program{Name: "ECHO_V1", Number: 400777, Version: 1, Procs: []xdr.Proc{
	{Name: "ECHO_NULL", Program: 400777, Version: 1, Number: 0},
	{Name: "ECHO_ONE", Program: 400777, Version: 1, Number: 1},
	{Name: "ECHO_TWO", Program: 400777, Version: 1, Number: 2},
}}

func callRecord(xid, proc uint32, args []byte) []byte {
	var b []byte
	for _, w := range []uint32{xid, msgCall, rpcVersion, echo.Number, echo.Version, proc, 0, 0, 0, 0} {
		b = xdr.AppendUint32(b, w)
	}
	return append(b, args...)
}

func replyRecord(xid uint32, res []byte) []byte {
	var b []byte
	for _, w := range []uint32{xid, msgReply, replyAccepted, 0, 0, acceptSuccess} {
		b = xdr.AppendUint32(b, w)
	}
	return append(b, res...)
}

// server answers calls until its connections end, and remembers them.
type server struct {
	mu    sync.Mutex
	calls [][]byte
	tails int // connections that ended within a record
}

func (s *server) serve(c net.Conn) {
	for {
		rec, err := readRecord(c)
		s.mu.Lock()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			s.tails++
		}
		if err == nil {
			s.calls = append(s.calls, rec)
		}
		s.mu.Unlock()
		if err != nil {
			_ = c.Close()
			return
		}
		h, _ := parseHead(rec)
		if _, err := c.Write(appendRecord(nil, replyRecord(h.XID, rec[h.Body:]), 0, 0, -1)); err != nil {
			_ = c.Close()
			return
		}
	}
}

func (s *server) got() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// rig is a server, a proxy before it, and a client's connection.
type rig struct {
	t *testing.T
	s *server
	p *Proxy
	c net.Conn
}

// bubble runs a test in a bubble of time, with the proxy's network in memory.
func bubble(t *testing.T, rules []Rule, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := sim.NewNetwork(1)
		l, err := n.Listen(":7")
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, s: new(server)}
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				wg.Go(func() { r.s.serve(c) })
			}
		})
		r.p = New(Options{Seed: 7, Rules: rules, Upstream: func(ctx context.Context) (net.Conn, error) {
			return n.DialContext(ctx, "tcp", ":7")
		}})
		t.Cleanup(func() {
			if err := r.p.Close(); err != nil {
				t.Error(err)
			}
			if s := r.p.Stats(); s.Open != 0 || s.Waiting != 0 {
				t.Errorf("left behind: %+v", s)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
			if t.Failed() {
				t.Log(r.p)
			}
		})
		r.dial()
		test(r)
	})
}

func (r *rig) dial() {
	r.t.Helper()
	c, err := r.p.Dial(r.t.Context(), "tcp", "any")
	if err != nil {
		r.t.Fatal(err)
	}
	r.c = c
	r.t.Cleanup(func() { _ = c.Close() })
}

// call sends calls, one write each.
func (r *rig) call(xids ...uint32) {
	r.t.Helper()
	for _, x := range xids {
		if _, err := r.c.Write(appendRecord(nil, callRecord(x, 1, argsOf(x)), 0, 0, -1)); err != nil {
			r.t.Fatalf("call %d: %v", x, err)
		}
		synctest.Wait()
	}
}

// argsOf are the arguments of a test's call: 64 bytes, of that call alone.
func argsOf(x uint32) []byte { return bytes.Repeat(xdr.AppendUint32(nil, x), 16) }

// replies reads for a time, and returns the numbers of the replies that came;
// each must be what the server has sent.
func (r *rig) replies(d time.Duration) (xids []uint32, err error) {
	r.t.Helper()
	if err := r.c.SetReadDeadline(time.Now().Add(d)); err != nil {
		r.t.Fatal(err)
	}
	for {
		rec, err := readRecord(r.c)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return xids, nil
		}
		if err != nil {
			return xids, err
		}
		x := binary.BigEndian.Uint32(rec)
		if !bytes.Equal(rec, replyRecord(x, argsOf(x))) {
			r.t.Errorf("reply %d is not the server's: %x", x, rec)
		}
		xids = append(xids, x)
	}
}

func one(f Fault) []Rule { return []Rule{{Fault: f, Budget: 1}} }

// TestFaults looks at what arrives on both sides, and when.
func TestFaults(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name  string
		fault Fault
		calls []uint32 // at the server
		now   []uint32 // replies at once
		later []uint32 // replies after two seconds more
	}{
		{"drop call", Fault{Kind: DropCall}, []uint32{2, 3}, []uint32{2, 3}, nil},
		{"drop reply", Fault{Kind: DropReply}, []uint32{1, 2, 3}, []uint32{2, 3}, nil},
		{"hold", Fault{Kind: Hold}, nil, nil, nil},
		{"delay call", Fault{Kind: DelayCall, Wait: s}, []uint32{2, 3, 1}, []uint32{2, 3}, []uint32{1}},
		{"delay reply", Fault{Kind: DelayReply, Wait: s, Jitter: s / 2}, []uint32{1, 2, 3}, []uint32{2, 3}, []uint32{1}},
		{"duplicate call", Fault{Kind: DuplicateCall}, []uint32{1, 1, 2, 3}, []uint32{1, 1, 2, 3}, nil},
		{"duplicate reply", Fault{Kind: DuplicateReply, Count: 2}, []uint32{1, 2, 3}, []uint32{1, 1, 1, 2, 3}, nil},
		{"reorder", Fault{Kind: Reorder, Count: 2, Wait: time.Hour}, []uint32{1, 2, 3}, []uint32{2, 3, 1}, nil},
		{"reorder, too few", Fault{Kind: Reorder, Count: 3, Wait: s}, []uint32{1, 2, 3}, []uint32{2, 3}, []uint32{1}},
		{"fragment", Fault{Kind: Fragment, Count: 7}, []uint32{1, 2, 3}, []uint32{1, 2, 3}, nil},
		{"fragment, and empty ones", Fault{Kind: Fragment, Count: 7, Empty: 20}, []uint32{1, 2, 3}, []uint32{1, 2, 3}, nil},
		{"fragment the call", Fault{Kind: FragmentCall, Count: 1, Empty: 2}, []uint32{1, 2, 3}, []uint32{1, 2, 3}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, one(tc.fault), func(r *rig) {
				r.call(1, 2, 3)
				now, err := r.replies(s / 2)
				if err != nil || !slices.Equal(now, tc.now) {
					t.Errorf("at once: %v, %v, want %v", now, err, tc.now)
				}
				later, err := r.replies(2 * s)
				if err != nil || !slices.Equal(later, tc.later) {
					t.Errorf("later: %v, %v, want %v", later, err, tc.later)
				}
				var calls []uint32
				for _, rec := range r.s.got() {
					calls = append(calls, binary.BigEndian.Uint32(rec))
				}
				if !slices.Equal(calls, tc.calls) {
					t.Errorf("the server got %v, want %v", calls, tc.calls)
				}
				if n := r.p.Stats().Injected[tc.fault.Kind]; n != 1 {
					t.Errorf("%d counted", n)
				}
			})
		})
	}
}

// TestCuts ends connections, and looks at how far each side got.
func TestCuts(t *testing.T) {
	whole := len(appendRecord(nil, replyRecord(1, argsOf(1)), 0, 0, -1))
	for _, tc := range []struct {
		name  string
		fault Fault
		calls int // whole ones at the server
		tails int // cut ones
		bytes int // at the client; -1: any number below that of a reply
	}{
		{"before", Fault{Kind: CutBefore}, 0, 0, 0},
		{"before, reset", Fault{Kind: CutBefore, Reset: true}, 0, 0, 0},
		{"in the call", Fault{Kind: CutInCall, At: 50}, 0, 1, 0},
		{"in the call's mark", Fault{Kind: CutInCall, At: 3}, 0, 1, 0},
		{"behind the call", Fault{Kind: CutInCall, At: 1 << 20}, 1, 0, 0},
		{"before the reply", Fault{Kind: CutInReply}, 1, 0, 0},
		{"in the reply", Fault{Kind: CutInReply, At: 30}, 1, 0, 30},
		{"behind the reply", Fault{Kind: CutInReply, At: 1 << 20}, 1, 0, whole},
		{"anywhere in the reply", Fault{Kind: CutInReply, At: Anywhere}, 1, 0, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, one(tc.fault), func(r *rig) {
				r.call(1)
				b, err := io.ReadAll(r.c)
				if tc.fault.Reset != errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("the connection ended with %v", err)
				}
				if len(b) != tc.bytes && (tc.bytes >= 0 || len(b) >= whole) {
					t.Errorf("%d bytes, want %d", len(b), tc.bytes)
				}
				synctest.Wait()
				if n := len(r.s.got()); n != tc.calls || r.s.tails != tc.tails {
					t.Errorf("the server got %d calls and %d cut ones, want %d and %d", n, r.s.tails, tc.calls, tc.tails)
				}
				r.dial() // the fault's budget is used up
				r.call(2)
				if got, err := r.replies(time.Second); err != nil || !slices.Equal(got, []uint32{2}) {
					t.Errorf("on a new connection: %v, %v", got, err)
				}
			})
		})
	}
}

// TestRefuse refuses connections, for a time.
func TestRefuse(t *testing.T) {
	bubble(t, one(Fault{Kind: Refuse, Wait: time.Minute}), func(r *rig) {
		r.call(1)
		if b, err := io.ReadAll(r.c); len(b) > 0 || err != nil {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		if _, err := r.p.Dial(t.Context(), "tcp", "any"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
		time.Sleep(time.Minute)
		r.dial()
		r.call(2)
		if got, err := r.replies(time.Second); err != nil || !slices.Equal(got, []uint32{2}) {
			t.Errorf("later: %v, %v", got, err)
		}
		if s := r.p.Stats(); s.Refused != 1 || s.Conns != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// TestEdits are about what a lie looks like on the wire.
func TestEdits(t *testing.T) {
	honest := appendRecord(nil, replyRecord(1, argsOf(1)), 0, 0, -1)
	differ := func(b []byte) (bits, first int) {
		first = -1
		for i := range min(len(b), len(honest)) {
			if x := b[i] ^ honest[i]; x != 0 {
				if first < 0 {
					first = i
				}
				for ; x != 0; x &= x - 1 {
					bits++
				}
			}
		}
		return bits, first
	}
	mark := func(b []byte) int { return int(binary.BigEndian.Uint32(b) &^ lastFragment) }
	const head = markBytes + 24
	for _, tc := range []struct {
		name string
		edit Edit
		good func(b []byte) bool
	}{
		{"number", WrongXID, func(b []byte) bool {
			return !bytes.Equal(b[4:8], honest[4:8]) && bytes.Equal(b[8:], honest[8:])
		}},
		{"head", FlipHead, func(b []byte) bool { n, at := differ(b); return n == 1 && at >= 4 && at < head }},
		{"body", FlipBody, func(b []byte) bool { n, at := differ(b); return n == 1 && at >= head }},
		{"any", FlipAny, func(b []byte) bool { n, at := differ(b); return n == 1 && at >= 4 }},
		{"truncated", Truncate(8), func(b []byte) bool { return len(b) == head+8 && mark(b) == len(b)-4 }},
		{"truncated anywhere", Truncate(-1), func(b []byte) bool { return len(b) < len(honest) && mark(b) == len(b)-4 }},
		{"extended", Extend(40), func(b []byte) bool { return len(b) == len(honest)+40 && mark(b) == len(b)-4 }},
		{"overstated", Overstate(1000), func(b []byte) bool {
			return bytes.Equal(b[4:], honest[4:]) && mark(b) == len(b)-4+1000
		}},
		{"understated", Overstate(-1), func(b []byte) bool { return bytes.Equal(b[4:], honest[4:]) && mark(b) == len(b)-5 }},
		{"word", SetWord(12, 0xdeadbeef), func(b []byte) bool {
			return binary.BigEndian.Uint32(b[head+12:]) == 0xdeadbeef && len(b) == len(honest)
		}},
		{"word that is not there", SetWord(62, 1), func(b []byte) bool { return bytes.Equal(b, honest) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, one(Fault{Kind: EditReply, Edit: tc.edit}), func(r *rig) {
				r.call(1)
				synctest.Wait()
				b := make([]byte, 4096)
				n, err := r.c.Read(b)
				if err != nil || !tc.good(b[:n]) {
					t.Errorf("%v: %x", err, b[:n])
				}
			})
		})
	}
	t.Run("call", func(t *testing.T) {
		bubble(t, one(Fault{Kind: EditCall, Edit: SetWord(0, 99)}), func(r *rig) {
			r.call(1)
			if got := r.s.got(); len(got) != 1 || binary.BigEndian.Uint32(got[0][40:]) != 99 {
				t.Errorf("the server got %x", got)
			}
		})
	})
}

// TestRules are about which calls are hit.
func TestRules(t *testing.T) {
	hits := func(t *testing.T, calls int, rule Rule) (xids []uint32) {
		bubble(t, []Rule{rule}, func(r *rig) {
			for x := range uint32(calls) {
				r.call(x)
			}
			got, err := r.replies(time.Second)
			if err != nil {
				t.Fatal(err)
			}
			for x := range uint32(calls) {
				if !slices.Contains(got, x) {
					xids = append(xids, x)
				}
			}
		})
		return xids
	}
	drop := Fault{Kind: DropReply}
	for _, tc := range []struct {
		name string
		rule Rule
		want []uint32
	}{
		{"all", Rule{Fault: drop}, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"every third", Rule{Every: 3, Fault: drop}, []uint32{2, 5, 8}},
		{"skip", Rule{Skip: 7, Fault: drop}, []uint32{7, 8, 9}},
		{"skip and every", Rule{Skip: 4, Every: 2, Fault: drop}, []uint32{5, 7, 9}},
		{"budget", Rule{Every: 2, Budget: 2, Fault: drop}, []uint32{1, 3}},
		{"this procedure", Rule{Procs: []*xdr.Proc{&echo.Procs[1]}, Budget: 1, Fault: drop}, []uint32{0}},
		{"another procedure", Rule{Procs: []*xdr.Proc{&echo.Procs[0], &echo.Procs[2]}, Fault: drop}, nil},
		{"if", Rule{If: func(m *Message) bool { return m.XID == 6 }, Fault: drop}, []uint32{6}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := hits(t, 10, tc.rule); !slices.Equal(got, tc.want) {
				t.Errorf("hit %v, want %v", got, tc.want)
			}
		})
	}
	t.Run("probability", func(t *testing.T) {
		rule := Rule{Probability: 0.3, Fault: drop}
		first := hits(t, 200, rule)
		if n := len(first); n < 30 || n > 90 {
			t.Errorf("%d of 200 with a probability of 0.3", n)
		}
		if again := hits(t, 200, rule); !slices.Equal(first, again) {
			t.Errorf("the same seed hit %v, and then %v", first, again)
		}
	})
}

// TestTCP goes the way that a plain socket goes, and holds together faults,
// half-closed connections and a proxy that is closed amid all of it.
func TestTCP(t *testing.T) {
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := new(server)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := upstream.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(c) })
		}
	})
	var d net.Dialer
	p := New(Options{Seed: 1, Rules: []Rule{{Skip: 1, Every: 4, Fault: Fault{Kind: DuplicateReply}}, {Skip: 8, Fault: Fault{Kind: Hold}}},
		Upstream: func(ctx context.Context) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", upstream.Addr().String())
		}})
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(front) }()
	c, err := d.DialContext(t.Context(), "tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for x := range uint32(8) {
		if _, err := c.Write(appendRecord(nil, callRecord(x, 1, argsOf(x)), 0, 0, -1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []uint32{0, 1, 2, 3, 4, 4, 5, 6, 7} {
		rec, err := readRecord(c)
		if err != nil || binary.BigEndian.Uint32(rec) != want {
			t.Fatalf("reply %d: %x, %v", want, rec, err)
		}
	}
	// The last call is held, and the end of the stream passed on.
	if _, err := c.Write(appendRecord(nil, callRecord(8, 1, nil), 0, 0, -1)); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rec, err := readRecord(c); !errors.Is(err, io.EOF) {
		t.Errorf("held: %x, %v", rec, err)
	}
	if n := len(s.got()); n != 8 {
		t.Errorf("the server got %d calls", n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	if _, err := p.Dial(t.Context(), "tcp", ""); !errors.Is(err, ErrClosed) {
		t.Errorf("Dial: %v", err)
	}
	if st := p.Stats(); st.Open != 0 || st.Conns != 1 || st.Calls != 9 || st.Replies != 8 {
		t.Errorf("%+v", st)
	}
	if err := upstream.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// TestUnreachable closes what cannot be passed on.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Upstream: func(context.Context) (net.Conn, error) { return nil, syscall.ECONNREFUSED }})
		c, err := p.Dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("%x, %v", b, err)
		}
		_ = c.Close()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if s := p.Stats(); s.Unreachable != 1 || s.Open != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestCloseWithMessagesWaiting leaves nothing behind, however much waits.
func TestCloseWithMessagesWaiting(t *testing.T) {
	bubble(t, []Rule{{Fault: Fault{Kind: DelayReply, Wait: time.Hour}}}, func(r *rig) {
		for x := range uint32(maxLate + 10) {
			r.call(x)
		}
		if s := r.p.Stats(); s.Waiting != maxLate {
			t.Errorf("%d wait, at most %d may", s.Waiting, maxLate)
		}
		if got, err := r.replies(time.Second); len(got) != 10 || err != nil {
			t.Errorf("%d came without waiting, %v", len(got), err)
		}
	})
}

// TestPassesOnWhatItDoesNotKnow: messages without a head, and replies to nobody.
func TestPassesOnWhatItDoesNotKnow(t *testing.T) {
	bubble(t, []Rule{{Fault: Fault{Kind: CutBefore}}}, func(r *rig) {
		if _, err := r.c.Write(appendRecord(nil, []byte("no RPC at all"), 0, 0, -1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := r.s.got(); len(got) != 1 || string(got[0]) != "no RPC at all" {
			t.Errorf("the server got %q", got)
		}
		if s := r.p.Stats(); s.Unparsed == 0 || s.Calls != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestCut cuts what there is, and nothing that comes later.
func TestCut(t *testing.T) {
	bubble(t, []Rule{{Budget: 1, Fault: Fault{Kind: DelayReply, Wait: time.Hour}}}, func(r *rig) {
		r.call(1)
		r.p.Cut()
		if _, err := io.ReadAll(r.c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v", err)
		}
		r.dial()
		r.call(2)
		if got, err := r.replies(time.Second); err != nil || !slices.Equal(got, []uint32{2}) {
			t.Errorf("later: %v, %v", got, err)
		}
	})
}

// TestSetRules: new rules hold for calls that come from then on.
func TestSetRules(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.call(1)
		r.p.SetRules(Rule{Every: 2, Fault: Fault{Kind: DropCall}})
		r.call(2, 3, 4, 5)
		r.p.SetRules()
		r.call(6, 7)
		if got, err := r.replies(time.Second); err != nil || !slices.Equal(got, []uint32{1, 2, 4, 6, 7}) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// TestMalformed ends a connection that does not keep to record marking.
func TestMalformed(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		if _, err := r.c.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r.c); len(b) > 0 {
			t.Errorf("%x, %v", b, err)
		}
		if s := r.p.Stats(); s.Malformed != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestKindNames(t *testing.T) {
	seen := make(map[string]bool)
	for k := range kinds {
		if seen[k.String()] || k.String() == "" {
			t.Errorf("%d: %q", k, k)
		}
		seen[k.String()] = true
	}
	if got := fmt.Sprint(kinds); got != fmt.Sprintf("fault %d", uint8(kinds)) {
		t.Error(got)
	}
}
