package oncrpc

import (
	"bytes"
	"testing"

	"github.com/nfsbox/nfsbox/xdr"
)

// TestRepliesTogether sends replies in one piece, in another order, with bulk, a
// stray one, one in fragments and one of an odd kind among them, and the last one
// cut. Each call gets its own; a result stays as it is until its own reply is
// released, whatever becomes of its neighbours.
func TestRepliesTogether(t *testing.T) {
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial, FirstXID: 1 << 20})
	xs, res := echoes(8, "text")
	bulk := readRes{Data: make([]byte, 3000)}
	xs = append(xs, Exchange{Proc: readProc, Args: &readArgs{}, Res: &bulk})
	done := begin(func() error { c.CallMany(t.Context(), xs); return nil })
	r := s.accept()
	replies := make([][]byte, len(xs))
	var first uint32
	for i := range xs {
		xid, number, args := r.call()
		if number == procRead {
			args = join(words(0, 0, 3000), bytes.Repeat([]byte{7}, 3000), words(9))
		}
		replies[i] = record(accepted(xid, args))
		if i == 0 {
			first = xid
		}
	}
	replies[5] = record(pieces(replies[5][markBytes:], 9)...)
	stray := record(accepted(first-1000, words(1, 2, 3)))
	all := join(replies[2], replies[0], stray, replies[1], replies[8], replies[4], replies[3], replies[5], replies[7], replies[6])
	r.send(all[:len(all)-10])
	waitFor(t, "the replies", func() bool { return c.Stats().Replies == uint64(len(xs)-1) })
	r.send(all[len(all)-10:])
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	if xs[8].Err != nil || bulk.Tail != 9 || !bytes.Equal(bulk.Data, bytes.Repeat([]byte{7}, 3000)) {
		t.Errorf("bulk: %v, %+v", xs[8].Err, bulk)
	}
	xs[8].Reply.Release()
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
		done := begin(func() error { c.CallMany(t.Context(), xs); return nil })
		r := s.accept()
		var replies [3][]byte
		for i := range replies {
			xid, _, args := r.call()
			replies[i] = record(accepted(xid, args))
		}
		r.send(join(replies[0], replies[1], nonsense, replies[2]))
		if err := await(t, done); err != nil {
			t.Fatal(err)
		}
		checkEchoes(t, xs[:2], res)
		if xs[2].Err == nil {
			t.Errorf("after %x a reply was taken", nonsense)
		}
	}
}

// TestCallManyAllocs: a call among many costs no memory.
func TestCallManyAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	_, _, c := pair(t, ServerOptions{}, ClientOptions{})
	xs := make([]Exchange, 64)
	for i := range xs {
		xs[i] = Exchange{Proc: proc(procNull), Args: xdr.Void{}, Res: xdr.Void{}}
	}
	n := testing.AllocsPerRun(200, func() {
		c.CallMany(t.Context(), xs)
		for i := range xs {
			if xs[i].Err != nil {
				t.Fatal(xs[i].Err)
			}
			xs[i].Reply.Release()
		}
	})
	if n > 1 {
		t.Errorf("%v allocations for %d calls", n, len(xs))
	}
}
