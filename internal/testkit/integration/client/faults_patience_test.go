package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// These tests have a patience of 15 s and the default number of retries, which is no
// number of lost connections.
const (
	shortPatience = "timeo=50"
	shortBound    = 15 * time.Second
)

// ordeal is what befalls the first tries of every call, or all of them.
type ordeal struct {
	name  string
	tries int // of each call that it befalls; 0: all
	fault rpcfault.Fault
}

var ordeals = []ordeal{
	{"cut before the call", 6, rpcfault.Fault{Kind: rpcfault.CutBefore}},
	{"reset before the call", 6, rpcfault.Fault{Kind: rpcfault.CutBefore, Reset: true}},
	{"cut in the call", 6, rpcfault.Fault{Kind: rpcfault.CutInCall, At: rpcfault.Anywhere}},
	{"cut before the reply", 6, rpcfault.Fault{Kind: rpcfault.CutInReply}},
	{"cut in the mark", 6, rpcfault.Fault{Kind: rpcfault.CutInReply, At: 3}},
	{"cut in the reply", 6, rpcfault.Fault{Kind: rpcfault.CutInReply, At: rpcfault.Anywhere}},
	{"cut after the reply", 6, rpcfault.Fault{Kind: rpcfault.CutInReply, At: 1 << 30}},
	{"reset after the reply", 6, rpcfault.Fault{Kind: rpcfault.CutInReply, At: 1 << 30, Reset: true}},
	{"lost call", 1, rpcfault.Fault{Kind: rpcfault.DropCall}},
	{"lost reply", 1, rpcfault.Fault{Kind: rpcfault.DropReply}},
	{"held", 1, rpcfault.Fault{Kind: rpcfault.Hold}},
	{"wrong number", 1, rpcfault.Fault{Kind: rpcfault.EditReply, Edit: rpcfault.WrongXID}},
	{"length of 1 GiB", 1, rpcfault.Fault{Kind: rpcfault.EditReply, Edit: rpcfault.Overstate(1 << 30)}},
	{"doubled", 0, rpcfault.Fault{Kind: rpcfault.DuplicateReply}},
	{"doubled call", 0, rpcfault.Fault{Kind: rpcfault.DuplicateCall}},
	{"fragments of 50", 0, rpcfault.Fault{Kind: rpcfault.Fragment, Count: 50}},
	{"fragments of a byte", 0, rpcfault.Fault{Kind: rpcfault.Fragment, Count: 1}},
	{"fragments and empty ones", 0, rpcfault.Fault{Kind: rpcfault.Fragment, Count: 5000, Empty: 200}},
	{"calls in fragments of 50", 0, rpcfault.Fault{Kind: rpcfault.FragmentCall, Count: 50}},
	{"calls in fragments, and empty ones", 0, rpcfault.Fault{Kind: rpcfault.FragmentCall, Count: 5000, Empty: 200}},
	{"refused for 2 s", 1, rpcfault.Fault{Kind: rpcfault.Refuse, Wait: 2 * time.Second}},
}

// rule has it befall calls of some procedures; none: of all but FSSTAT.
func (o *ordeal) rule(procs ...*xdr.Proc) rpcfault.Rule {
	tries := make(map[uint32]int) // of each number; the proxy's lock guards it
	return rpcfault.Rule{Procs: procs, Fault: o.fault, If: func(m *rpcfault.Message) bool {
		if m.Proc == nfs3.NFSPROC3_FSSTAT.Number {
			return false
		}
		tries[m.XID]++
		return o.tries == 0 || tries[m.XID] <= o.tries
	}}
}

// bystand makes other calls all the time, which are answered: so the client sees that the
// server is there. With must every one has to be answered. end ends the calls.
func bystand(f *faulty, must bool) (end func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := f.fs.Info(ctx, f.root, vfs.InfoSpace); err != nil && ctx.Err() == nil && must {
				f.t.Errorf("the bystander: %v", err)
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// TestOrdeals has every call but a bystander's suffer, each of its first tries:
// everything is done, and every byte is right.
func TestOrdeals(t *testing.T) {
	need.Time(t, "faults of every kind that end")
	for _, o := range ordeals {
		if o.fault.Kind == rpcfault.Hold {
			continue // with the first try of one call it takes later ones of others
		}
		t.Run(o.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at := memfs.New(memfs.Options{Mode: 0o777})
				f := inMemory(t, at, seeds(t, 1)[0], shortPatience)
				f.p.SetRules(o.rule())
				defer bystand(f, true)()
				if err := labour(t.Context(), f); err != nil {
					t.Error(err)
				}
				if n := f.p.Stats().Injected[o.fault.Kind]; n < 10 {
					t.Errorf("%d faults", n)
				}
			})
		})
	}
}

// labour makes a file, writes and reads it, lists its directory and removes it.
func labour(ctx context.Context, f *faulty) error {
	const size = 1<<20 + 123
	data := pattern(1, 1, 0, size)
	if _, err := mkfile(ctx, f.fs, f.root, "a", data); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if _, _, err := f.fs.Rename(ctx, f.root, "a", f.root, "b"); err != nil {
		return fmt.Errorf("rename: %w", err)
	}
	if !bytes.Equal(get(f.t, f.at, "b"), data) {
		return wrong(nil, "what the server has")
	}
	h, _, _, err := f.fs.Lookup(ctx, f.root, "b")
	if err != nil {
		return fmt.Errorf("look up: %w", err)
	}
	if got, err := read(ctx, f.fs, h, 0, size); err != nil || !bytes.Equal(got, data) {
		return wrong(err, "what was read")
	}
	if list, err := names(ctx, f.fs, f.root); err != nil || len(list) != 1 || list[0] != "b" {
		return wrong(err, "the listing %v", list)
	}
	_, err = f.fs.Remove(ctx, f.root, "b", false)
	return err
}

// TestOrdealsWithoutEnd has all tries of a call suffer: a soft call ends when its
// patience has passed, or before if the reply breaks the protocol in the same way again.
func TestOrdealsWithoutEnd(t *testing.T) {
	need.Time(t, "faults that do not end")
	for _, o := range ordeals {
		if o.tries == 0 {
			continue // it is no reason to fail
		}
		o.tries = 0
		breaks := o.fault.Kind == rpcfault.EditReply && o.name != "wrong number"
		whole := o.fault.Kind == rpcfault.CutInReply && o.fault.At == 1<<30
		answered, late := whole && !o.fault.Reset, whole && o.fault.Reset // a reset may overtake the reply, or not
		t.Run(o.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := inMemory(t, memfs.New(memfs.Options{Mode: 0o777}), seeds(t, 1)[0], shortPatience)
				f.p.SetRules(o.rule(nfs3.NFSPROC3_GETATTR, nfs3.NFSPROC3_MKDIR))
				defer bystand(f, false)()
				start := time.Now()
				_, err := f.fs.GetAttr(t.Context(), f.root, vfs.MaskV3)
				took := time.Since(start)
				switch {
				case answered && err == nil && took < time.Second:
					return
				case err == nil && late:
				case err == nil:
					t.Error("no error")
				case breaks && took > time.Second, !breaks && (took < shortBound-time.Second || took > shortBound+time.Second):
					t.Errorf("after %v: %v", took, err)
				}
				start = time.Now()
				_, _, _, err = f.fs.Create(t.Context(), f.root, "dir", &vfs.CreateHow{Type: vfs.TypeDir})
				took = time.Since(start)
				if took > shortBound+time.Second || !errors.Is(err, vfs.ErrUnknownOutcome) && (err != nil || !late) {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// TestReboots has the server lose unstable bytes and cut all connections, again and
// again while a file is written: every byte is on its disk when Close has returned.
func TestReboots(t *testing.T) {
	for _, seed := range seeds(t, 3) {
		synctest.Test(t, func(t *testing.T) {
			at := newForgetful()
			f := inMemory(t, at, seed, shortPatience+"&wsize=32768")
			var n atomic.Int64
			at.on(func(op string) {
				if op == "write" && n.Add(1)%17 == int64(seed) && at.times.Load() < 12 {
					at.lose()
				}
			})
			f.p.SetRules(rpcfault.Rule{Procs: []*xdr.Proc{nfs3.NFSPROC3_WRITE, nfs3.NFSPROC3_COMMIT}, Every: 9, Budget: 15,
				Fault: rpcfault.Fault{Kind: rpcfault.CutInReply, At: rpcfault.Anywhere}})
			const size = 3 << 20
			if _, err := mkfile(t.Context(), f.fs, f.root, "file", pattern(1, seed, 0, size)); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			at.on(nil)
			if at.times.Load() < 5 {
				t.Errorf("seed %d: %d reboots", seed, at.times.Load())
			}
			at.lose() // what is not stable now is not there
			if !bytes.Equal(get(t, at, "file"), pattern(1, seed, 0, size)) {
				t.Errorf("seed %d: not what was written", seed)
			}
		})
	}
}
