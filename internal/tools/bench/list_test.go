package bench_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestList lists a directory of several pages several times over, and counts
// pages and entries as the server has.
func TestList(t *testing.T) {
	const files = 300
	for _, tc := range []struct {
		proc  string
		names bool
	}{{"READDIRPLUS", false}, {"READDIR", true}} {
		t.Run(tc.proc, func(t *testing.T) {
			s := serve(t, memfs.Options{})
			for i := range files {
				s.put(fmt.Sprintf("file-%03d", i), 0)
			}
			o := s.options("list", "")
			o.Size, o.Names = 8192, tc.names
			// As many pages as it takes to come to the end once.
			o.Count = 1
			for pages := uint64(1); ; pages++ {
				o.Count = pages
				res := run(t, o)
				if res.Ops != pages || res.RPCs != pages {
					t.Fatalf("%d operations, %d RPCs, want %d", res.Ops, res.RPCs, pages)
				}
				if res.Entries == files {
					break
				}
				if res.Entries > files || pages > files {
					t.Fatalf("%d entries in %d pages", res.Entries, pages)
				}
			}
			if o.Count < 2 {
				t.Fatalf("%d page", o.Count)
			}
			whole, before := o.Count, s.calls(tc.proc)
			o.Concurrency, o.Count = 1, 3*whole
			res := run(t, o)
			if res.Entries != 3*files || res.Ops != 3*whole || s.calls(tc.proc)-before != 3*whole {
				t.Errorf("%d entries, %d pages; the server has counted %d", res.Entries, res.Ops, s.calls(tc.proc)-before)
			}
			checkFigures(t, res)
		})
	}
}

// TestListAnew begins a listing again when its place has become unknown.
func TestListAnew(t *testing.T) {
	var pages atomic.Uint64
	s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "readdir" && pages.Add(1)%2 == 0 {
			return vfs.ErrBadCookie
		}
		return nil
	}})
	for i := range 300 {
		s.put(fmt.Sprintf("file-%03d", i), 0)
	}
	o := s.options("list", "")
	o.Size, o.Count = 8192, 10
	res, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Ops+res.Errors != 10 || res.Errors == 0 || len(res.Faults) != 1 || res.Faults[0].Kind != vfs.ErrBadCookie.Name() {
		t.Errorf("%+v", res)
	}
}

// TestThrough measures what an application has: the server sees less, and all of
// what was written is safe.
func TestThrough(t *testing.T) {
	s := serve(t, memfs.Options{})
	o := s.options("write", "")
	o.Through, o.Count, o.Size, o.FileSize, o.Concurrency = true, 256, 1024, 128<<10, 2
	res := run(t, o)
	// If one of the two is quicker it begins its file again, which is one more.
	if res.Ops != 256 || res.Bytes != 256<<10 || s.calls("WRITE") >= 256 || s.calls("COMMIT") < 2 || res.Commits < 2 || res.Commits > 3 {
		t.Errorf("%d operations, %d commits; the server has counted %d WRITEs and %d COMMITs", res.Ops, res.Commits, s.calls("WRITE"), s.calls("COMMIT"))
	}
	if names := s.names(); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
}

// TestNotADirectory refuses to list a file.
func TestNotADirectory(t *testing.T) {
	s := serve(t, memfs.Options{})
	s.put("file", 1)
	_, err := bench.Run(t.Context(), s.options("list", "file"))
	if !errors.Is(err, bench.ErrUsage) || !strings.Contains(err.Error(), "directory") {
		t.Errorf("%v", err)
	}
}
