package client

import (
	"fmt"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestVerifyOverFaults compares a directory of many pages with itself, over a connection that is cut
// within listings, and doubles, delays and mixes their replies: no name is missing, and none extra,
// whichever side is at fault.
func TestVerifyOverFaults(t *testing.T) {
	const n = 3000
	at := time.Unix(1_700_000_000, 0)
	mem := memfs.New(memfs.Options{Mode: 0o777, Now: func() time.Time { return at }})
	root, _, err := mem.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, _, _, err := mem.Create(t.Context(), root, fmt.Sprint("file", i), &vfs.CreateHow{Type: vfs.TypeReg}); err != nil {
			t.Fatal(err)
		}
	}
	f := overTCP(t, mem, 1, "timeo=100&retrans=5")
	list := []*xdr.Proc{nfs3.NFSPROC3_READDIRPLUS, nfs3.NFSPROC3_READDIR}
	f.p.SetRules(
		rpcfault.Rule{Procs: list, Every: 3, Fault: rpcfault.Fault{Kind: rpcfault.CutInReply, At: rpcfault.Anywhere}},
		rpcfault.Rule{Procs: list, Every: 5, Fault: rpcfault.Fault{Kind: rpcfault.CutBefore, Reset: true}},
		rpcfault.Rule{Procs: list, Every: 2, Fault: rpcfault.Fault{Kind: rpcfault.DuplicateReply}},
		rpcfault.Rule{Procs: list, Every: 4, Fault: rpcfault.Fault{Kind: rpcfault.Reorder, Count: 3, Wait: 20 * time.Millisecond}},
	)
	faulty, plain := job.Place{FS: f.fs, Handle: f.root}, job.Place{FS: mem, Handle: root}
	for _, o := range []job.VerifyOptions{{Source: faulty, Dest: plain}, {Source: plain, Dest: faulty}} {
		o.Pool, o.Now = new(bufpool.Pool), time.Now
		s, err := job.Verify(t.Context(), o)
		if err != nil || s.ExitCode(err) != job.ExitDone || s.Files != n {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if cut := f.p.Stats().Injected[rpcfault.CutInReply]; cut == 0 {
		t.Error("nothing was at fault")
	}
}
