package client

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestStats counts by procedure, with what the server said.
func TestStats(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	c := dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: mem})+"/", nfsbox.WithMaxLoad(9))
	put(t, c.FS(), "file", make([]byte, 100000))
	get(t, c.FS(), "file")
	root := rootOf(t, c.FS())
	for range 3 {
		if _, _, _, err := c.FS().Lookup(t.Context(), root, "none"); !errors.Is(err, vfs.ErrNoEnt) {
			t.Fatal(err)
		}
	}
	s := c.Stats()
	by := make(map[string]nfsbox.ProcStats)
	for _, p := range s.Procs {
		by[p.Name] = p
	}
	if p := by["LOOKUP"]; p.Calls < 4 || p.Statuses["NOENT"] < 3 || p.Latency == nil || p.Latency.Count < 4 || nfsbox.Distribute(p.Latency).P50 <= 0 {
		t.Errorf("LOOKUP: %+v", p)
	}
	if p := by["WRITE"]; p.Calls == 0 || p.BytesOut < 100000 || p.Errors != 0 || p.Statuses != nil {
		t.Errorf("WRITE: %+v", p)
	}
	if p := by["READ"]; p.Calls == 0 || p.BytesIn < 100000 {
		t.Errorf("READ: %+v", p)
	}
	if len(s.Load) != 3 || s.Load[1].Class != "read" || s.Load[1].Limit != 9 || s.Load[1].InFlight != 0 {
		t.Errorf("%+v", s.Load)
	}
	if s.Connections < 1 || s.RPCs == 0 {
		t.Errorf("%+v", s)
	}
}
