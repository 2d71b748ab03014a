package fileapi

import (
	"errors"
	"testing"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// onEvery runs a test over a file system in memory and one on disk.
func onEvery(t *testing.T, test func(*testing.T, vfs.FS)) {
	t.Run("memory", func(t *testing.T) { test(t, newMemory(t)) })
	t.Run("disk", func(t *testing.T) { test(t, newDisk(t)) })
}

func newDisk(t *testing.T) vfs.FS {
	fs, err := localfs.New(t.TempDir(), localfs.Options{Volatile: true})
	if err != nil {
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip("NOT TESTED on disk: ", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	})
	return fs
}

func asConnect(err error) *connect.Error {
	e, _ := errors.AsType[*connect.Error](err)
	return e
}
