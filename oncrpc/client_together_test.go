package oncrpc

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/nfsbox/nfsbox/xdr"
)

// madeCall is a call that a test makes, and its outcome.
type madeCall struct {
	proc *xdr.Proc
	args xdr.Appender
	res  xdr.Unmarshaler

	reply Reply
	err   error
	done  chan error
}

// echoes are calls of ECHO, and where their results go.
func echoes(n int, text string) ([]*madeCall, []opaque) {
	fs, res := make([]*madeCall, n), make([]opaque, n)
	for i := range fs {
		fs[i] = &madeCall{proc: proc(procEcho), args: &opaque{b: fmt.Appendf(nil, "%s %d", text, i)}, res: &res[i]}
	}
	return fs, res
}

// makeCalls makes the calls; each has arrived at the server before the next is made.
func makeCalls(t *testing.T, s *script, c *Client, fs []*madeCall, arrived func(i int, xid, number uint32, args []byte)) (r *rawConn) {
	t.Helper()
	for i, f := range fs {
		f.done = begin(func() (err error) {
			f.reply, err = c.Call(t.Context(), f.proc, Auth{}, f.args, f.res)
			return err
		})
		if r == nil {
			r = s.accept()
		}
		xid, number, args := r.call()
		arrived(i, xid, number, args)
	}
	return r
}

// awaitCalls waits until all calls have returned.
func awaitCalls(t *testing.T, fs []*madeCall) {
	t.Helper()
	for _, f := range fs {
		f.err = await(t, f.done)
	}
}

// checkEchoes compares each result with what was sent, and releases the reply.
func checkEchoes(t *testing.T, fs []*madeCall, res []opaque) {
	t.Helper()
	for i, f := range fs {
		if want := f.args.(*opaque).b; f.err != nil || !bytes.Equal(res[i].b, want) {
			t.Errorf("%q, %v; want %q", res[i].b, f.err, want)
		}
		f.reply.Release()
	}
}

// TestRepliesTogether sends replies in one piece and in another order. Among them are one
// with bulk, one to no call and one in fragments; the last one is cut. Each call gets its
// own. A result stays as it is until its own reply is released, whatever happens to others.
func TestRepliesTogether(t *testing.T) {
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial, FirstXID: 1 << 20})
	xs, res := echoes(8, "text")
	bulk := readRes{Data: make([]byte, 3000)}
	xs = append(xs, &madeCall{proc: readProc, args: &readArgs{}, res: &bulk})
	replies := make([][]byte, len(xs))
	var first uint32
	r := makeCalls(t, s, c, xs, func(i int, xid, number uint32, args []byte) {
		if number == procRead {
			args = join(words(0, 0, 3000), bytes.Repeat([]byte{7}, 3000), words(9))
		}
		replies[i] = record(accepted(xid, args))
		if i == 0 {
			first = xid
		}
	})
	replies[5] = record(pieces(replies[5][markBytes:], 9)...)
	stray := record(accepted(first-1000, words(1, 2, 3)))
	all := join(replies[2], replies[0], stray, replies[1], replies[8], replies[4], replies[3], replies[5], replies[7], replies[6])
	r.send(all[:len(all)-10])
	waitFor(t, "the replies", func() bool { return c.Stats().Replies == uint64(len(xs)-1) })
	r.send(all[len(all)-10:])
	awaitCalls(t, xs)
	if xs[8].err != nil || bulk.Tail != 9 || !bytes.Equal(bulk.Data, bytes.Repeat([]byte{7}, 3000)) {
		t.Errorf("bulk: %v, %+v", xs[8].err, bulk)
	}
	xs[8].reply.Release()
	const kept = 4
	for i := range xs[:8] {
		if i != kept {
			checkEchoes(t, xs[i:i+1], res[i:i+1])
		}
	}
	for range 8 { // what was given back is used again
		done := begin(func() error { return callEcho(t.Context(), c, procEcho, "and over it") })
		xid, _, args := r.call()
		r.send(record(accepted(xid, args)))
		if err := await(t, done); err != nil {
			t.Fatal(err)
		}
	}
	checkEchoes(t, xs[kept:kept+1], res[kept:kept+1])
	if st := c.Stats(); st.Stray != 1 || st.Late != 0 || st.Buffers != 1 {
		t.Errorf("%+v", st)
	}
}

// TestNonsenseTogether puts a record that is no reply between two that are: the
// connection ends there, and the call before it keeps its answer.
func TestNonsenseTogether(t *testing.T) {
	for _, nonsense := range [][]byte{record(nil), record([]byte{1, 2, 3}), record(message(1, procNull, nil))} {
		s := newScript(t)
		c := newClient(t, ClientOptions{Dial: s.dial, Retries: -1})
		xs, res := echoes(3, "text")
		var replies [3][]byte
		r := makeCalls(t, s, c, xs, func(i int, xid, _ uint32, args []byte) { replies[i] = record(accepted(xid, args)) })
		r.send(join(replies[0], replies[1], nonsense, replies[2]))
		awaitCalls(t, xs)
		checkEchoes(t, xs[:2], res)
		if xs[2].err == nil {
			t.Errorf("after %x a reply was taken", nonsense)
		}
	}
}
