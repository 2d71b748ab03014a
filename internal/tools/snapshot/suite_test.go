package snapshot_test

import (
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/backup"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// backedUp takes a snapshot of f by the engine of backups.
func backedUp(t *testing.T, f vfs.FS, store object.Store) *snapshot.Snapshot {
	t.Helper()
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum, err := backup.Run(t.Context(), backup.Options{
		FS: f, Root: root, Store: store, Now: time.Now, Meta: snapshot.Meta{Name: "suite"},
	})
	if err != nil || !sum.Complete {
		t.Fatalf("%+v: %v", sum, err)
	}
	return opened(t, store, sum.Snapshot)
}

func opened(t *testing.T, store object.Store, text string) *snapshot.Snapshot {
	t.Helper()
	ref, err := snapshot.Find(t.Context(), store, text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Open(t.Context(), store, ref)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSuite has vfstest judge a snapshot of a tree that it has filled.
func TestSuite(t *testing.T) {
	store := object.NewMemory(object.MemoryOptions{})
	var s *snapshot.Snapshot
	vfstest.Run(t, vfstest.Config{
		New: func(*testing.T) vfs.FS { return memfs.New(memfs.Options{}) },
		Freeze: func(t *testing.T, f vfs.FS) vfs.FS {
			s = backedUp(t, f, store)
			return s.FS()
		},
		Restart: func(t *testing.T, _ vfs.FS) vfs.FS {
			ref := s.Ref()
			return opened(t, store, ref.Text()).FS()
		},
		Callers: true,
	})
}
