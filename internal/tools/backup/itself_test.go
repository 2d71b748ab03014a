package backup

import (
	crand "crypto/rand"
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/files"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestStoreInTree has the store in the tree, and wants it to be left out wherever it is seen by its file id and its lease, and
// nothing else to be.
func TestStoreInTree(t *testing.T) {
	for fanout := 1; fanout <= layout.MaxFanout; fanout++ {
		b := newBed(t)
		d := b.create(b.root, "d", vfs.CreateHow{Type: vfs.TypeDir})
		in, other := b.create(d, "store", vfs.CreateHow{Type: vfs.TypeDir}), b.create(d, "other", vfs.CreateHow{Type: vfs.TypeDir})
		open := func(h vfs.Handle) object.Store {
			s, err := files.Open(t.Context(), b.fs, h, files.Options{Fanout: fanout})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		b.store = open(in)
		open(other)
		const files, dirs = 1, 3 // another store has its marker; the top, d and other
		leased := func(dir vfs.Handle, dry bool) Summary {
			t.Helper()
			o := b.options()
			o.Base, o.Partial, o.DryRun = nil, nil, dry
			var err error
			if o.StoreDir, err = b.fs.GetAttr(t.Context(), dir, vfs.MaskV3); err != nil {
				t.Fatal(err)
			}
			sum, err := Leased(t.Context(), o, lease.Options{Now: b.time, Rand: crand.Reader, Host: "host"})
			if err != nil || sum.Errors > 0 {
				t.Fatalf("%v: %+v", err, sum)
			}
			return sum
		}
		for range 2 {
			if sum := leased(in, false); sum.Files != files || sum.Dirs != dirs || !sum.Complete {
				t.Errorf("%+v", sum)
			}
		}
		if sum := leased(in, true); sum.Files != files || sum.Dirs != dirs {
			t.Errorf("a dry run: %+v", sum)
		}
		itself := b.options()
		itself.Root = in
		if itself.StoreDir, _ = b.fs.GetAttr(t.Context(), in, vfs.MaskV3); itself.StoreDir.FileID == 0 {
			t.Fatal("no file id")
		}
		if sum, err := Leased(t.Context(), itself, lease.Options{Now: b.time, Rand: crand.Reader, Host: "host"}); !errors.Is(err, ErrItself) || sum.Snapshot != "" || sum.Partial {
			t.Errorf("of the store: %v, %+v", err, sum)
		}
		// What only has the id of the store's directory, as on another file system, and is a store, is not it.
		sum := leased(other, false)
		ref, err := snapshot.Find(t.Context(), b.store, sum.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		taken, err := snapshot.Open(t.Context(), b.store, ref)
		if err != nil {
			t.Fatal(err)
		}
		h, _, err := taken.FS().Root(t.Context())
		for _, name := range []string{"d", "other", layout.MarkerName} {
			if err == nil {
				h, _, _, err = taken.FS().Lookup(t.Context(), h, name)
			}
		}
		if err != nil {
			t.Errorf("another store was left out: %v, %+v", err, sum)
		}
	}
}
