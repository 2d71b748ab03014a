package v3suite

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

var rpcTests = []test{
	{name: "program-unknown", run: func(e *env) {
		e.refusedCall(&xdr.Proc{Name: "NULL", Program: 0x20001234, Version: 3}, oncrpc.ProgUnavail)
	}},
	{name: "version-unknown", run: func(e *env) {
		low, high := e.refusedCall(&xdr.Proc{Name: "NULL", Program: nfs3.NFS_PROGRAM, Version: 77}, oncrpc.ProgMismatch)
		if low > 3 || high < 3 {
			e.Errorf("versions %d to %d, without 3", low, high)
		}
	}},
	{name: "procedure-unknown", run: func(e *env) {
		e.refusedCall(&xdr.Proc{Name: "22", Program: nfs3.NFS_PROGRAM, Version: 3, Number: 22}, oncrpc.ProcUnavail)
	}},
	{name: "rpc-version-unknown", run: func(e *env) {
		const xid = 0x12345678
		// A call of RPC version 3: denied, RPC_MISMATCH, versions 2 to 2.
		got := e.exchange(record(words(xid, 0, 3, nfs3.NFS_PROGRAM, 3, 0, 0, 0, 0, 0)), 6)
		if want := words(xid, 1, 1, 0, 2, 2); string(got) != string(want) {
			e.Errorf("the answer is %x, want %x", got, want)
		}
	}},
	{name: "fragments", run: func(e *env) {
		const xid = 0x12345679
		call := words(xid, 0, 2, nfs3.NFS_PROGRAM, 3, 0, 0, 0, 0, 0)
		var wire literal
		for i := range call {
			head := uint32(1)
			if i == len(call)-1 {
				head |= 1 << 31
			}
			wire = append(append(wire, words(head)...), call[i])
		}
		if got, want := e.exchange(wire, 6), words(xid, 1, 0, 0, 0, 0); string(got) != string(want) {
			e.Errorf("the answer to a call in fragments of a byte is %x, want %x", got, want)
		}
	}},
	{name: "two-calls-in-one-segment", run: func(e *env) {
		var wire literal
		for _, xid := range []uint32{0x12345680, 0x12345681} {
			wire = append(wire, record(words(xid, 0, 2, nfs3.NFS_PROGRAM, 3, 0, 0, 0, 0, 0))...)
		}
		got := e.exchange(wire, 6+1+6) // with the mark between them
		if a, b := binary.BigEndian.Uint32(got), binary.BigEndian.Uint32(got[7*4:]); a^b != 1 {
			e.Errorf("the answers are %x", got)
		}
	}},
}

// refusedCall makes a call of something that is not there, and returns between
// which versions there is something.
func (e *env) refusedCall(p *xdr.Proc, want oncrpc.AcceptStat) (low, high uint32) {
	_, answer := e.raw(p, nothing{}, nothing{})
	var refusal *oncrpc.AcceptError
	if !errors.As(answer, &refusal) || refusal.Stat != want {
		e.Fatalf("%v, want %v", answer, want)
	}
	return refusal.Low, refusal.High
}

func record(message literal) literal {
	return append(words(1<<31|uint32(len(message))), message...)
}

// exchange sends bytes on a connection of their own, and returns what comes back
// behind the first record mark: so many words.
func (e *env) exchange(wire literal, n int) []byte {
	c, err := e.target.Dial(e.ctx)
	if err != nil {
		e.Fatalf("dial: %v", err)
	}
	defer func() {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			e.Errorf("close: %v", err)
		}
	}()
	if deadline, ok := e.ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			e.Fatalf("%v", err)
		}
	}
	if _, err := c.Write(wire); err != nil {
		e.Fatalf("write: %v", err)
	}
	got := make([]byte, 4+4*n)
	if _, err := io.ReadFull(c, got); err != nil {
		e.Fatalf("read: %v", err)
	}
	return got[4:]
}

// garbageTests send arguments that are none, to every procedure.
func garbageTests() []test {
	var all []test
	for i := range nfs3.NFS_V3.Procs {
		p := &nfs3.NFS_V3.Procs[i]
		if p.Number == 0 {
			continue
		}
		all = append(all, test{name: procName(p), run: func(e *env) {
			for what, args := range map[string]literal{
				"no arguments":            nil,
				"a handle cut short":      words(32, 1, 2, 3),
				"a handle of 65 bytes":    append(words(65), make(literal, 68+200)...),
				"a length beyond all":     words(1<<32-1, 0, 0, 0, 0, 0, 0, 0),
				"a handle, cut elsewhere": cutArgs(e, p),
			} {
				p := *p
				p.BulkArgs, p.BulkResult = false, false
				if accepted, answer := e.raw(&p, args, nothing{}); accepted || !garbage(answer) {
					e.Errorf("%s: %v, want GARBAGE_ARGS", what, answer)
				}
			}
		}})
	}
	return all
}

// cutArgs are a handle and half of what follows; where nothing follows, half a
// handle.
func cutArgs(e *env, p *xdr.Proc) literal {
	h := wireHandle(e.dir)
	switch p.Number {
	case 1, 5, 18, 19, 20:
		return h[:len(h)-4]
	}
	return append(h, 0, 0)
}
