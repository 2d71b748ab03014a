package ops

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/nfsserver"
)

// TestViewOfScrape says in the words of the view what the rooms have counted.
func TestViewOfScrape(t *testing.T) {
	s := Scrape{process: process{threads: 7, cpu: time.Second, memory: 1 << 20}}
	s.Server.LocalIO = &nfsserver.LocalIOStats{Sessions: 1, Files: 2, Opened: 3, Revoked: 4, Refused: map[string]uint64{"identity": 5, "busy": 6}}
	started := time.Unix(1, 0)
	got := s.view(&config.Config{MaxConnections: 9}, "nfs://h/", "v1", started)
	if want := (view.LocalIO{Sessions: 1, Files: 2, Opened: 3, Refused: 11, Revoked: 4}); got.LocalIO == nil || *got.LocalIO != want {
		t.Errorf("%+v", got.LocalIO)
	}
	if want := (view.Process{Threads: 7, CPU: time.Second, Memory: 1 << 20}); got.Process != want {
		t.Errorf("%+v", got.Process)
	}
	if got.Started != started || got.Limits[0] != (view.Limit{Name: "connections", Max: 9}) {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ proc, program, name string }{
		{"NFSPROC3_READ", "NFS", "READ"}, {"MOUNTPROC3_NULL", "MOUNT", "NULL"}, {"NLMPROC4_NM_LOCK", "NLM", "NM_LOCK"}, {"7/1/2", "", "7/1/2"},
	} {
		if program, name := spoken(c.proc); program != c.program || name != c.name {
			t.Errorf("%s: %q, %q", c.proc, program, name)
		}
	}
}

// TestViewOfAPI has the calls of the file API, with their bytes, always in one order.
func TestViewOfAPI(t *testing.T) {
	s := Scrape{API: &fileapi.Snapshot{Calls: map[string]fileapi.Call{
		"Put": {BytesIn: 7, BytesOut: 8, Time: &metric.Snapshot{Count: 3}}, "Echo": {Errors: 1, Time: &metric.Snapshot{Count: 2}},
		"Get": {Time: &metric.Snapshot{}}, "List": {Time: &metric.Snapshot{}}, "Stat": {Time: &metric.Snapshot{}},
	}}}
	got := s.view(&config.Config{}, "nfs://h/", "v1", time.Unix(1, 0)).Procs
	if !slices.IsSortedFunc(got, func(a, b view.Proc) int { return strings.Compare(a.Name, b.Name) }) || len(got) != 5 {
		t.Errorf("%+v", got)
	}
	if e, p := got[0], got[3]; e.Calls != 2 || e.Errors != 1 || p.Calls != 3 || p.BytesIn != 7 || p.BytesOut != 8 || p.Program != "API" {
		t.Errorf("%+v", got)
	}
}
