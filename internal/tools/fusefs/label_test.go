//go:build linux

package fusefs

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// labelled takes note of what people call the files that are opened.
type labelled struct {
	vfs.FS
	seen *sync.Map
}

func (l labelled) As(c *vfs.Caller) vfs.FS { return labelled{l.FS.As(c), l.seen} }

func (l labelled) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	l.seen.Store(at.Label, true)
	return l.FS.Open(ctx, at, how)
}

// TestLabels: below the mount it is known by which name a file was looked up, or listed.
func TestLabels(t *testing.T) {
	need.Fuse(t)
	mem := memfs.New(memfs.Options{Mode: 0o777})
	root, _, err := mem.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"looked-up", "listed"} {
		how := &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}}
		if _, _, _, err := mem.Create(t.Context(), root, name, how); err != nil {
			t.Fatal(err)
		}
	}
	seen := new(sync.Map)
	dir := mountFS(t, labelled{mem, seen}, Options{})
	read := func(name string) {
		t.Helper()
		if _, err := os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, ok := seen.Load(name); !ok {
			t.Errorf("%s was opened by another name, or none", name)
		}
	}
	read("looked-up")
	if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
		t.Fatalf("%d names, %v", len(names), err)
	}
	read("listed")
}
