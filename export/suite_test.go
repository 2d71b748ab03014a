package export_test

import (
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// TestSuite runs the suite of package vfstest on the view of all exports.
func TestSuite(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		New: func(t *testing.T) vfs.FS {
			inner := memfs.New(memfs.Options{})
			t.Cleanup(func() {
				if n := inner.OpenFiles(); n != 0 {
					t.Errorf("%d files are still open", n)
				}
			})
			table, err := export.NewTable(export.Key{4, 2}, export.Export{Path: "/", FS: inner})
			if err != nil {
				t.Fatal(err)
			}
			return table.As(nil)
		},
		Callers: true,
	})
}

// TestPowersOfViews proves that the powers of a view are those of what is exported.
func TestPowersOfViews(t *testing.T) {
	vfstest.RunPowers(t, vfstest.PowersConfig{New: func(t *testing.T, over vfs.FS) vfs.FS {
		table, err := export.NewTable(export.Key{4, 2}, export.Export{Path: "/", FS: over})
		if err != nil {
			t.Fatal(err)
		}
		return table.As(nil)
	}})
}
