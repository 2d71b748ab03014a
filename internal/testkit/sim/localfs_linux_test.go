package sim_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/vfs"
)

// server is a localfs on a Disk, with all that its restart needs.
type server struct {
	t    *testing.T
	base string
	mode localfs.Mode
	disk *sim.Disk
	fs   vfs.FS
}

// forModes runs f with each kind of handles that works here.
func forModes(t *testing.T, f func(t *testing.T, s *server)) {
	for _, mode := range []localfs.Mode{localfs.HandlesKernel, localfs.HandlesMap} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			s := &server{t: t, base: t.TempDir(), mode: mode}
			s.ok(os.Mkdir(filepath.Join(s.base, "root"), 0o755), os.Mkdir(filepath.Join(s.base, "state"), 0o700))
			var err error
			s.disk, err = sim.NewDisk(linux.OS{}, filepath.Join(s.base, "shadow"), 1)
			s.ok(err)
			if err := s.start(); err != nil {
				s.ok(s.disk.Close())
				if mode == localfs.HandlesKernel && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EOPNOTSUPP)) {
					t.Skipf("no kernel handles here: %v", err)
				}
				t.Fatal(err)
			}
			t.Cleanup(func() { s.ok(vfs.CloseFS(s.fs), s.disk.Close()) })
			f(t, s)
		})
	}
}

func (s *server) start() error {
	fs, err := localfs.New(filepath.Join(s.base, "root"), localfs.Options{
		Handles: s.mode, StateDir: filepath.Join(s.base, "state"), Sys: s.disk, Rand: sim.NewRand(1).Fill,
	})
	if err != nil {
		return err
	}
	s.fs = fs
	return nil
}

func (s *server) ok(errs ...error) {
	s.t.Helper()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

// crash takes the power, after which nothing that localfs does counts, and
// starts it again.
func (s *server) crash() {
	s.t.Helper()
	s.disk.PowerOff(0)
	_ = vfs.CloseFS(s.fs) // without power it may well fail
	s.ok(s.disk.Crash(sim.LoseAll))
	s.ok(s.start())
}

func (s *server) ctx() context.Context { return s.t.Context() }

func (s *server) root() vfs.Handle {
	s.t.Helper()
	h, _, err := s.fs.Root(s.ctx())
	s.ok(err)
	return h
}

// sync makes names and attributes stable, as a server that answers for them must.
func (s *server) sync(h vfs.Handle) {
	s.t.Helper()
	if f, ok := vfs.As[vfs.Syncer](s.fs); ok {
		s.ok(f.Sync(s.ctx(), h))
	}
}

// create makes a file, or a directory, and writes data to it.
func (s *server) create(name, data string, how vfs.Stability) vfs.Handle {
	s.t.Helper()
	f, opened, err := s.fs.Open(s.ctx(), vfs.At{Dir: s.root(), Name: name}, &vfs.OpenHow{
		Access: vfs.ShareWrite,
		Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}},
	})
	s.ok(err)
	_, err = vfs.WriteFull(s.ctx(), f, []byte(data), 0, how, new(vfs.Written))
	s.ok(err, f.Close(s.ctx()))
	return opened.H
}

// want compares the content of what name stands for; "" is nothing.
func (s *server) want(name, data string) (h vfs.Handle) {
	s.t.Helper()
	h, _, _, err := s.fs.Lookup(s.ctx(), s.root(), name)
	if data == "" {
		if !errors.Is(err, vfs.ErrNoEnt) {
			s.t.Errorf("%s is there: %v", name, err)
		}
		return h
	}
	if err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	s.wantData(h, data)
	return h
}

func (s *server) wantData(h vfs.Handle, data string) {
	s.t.Helper()
	f, _, err := s.fs.Open(s.ctx(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		s.t.Fatalf("opening by handle: %v", err)
	}
	p := make([]byte, 100)
	n, _, err := vfs.ReadFull(s.ctx(), f, p, 0)
	s.ok(err, f.Close(s.ctx()))
	if string(p[:n]) != data {
		s.t.Errorf("read %q, want %q", p[:n], data)
	}
}

// TestLocalfsNames: what was synced through localfs survives, with its handle;
// what was not is gone.
func TestLocalfsNames(t *testing.T) {
	forModes(t, func(t *testing.T, s *server) {
		kept := s.create("kept", "stable", vfs.FileSync)
		s.sync(s.root())
		s.create("lost", "its bytes are stable, its name is not", vfs.FileSync)
		s.crash()
		if h := s.want("kept", "stable"); h != kept {
			t.Errorf("the handle of a file is %v after a crash, was %v", h, kept)
		}
		s.wantData(kept, "stable")
		s.want("lost", "")
	})
}

func TestLocalfsData(t *testing.T) {
	forModes(t, func(t *testing.T, s *server) {
		s.create("f", "stable", vfs.FileSync)
		s.sync(s.root())
		s.create("f", "UNSTABLE BYTES", vfs.Unstable)
		s.crash()
		h := s.want("f", "stable")
		s.create("f", "UNSTABLE BYTES", vfs.Unstable)
		f, _, err := s.fs.Open(s.ctx(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
		s.ok(err, f.Commit(s.ctx(), 0, 0, new(vfs.Written)), f.Close(s.ctx()))
		s.crash()
		s.want("f", "UNSTABLE BYTES")
	})
}

func TestLocalfsRename(t *testing.T) {
	forModes(t, func(t *testing.T, s *server) {
		h := s.create("old", "1", vfs.FileSync)
		s.sync(s.root())
		rename := func() {
			_, _, err := s.fs.Rename(s.ctx(), s.root(), "old", s.root(), "new")
			s.ok(err)
		}
		rename()
		s.crash()
		s.want("old", "1")
		s.want("new", "")
		rename()
		s.sync(s.root())
		s.crash()
		s.want("old", "")
		s.want("new", "1")
		s.wantData(h, "1")
	})
}

// TestLocalfsRenameAcross: the power brings back a name in another directory, and the
// handle still finds what it names. The map has told its file meanwhile, for a handle
// of somebody else, all that it had noted.
func TestLocalfsRenameAcross(t *testing.T) {
	forModes(t, func(t *testing.T, s *server) {
		mkdir := func(dir vfs.Handle, name string) vfs.Handle {
			h, _, _, err := s.fs.Create(s.ctx(), dir, name, &vfs.CreateHow{Type: vfs.TypeDir, Mode: vfs.CreateGuarded})
			s.ok(err)
			s.sync(dir)
			return h
		}
		a, b := mkdir(s.root(), "a"), mkdir(s.root(), "b")
		moved := mkdir(a, "moved")
		below := mkdir(moved, "below")
		_, _, err := s.fs.Rename(s.ctx(), a, "moved", b, "other")
		s.ok(err)
		s.create("somebody's", "1", vfs.FileSync)
		s.crash()
		for _, h := range []vfs.Handle{below, moved} {
			if _, err := s.fs.GetAttr(s.ctx(), h, vfs.MaskV3); err != nil {
				t.Errorf("a handle is no longer good: %v", err)
			}
		}
		if h, _, _, err := s.fs.Lookup(s.ctx(), a, "moved"); err != nil || h != moved {
			t.Errorf("the old name stands for %v, was %v: %v", h, moved, err)
		}
	})
}

func TestLocalfsRemove(t *testing.T) {
	forModes(t, func(t *testing.T, s *server) {
		h := s.create("f", "1", vfs.FileSync)
		s.sync(s.root())
		_, err := s.fs.Remove(s.ctx(), s.root(), "f", false)
		s.ok(err)
		s.crash()
		s.want("f", "1")
		s.wantData(h, "1")
		_, err = s.fs.Remove(s.ctx(), s.root(), "f", false)
		s.ok(err)
		s.sync(s.root())
		s.crash()
		s.want("f", "")
		if _, err := s.fs.GetAttr(s.ctx(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
			t.Errorf("the handle of a file that is gone: %v", err)
		}
	})
}

// TestLocalfsHandles: a handle that was handed out is good after the crash,
// whatever the name's state: the map's log is stable before the reply.
func TestLocalfsHandles(t *testing.T) {
	forModes(t, func(t *testing.T, s *server) {
		s.ok(os.WriteFile(filepath.Join(s.base, "root", "found"), []byte("1"), 0o644))
		h, _, _, err := s.fs.Lookup(s.ctx(), s.root(), "found")
		s.ok(err)
		s.crash()
		s.wantData(h, "1")
	})
}
