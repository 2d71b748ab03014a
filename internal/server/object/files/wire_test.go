package files

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/memfs"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// wire is our client at one side of a proxy that harms calls, and our server at the other, in memory.
func wire(t *testing.T, f vfs.FS, seed uint64, rules ...rpcfault.Rule) vfs.FS {
	t.Helper()
	table, err := export.NewTable(export.Key{1, 2, 3}, export.Export{Path: "/", FS: f})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := nfsserver.New(nfsserver.Options{Exports: table})
	if err != nil {
		t.Fatal(err)
	}
	n := sim.NewNetwork(seed)
	l, err := n.Listen(":2049")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, nfsserver.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	p := rpcfault.New(rpcfault.Options{Seed: seed, Upstream: func(ctx context.Context) (net.Conn, error) {
		return n.DialContext(ctx, "tcp", ":2049")
	}})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	c := dial(t, "nfs://127.0.0.1:2049/", nfsbox.WithDialer(p.Dial), nfsbox.WithRand(sim.NewRand(seed).Fill))
	p.SetRules(rules...)
	return c.FS()
}

// TestWire puts, replaces and deletes while calls and replies are lost, doubled and cut off. What succeeds is
// there, what exists is said to exist, and nothing is left behind.
func TestWire(t *testing.T) {
	changes := []*xdr.Proc{nfs3.NFSPROC3_CREATE, nfs3.NFSPROC3_WRITE, nfs3.NFSPROC3_COMMIT, nfs3.NFSPROC3_LINK,
		nfs3.NFSPROC3_RENAME, nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_MKDIR, nfs3.NFSPROC3_SETATTR}
	for _, fault := range []rpcfault.Fault{
		{Kind: rpcfault.DropCall}, {Kind: rpcfault.DropReply}, {Kind: rpcfault.DuplicateCall},
		{Kind: rpcfault.CutBefore}, {Kind: rpcfault.CutInReply}, {Kind: rpcfault.CutInCall, At: rpcfault.Anywhere},
	} {
		seeds := uint64(3)
		if testing.Short() || need.Race {
			seeds = 1
		}
		for seed := uint64(1); seed <= seeds; seed++ {
			t.Run(fmt.Sprint(fault.Kind, "/seed=", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := memfs.New(memfs.Options{Mode: 0o777})
					s := open(t, wire(t, f, seed, rpcfault.Rule{Procs: changes, Every: 3, Skip: seed, Fault: fault}), Options{})
					large := strings.Repeat("0123456789abcdef", 10_000)
					for i := range 6 {
						key := fmt.Sprintf("k%d/key", i%3)
						o := object.PutOptions{Size: -1, IfAbsent: i < 3}
						text := fmt.Sprint(i, large[:i%2*len(large)])
						if _, err := s.Put(t.Context(), key, strings.NewReader(text), o); err != nil {
							t.Fatalf("put %d: %v", i, err)
						}
						wantContent(t, s, key, text)
						o.IfAbsent = true
						if _, err := s.Put(t.Context(), key, strings.NewReader("other"), o); !errors.Is(err, object.ErrExist) {
							t.Fatalf("put %d again: %v", i, err)
						}
					}
					if err := s.Delete(t.Context(), "k0/key"); err != nil {
						t.Fatal(err)
					}
					page, err := s.List(t.Context(), "", "", 0)
					if err != nil || len(page.Objects) != 2 {
						t.Errorf("%+v, %v", page, err)
					}
				})
			})
		}
	}
}
