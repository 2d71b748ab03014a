//go:build linux

package localfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestRootStaleWhileReborn uses handles of removed files while others make new
// ones of the same inode numbers: they are stale all along, and never "busy".
func TestRootStaleWhileReborn(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	f, err := New(dir, Options{Handles: HandlesKernel})
	if err != nil {
		need.Missing(t, "root", err.Error())
	}
	t.Cleanup(func() { closeFS(t, f) })
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const workers, rounds = 4, 300
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				path := filepath.Join(dir, fmt.Sprintf("%d-%d", w, i))
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Error(err)
					return
				}
				h, _, _, err := f.Lookup(t.Context(), root, filepath.Base(path))
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.Remove(path); err != nil {
					t.Error(err)
					return
				}
				for range 10 {
					if _, err := f.GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
						t.Errorf("a handle of a removed file: %v", err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
