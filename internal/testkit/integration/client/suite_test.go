package client

import (
	"os"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// The suite runs against the whole way: client, wire, server, file system.

func TestSuiteMemfs(t *testing.T) {
	servers := make(map[vfs.FS]func())
	vfstest.Run(t, vfstest.Config{
		Callers: true,
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

// disk is a directory behind a server, both of which a restart replaces.
type disk struct {
	dir   string
	opt   localfs.Options
	local *localfs.FS
	s     *server
}

func (d *disk) open(t *testing.T) {
	t.Helper()
	local, err := localfs.New(d.dir, d.opt)
	if err != nil {
		t.Fatal(err)
	}
	d.local = local
}

func (d *disk) close(t *testing.T) {
	t.Helper()
	if err := vfs.CloseFS(d.local); err != nil {
		t.Error(err)
	}
}

// restart ends the server and what it serves, and begins both anew.
func (d *disk) restart(t *testing.T) {
	t.Helper()
	d.s.end()
	d.close(t)
	d.open(t)
	d.s.export(export.Export{Path: "/", FS: d.local})
	d.s.begin()
}

// TestSuiteLocalfs runs with the kernel's handles and with the map of them.
// Handles and dirty bytes outlive restarts of the server in both.
func TestSuiteLocalfs(t *testing.T) {
	need.Time(t, "the suite over the wire on a disk; over memory it runs")
	for _, mode := range []localfs.Mode{localfs.HandlesKernel, localfs.HandlesMap} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel() // it waits for the disk
			if mode == localfs.HandlesKernel && os.Geteuid() != 0 {
				need.Missing(t, "root", "the kernel's handles are root's")
			}
			suiteLocalfs(t, mode)
		})
	}
}

func suiteLocalfs(t *testing.T, mode localfs.Mode) {
	disks := make(map[vfs.FS]*disk)
	vfstest.Run(t, vfstest.Config{
		Callers: os.Geteuid() == 0,
		New: func(t *testing.T) vfs.FS {
			d := &disk{dir: t.TempDir(), opt: localfs.Options{Handles: mode, StateDir: t.TempDir()}}
			d.open(t)
			t.Cleanup(func() { d.close(t) })
			d.s = start(t, export.Export{Path: "/", FS: d.local})
			own := vfs.Caller{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())} // the server's user may set all modes
			fs := dial(t, "nfs://"+d.s.addr+"/", nfsbox.WithCaller(own)).FS()
			disks[fs] = d
			return fs
		},
		Restart: func(t *testing.T, fs vfs.FS) vfs.FS {
			disks[fs].restart(t)
			return fs // which finds the server again by itself
		},
	})
}
