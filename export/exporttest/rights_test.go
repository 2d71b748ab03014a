package exporttest_test

import (
	"net/netip"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/export/exporttest"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestRights runs the matrix on the view of a file system in memory.
func TestRights(t *testing.T) {
	exporttest.Rights(t, exporttest.Config{New: func(t *testing.T, rule export.Rule) exporttest.Place {
		fs := memfs.New(memfs.Options{})
		table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: fs, Clients: []export.Rule{rule}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if n := fs.OpenFiles(); n != 0 {
				t.Errorf("%d files are still open", n)
			}
		})
		return exporttest.Place{Below: fs, As: func(c *vfs.Caller) vfs.FS {
			return table.For(netip.MustParseAddrPort("192.0.2.7:700"), c)
		}}
	}})
}
