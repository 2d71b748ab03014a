package memfs_test

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/memfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

func TestSuite(t *testing.T) {
	vfstest.Run(t, vfstest.Config{New: func(*testing.T) vfs.FS { return memfs.New(memfs.Options{}) }, Callers: true})
}

// TestOptions: each option does what it says.
func TestOptions(t *testing.T) {
	ctx := t.Context()
	f := memfs.New(memfs.Options{MaxBytes: 4096, MaxFiles: 2, UID: 7, GID: 8, Mode: 0o750})
	root, a, err := f.Root(ctx)
	if err != nil || a.UID != 7 || a.GID != 8 || a.Mode != 0o750 {
		t.Fatalf("the root is of %d:%d with mode %o (%v), want 7:8 and 750", a.UID, a.GID, a.Mode, err)
	}
	how := &vfs.CreateHow{Type: vfs.TypeReg}
	file, _, err := f.Open(ctx, vfs.At{Dir: root, Name: "a"}, &vfs.OpenHow{Access: vfs.ShareWrite, Create: how})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	var w vfs.Written
	if _, err := file.WriteAt(ctx, make([]byte, 1), 1<<20, vfs.FileSync, &w); err != nil {
		t.Errorf("a byte behind a hole: %v", err)
	}
	if _, err := file.WriteAt(ctx, make([]byte, 1), 0, vfs.FileSync, &w); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("a byte beyond MaxBytes: %v, want %v", err, vfs.ErrNoSpace)
	}
	if _, _, _, err := f.Create(ctx, root, "b", how); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("a file beyond MaxFiles, of which the root is one: %v, want %v", err, vfs.ErrNoSpace)
	}
}
