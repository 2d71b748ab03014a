//go:build linux

package localfs

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// putSys is a disk that takes little at a time, and on which a step of Put fails.
type putSys struct {
	linux.OS
	open, write, link error
	idle              bool // writes nothing, without an error
}

func (s *putSys) OpenNameless(dirfd int, mode uint32) (int, error) {
	if s.open != nil {
		return -1, s.open
	}
	return s.OS.OpenNameless(dirfd, mode)
}

func (s *putSys) Pwrite(fd int, p []byte, off int64) (int, error) {
	if s.write != nil && off > 0 {
		return 0, s.write
	}
	if s.idle {
		return 0, nil
	}
	return s.OS.Pwrite(fd, p[:min(len(p), 3)], off)
}

func (s *putSys) LinkNameless(fd, dirfd int, name string) error {
	if s.link != nil {
		return s.link
	}
	return s.OS.LinkNameless(fd, dirfd, name)
}

// TestPutFaults fails each step: nothing is there then, and no descriptor is lost.
func TestPutFaults(t *testing.T) {
	for name, c := range map[string]struct {
		sys  Sys
		want error
	}{
		"no O_TMPFILE":           {&putSys{open: unix.EOPNOTSUPP}, vfs.ErrNotSupp},
		"no O_TMPFILE, long ago": {&putSys{open: unix.EISDIR}, vfs.ErrNotSupp},
		"no Sys for it":          {struct{ Sys }{linux.OS{}}, vfs.ErrNotSupp},
		"disk full":              {&putSys{write: unix.ENOSPC}, vfs.ErrNoSpace},
		"nothing is written":     {&putSys{idle: true}, io.ErrShortWrite},
		"the name has come":      {&putSys{link: unix.EEXIST}, vfs.ErrExist},
		"the directory has gone": {&putSys{link: unix.ENOENT}, vfs.ErrStale},
		"none":                   {&putSys{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := openKernel(t, dir, Options{Sys: c.sys, Volatile: true})
			x, _, err := f.Put(t.Context(), root(t, f), "x", 0o640, []byte("content"))
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if err == nil {
				if got := content(t, f, x); got != "content" {
					t.Errorf("it holds %q", got)
				}
			} else if left := names(t, dir); len(left) > 1 {
				t.Errorf("there are now %v", left)
			}
		})
	}
}

// TestPutLostIdentity has a thread that does not get its own identity back, at each of
// its changes in turn: what was made by then is given up with it.
func TestPutLostIdentity(t *testing.T) {
	need.Root(t, "to act for another user takes root")
	for lost := range int32(8) { // there are fewer
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		f := openKernel(t, dir, Options{Volatile: true})
		r := root(t, f)
		set := f.creds.Calls.SetFSUID
		var back atomic.Int32
		broken := false
		f.creds.Calls.SetFSUID = func(uid int) (int, error) {
			if uid == 0 && back.Add(1) == lost+1 {
				broken = true
				return 0, errors.New("broken")
			}
			return set(uid)
		}
		as := f.As(&vfs.Caller{UID: 1000, GID: 1000})
		before := openFDs(t)
		err := make(chan error)
		go func() { // the thread ends with it
			_, _, e := as.(vfs.Putter).Put(t.Context(), r, "x", 0o640, []byte("content"))
			err <- e
		}()
		got := <-err
		if n := openFDs(t) - before; got != nil && n > 0 {
			t.Errorf("at %d: %v, and %d descriptors are lost", lost, got, n)
		}
		if !broken {
			return
		}
	}
	t.Error("it never ends")
}

func openKernel(t *testing.T, dir string, o Options) *FS {
	t.Helper()
	o.Handles = HandlesKernel
	probe, err := New(dir, o)
	if err != nil {
		need.Missing(t, "root", "no handles of the kernel here: "+err.Error())
	}
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, o)
}
