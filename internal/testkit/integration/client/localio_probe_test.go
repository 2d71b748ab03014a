package client

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestProbeHangsUp has a server that hangs up on the question for local I/O, as on all
// programs that it does not know. It is asked a few times, and nobody waits for it.
func TestProbeHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := inMemory(t, memfs.New(memfs.Options{Mode: 0o777}), 1, "")
		f.p.SetRules(rpcfault.Rule{Procs: []*xdr.Proc{localio.LOCALIOPROC_GETUUID}, Fault: rpcfault.Fault{Kind: rpcfault.CutBefore}})
		c, err := nfsbox.Dial(t.Context(), "nfs://127.0.0.1:2049/", nfsbox.WithDialer(f.p.Dial),
			nfsbox.WithCaller(vfs.Caller{}), nfsbox.WithRand(sim.NewRand(2).Fill))
		if err != nil {
			t.Fatal(err)
		}
		for range 600 {
			start := time.Now()
			if _, err := c.FS().GetAttr(t.Context(), f.root, vfs.MaskV3); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("a call took %v", took)
			}
			time.Sleep(time.Second) // in the bubble
		}
		if s := c.Stats().LocalIO; s.State != "remote" || s.Why == "" {
			t.Errorf("%+v", s)
		}
		if n := f.p.Stats().Injected[rpcfault.CutBefore]; n < 2 || n > 3 {
			t.Errorf("it was asked %d times", n)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
