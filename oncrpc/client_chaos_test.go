package oncrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

// chaos is a server of ECHO and READ that delays replies, duplicates them, sends
// them in another order, and hangs up after so many calls.
type chaos struct {
	t     *testing.T
	every int64
	calls atomic.Int64
	cuts  atomic.Int64
	wg    sync.WaitGroup
}

func (x *chaos) serve(l net.Listener) {
	for n := uint64(0); ; n++ {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		x.wg.Go(func() { x.conn(nc, rand.New(rand.NewPCG(7, n))) })
	}
}

// conn answers on one connection. It holds replies back for up to eight calls, and sends
// them when the calls pause.
func (x *chaos) conn(nc net.Conn, rnd *rand.Rand) {
	defer func() { _ = nc.Close() }() // that is the point
	r := rawConn{t: x.t, nc: nc, r: recordReader{src: nc, buf: make([]byte, 4096), ahead: 4096, max: 1 << 20}}
	var held [][]byte
	for {
		if !x.comes(&r) {
			rnd.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
			if !writeAll(nc, held) {
				return
			}
			held = nil
		}
		rec, err := r.receive()
		if err != nil {
			return
		}
		held = append(held, record(answerTo(rec)))
		if rnd.IntN(20) == 0 {
			held = append(held, held[len(held)-1])
		}
		if x.calls.Add(1)%x.every == 0 {
			x.cuts.Add(1)
			if len(held) > 1 { // one of them not whole
				last := held[len(held)-1]
				held[len(held)-1] = last[:rnd.IntN(len(last))]
			}
			writeAll(nc, held)
			return
		}
		if len(held) > 8 {
			i := rnd.IntN(len(held))
			if !writeAll(nc, held[i:i+1]) {
				return
			}
			held = append(held[:i], held[i+1:]...)
		}
	}
}

// comes waits a little for the next call to begin. An error is left to the next read.
func (x *chaos) comes(r *rawConn) bool {
	if err := r.nc.SetReadDeadline(time.Now().Add(2 * time.Millisecond)); err != nil {
		return true
	}
	err := r.r.fill(1)
	_ = r.nc.SetReadDeadline(time.Time{}) // on a closed connection the next read says so
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

func writeAll(w io.Writer, all [][]byte) bool {
	for _, p := range all {
		if _, err := w.Write(p); err != nil {
			return false
		}
	}
	return true
}

// answerTo is the right reply to a call.
func answerTo(rec []byte) []byte {
	d := xdr.NewDecoder(rec)
	var h callHead
	if err := h.decode(&d); err != nil {
		return nil
	}
	if h.proc == procEcho {
		return accepted(h.xid, d.Rest())
	}
	seed, n := d.Uint32(), d.Uint32()
	data := make([]byte, n)
	pattern(data, seed)
	return accepted(h.xid, join(words(0, 0, n), data, make([]byte, xdr.Pad(int(n))), words(seed)))
}

// TestChaos: whatever happens to connections and replies, 64 callers get the
// results of their own calls.
func TestChaos(t *testing.T) {
	for _, conns := range []int{1, 4} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			noLeaks(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			x := &chaos{t: t, every: 777}
			x.wg.Go(func() { x.serve(l) })
			c := NewClient(ClientOptions{Dial: dialTo(l.Addr().String()), FirstXID: 0xfffffe00, Conns: conns, Retries: 8, Timeout: 5 * time.Second})
			var wg sync.WaitGroup
			for g := range 64 {
				wg.Go(func() { callChaos(t, c, uint32(g)) })
			}
			wg.Wait()
			st := c.Stats()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			x.wg.Wait()
			if end := c.Stats(); end.Buffers != 0 || end.InFlight != 0 || end.Conns != 0 {
				t.Errorf("left behind: %+v", end)
			}
			if x.cuts.Load() < 10 || st.Retransmits == 0 || st.Late == 0 || st.Stray != 0 || st.Dials < uint64(x.cuts.Load()) {
				t.Errorf("%d cuts; %+v", x.cuts.Load(), st)
			}
		})
	}
}

func callChaos(t *testing.T, c *Client, g uint32) {
	buf, want := make([]byte, 8<<10), make([]byte, 8<<10)
	for i := range uint32(150) {
		if i%3 > 0 {
			if err := callEcho(t.Context(), c, procEcho, fmt.Sprint("caller ", g, " call ", i)); err != nil {
				t.Errorf("caller %d: %v", g, err)
				return
			}
			continue
		}
		seed, n := g*1000+i, 1+(g*7919+i*31)%uint32(len(buf))
		res := readRes{Data: buf}
		r, err := c.Call(t.Context(), readProc, Auth{}, &readArgs{Seed: seed, Count: n}, &res)
		if err != nil {
			t.Errorf("caller %d: %v", g, err)
			return
		}
		pattern(want[:n], seed)
		if !bytes.Equal(res.Data, want[:n]) || res.Tail != seed {
			t.Errorf("caller %d has read another's data", g)
		}
		r.Release()
	}
}
