package nfsbox_test

import (
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/localfs"
	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// The suite runs against the whole way: client, wire, server, file system.

// noOpen is why a File of a handle that is no file's, or no longer, opens.
const noOpen = "NFSv3 has no OPEN: opening by handle makes no call, and what is wrong shows with the first READ or WRITE"

// loopbackDifferences are what NFSv3, rather than either of its ends, cannot do.
var loopbackDifferences = map[string]string{
	"open/not-a-file": noOpen,
	"open/stale":      noOpen,
	"handle/stale":    noOpen,
	"handle/garbage":  noOpen,
}

func TestSuiteMemfs(t *testing.T) {
	servers := make(map[vfs.FS]func())
	vfstest.Run(t, vfstest.Config{
		Callers:     true,
		Differences: loopbackDifferences,
		New: func(t *testing.T) vfs.FS {
			mem := memfs.New(memfs.Options{Mode: 0o755})
			s := start(t, export.Export{Path: "/", FS: mem})
			fs := dial(t, "nfs://"+s.addr+"/").FS()
			servers[fs] = func() {
				s.end()
				mem.Restart()
				s.begin()
			}
			return fs
		},
		Restart: func(_ *testing.T, fs vfs.FS) vfs.FS {
			servers[fs]()
			return fs // which finds the server again by itself
		},
	})
}

func TestSuiteLocalfs(t *testing.T) {
	t.Parallel() // it waits for the disk
	vfstest.Run(t, vfstest.Config{
		Differences: loopbackDifferences,
		New: func(t *testing.T) vfs.FS {
			local, err := localfs.New(t.TempDir(), localfs.Options{Volatile: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := vfs.CloseFS(local); err != nil {
					t.Error(err)
				}
			})
			return dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: local})+"/").FS()
		},
	})
}
