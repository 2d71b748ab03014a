//go:build linux

package localfs

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestOverlappingExports serves a directory and one below it, as two exports of one
// server. Each write makes the file longer, so that attributes before and after that are
// not of one write alone are seen.
func TestOverlappingExports(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		must[bool](t)(true, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
		must[bool](t)(true, os.WriteFile(filepath.Join(dir, "sub", "file"), nil, 0o644))
		var all []*FS
		o.Locks = &Locks{}
		for _, d := range []string{dir, filepath.Join(dir, "sub")} {
			f := must[*FS](t)(New(d, o.anew(t)))
			defer closeFS(t, f)
			all = append(all, f)
		}
		sub, _, _, err := all[0].Lookup(t.Context(), root(t, all[0]), "sub")
		if err != nil {
			t.Fatal(err)
		}
		var next, wrong atomic.Int64
		var wg sync.WaitGroup
		for i, f := range all {
			top := []vfs.Handle{sub, root(t, f)}[i]
			x, _, _, err := f.Lookup(t.Context(), top, "file")
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				file, _, err := f.Open(t.Context(), vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareWrite})
				if err != nil {
					t.Error(err)
					return
				}
				for range 20_000 {
					off := uint64(next.Add(1))
					var w vfs.Written
					if _, err := file.WriteAt(t.Context(), []byte{1}, off, vfs.Unstable, &w); err != nil {
						t.Error(err)
						break
					}
					if w.WCC.Before.Valid == 0 || w.WCC.After.Size != max(w.WCC.Before.Size, off+1) {
						wrong.Add(1)
					}
				}
				if err := file.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := wrong.Load(); n > 0 {
			t.Errorf("%d attributes before and after are of several writes", n)
		}
		// What one lends to another process, the other knows nothing of either.
		x, _, _, err := all[0].Lookup(t.Context(), sub, "file")
		if err != nil {
			t.Fatal(err)
		}
		lent, _, err := all[0].OpenHost(t.Context(), x, &vfs.HostOpen{Access: vfs.ShareWrite, Trusted: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { must[bool](t)(true, lent.Close()) }()
		y, _, _, err := all[1].Lookup(t.Context(), root(t, all[1]), "file")
		if err != nil {
			t.Fatal(err)
		}
		wcc, err := all[1].SetAttr(t.Context(), y, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil)
		if err != nil || wcc.Before.Valid != 0 {
			t.Errorf("attributes from before are told of what another process may write: %v, %v", wcc.Before, err)
		}
	})
}

// TestLocalWritersShareLocks has an FS that tells nothing of before an operation lock all
// the same, for the others.
func TestLocalWritersShareLocks(t *testing.T) {
	for _, shared := range []bool{false, true} {
		o := mapOptions(t)
		o.LocalWriters = true
		if shared {
			o.Locks = &Locks{}
		}
		f := open(t, t.TempDir(), o)
		if f.unlocked() == shared {
			t.Errorf("locks shared %v, and nobody locks: %v", shared, f.unlocked())
		}
	}
}
