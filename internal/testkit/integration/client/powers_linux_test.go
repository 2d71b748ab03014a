package client

import (
	"crypto/rand"
	"path/filepath"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// onDisk is a directory of this host.
func onDisk(t *testing.T) vfs.FS {
	t.Helper()
	fs, err := localfs.New(t.TempDir(), localfs.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := vfs.CloseFS(fs); err != nil {
			t.Error(err)
		}
	})
	return fs
}

// served is what a client has of a file system behind a server of this host.
func served(t *testing.T, over vfs.FS, mode nfsbox.LocalIO) *nfsbox.Client {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run")
	s := &server{t: t, addr: "127.0.0.1:0"}
	s.export(export.Export{Path: "/", FS: over, Clients: []export.Rule{{Match: "*", Squash: export.SquashNone}}})
	if mode != nfsbox.LocalIOOff {
		s.opt.LocalIO = &nfsserver.LocalIO{Dir: run}
		_, _ = rand.Read(s.opt.LocalIO.UUID[:]) // never fails
	}
	s.begin()
	t.Cleanup(s.end)
	c := dial(t, "nfs://"+s.addr+"/", nfsbox.WithCaller(here()), nfsbox.WithLocalIO(mode), nfsbox.WithEagerLocalIO(), nfsbox.WithLocalIODir(run))
	if mode != nfsbox.LocalIOOff {
		wantLocal(t, c)
	}
	return c
}

// TestPowersOfStacks proves every power of what Dial builds, over memory and over a
// disk, of what a server exports, and of an export of what Dial builds.
func TestPowersOfStacks(t *testing.T) {
	need.Time(t, "the powers of whole stacks")
	exported := func(t *testing.T, fs vfs.FS) vfs.FS {
		table, err := export.NewTable(export.Key{5}, export.Export{Path: "/", FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		return table.As(nil)
	}
	dialled := func(mode nfsbox.LocalIO) func(*testing.T, vfs.FS) vfs.FS {
		return func(t *testing.T, over vfs.FS) vfs.FS { return served(t, over, mode).FS() }
	}
	for name, c := range map[string]vfstest.PowersConfig{
		"off":           {New: dialled(nfsbox.LocalIOOff)},
		"off, disk":     {New: dialled(nfsbox.LocalIOOff), Bottom: onDisk},
		"auto, disk":    {New: dialled(nfsbox.LocalIOAuto), Bottom: onDisk},
		"trusted, disk": {New: dialled(nfsbox.LocalIOTrusted), Bottom: onDisk},
		"disk":          {New: func(_ *testing.T, over vfs.FS) vfs.FS { return over }, Bottom: onDisk},
		"view, disk":    {New: exported, Bottom: onDisk},
		"view of a client": {New: func(t *testing.T, over vfs.FS) vfs.FS {
			return exported(t, dialled(nfsbox.LocalIOOff)(t, over))
		}},
	} {
		t.Run(name, func(t *testing.T) { vfstest.RunPowers(t, c) })
	}
}
