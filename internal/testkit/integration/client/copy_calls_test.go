package client

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// TestCallsOfSmallFiles counts, at the server, what a copy of many small files costs:
// each is made, written by one stable WRITE, given its attributes and its name.
func TestCallsOfSmallFiles(t *testing.T) {
	const files = 500
	c := newCopying(t)
	for i := range files {
		c.source(fmt.Sprint(i), pattern(1, uint64(i), 0, 2<<10))
	}
	calls := func() map[string]uint64 { return maps.Clone(c.s.srv.Stats().Calls) }
	before := calls()
	s, err := job.Copy(t.Context(), job.CopyOptions{
		Source: job.Place{FS: c.from, Handle: c.dir}, Dest: job.Place{FS: c.fs, Handle: c.root}, Name: "copy",
		Pool: c.o.Pool, Random: c.o.Random, Now: time.Now,
	})
	if err != nil || s.Files != files || s.Errors != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	var all uint64
	after := calls()
	for name := range after {
		after[name] -= before[name]
		all += after[name]
	}
	for _, p := range []string{"CREATE", "WRITE", "SETATTR", "RENAME"} {
		// The directory is given its mode as it is made, and its other attributes in the end.
		if n := after[p]; n < files || n > files+2 {
			t.Errorf("%s: %d calls for %d files", p, n, files)
		}
	}
	if n := after[nfs3.NFSPROC3_COMMIT.Name]; n != 0 {
		t.Errorf("%d COMMITs behind stable WRITEs", n)
	}
	// What the directory, the root and the limits cost is no matter of the files.
	if all > 4*files+20 {
		t.Errorf("%d calls for %d files: %v", all, files, after)
	}
}
