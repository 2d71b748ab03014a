package client

import (
	"fmt"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestCallsOfVerify counts, at two servers, what it costs to compare two equal trees, beside the
// contents of their files: at most three calls a directory and side, and one for each further page
// of a listing. Files are not asked for.
func TestCallsOfVerify(t *testing.T) {
	const dirs, files, many = 300, 10, 3000
	type end struct {
		s     *server
		place job.Place
		calls map[string]uint64
	}
	var ends [2]end
	at := time.Unix(1_700_000_000, 0)
	for i := range ends {
		mem := memfs.New(memfs.Options{Mode: 0o777, Now: func() time.Time { return at }})
		root, _, err := mem.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		create := func(dir vfs.Handle, name string, typ vfs.Type) vfs.Handle {
			h, _, _, err := mem.Create(t.Context(), dir, name, &vfs.CreateHow{Type: typ})
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		all := []vfs.Handle{root}
		for d := range dirs - 1 {
			all = append(all, create(all[d/3], fmt.Sprint("dir", d), vfs.TypeDir))
		}
		for d, dir := range all {
			for f := range files {
				create(dir, fmt.Sprint("file", (f*7+d+i)%files), vfs.TypeReg) // in another order
			}
		}
		for f := range many {
			create(all[dirs-1], fmt.Sprint("one of many ", f), vfs.TypeReg)
		}
		e := &ends[i]
		e.s = start(t, export.Export{Path: "/", FS: mem})
		e.place.FS = dial(t, "nfs://"+e.s.addr+"/").FS()
		if e.place.Handle, _, err = e.place.FS.Root(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.calls = e.s.srv.Stats().Calls
	}
	s, err := job.Verify(t.Context(), job.VerifyOptions{Source: ends[0].place, Dest: ends[1].place, Pool: new(bufpool.Pool), Now: time.Now})
	if err != nil || s.ExitCode(err) != job.ExitDone || s.Dirs != dirs || s.Files != dirs*files+many {
		t.Fatalf("%+v, %v", s, err)
	}
	for i, e := range ends {
		names := map[string]uint64{}
		var sum uint64
		for name, n := range e.s.srv.Stats().Calls {
			if n -= e.calls[name]; n > 0 && name != "READ" {
				names[name] = n
				sum += n
			}
		}
		t.Logf("end %d: %v", i, names)
		const pages, ends = 40, 10 // of the large directory; of the trees' two ends
		if sum > 3*dirs+pages+ends || names["READDIRPLUS"] > dirs+pages || names["LOOKUP"] > dirs || names["GETATTR"] > ends {
			t.Errorf("end %d: %d directories and %d files cost %v", i, dirs, s.Files, names)
		}
	}
}
