//go:build linux

package server

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/v3suite"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestV3SuiteLocalfs runs with the kernel's handles and with the map of them, as
// the user that the tests run as.
func TestV3SuiteLocalfs(t *testing.T) {
	for _, mode := range []localfs.Mode{localfs.HandlesKernel, localfs.HandlesMap} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel() // it waits for the disk
			root := os.Geteuid() == 0
			if mode == localfs.HandlesKernel && !root {
				t.Skip("the kernel's handles are root's")
			}
			home := t.TempDir()
			readOnly := localDir(t, freshDir(t, home, "ro"), mode)
			plant(t, readOnly)
			target := v3suite.Target{Export: "/", ReadOnly: "/ro", Identities: root}
			if !root { // all modes are the server's own user's to set
				target.Caller = oncrpc.AuthSys{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
			}
			exports := []export.Export{
				{Path: "/", FS: localDir(t, freshDir(t, home, "main"), mode)},
				{Path: "/ro", FS: readOnly, ReadOnly: true},
			}
			if small := freshDir(t, home, "small"); mountSmall(t, small) {
				target.Small, target.Other = "/small", "/small"
				exports = append(exports, export.Export{Path: "/small", FS: localDir(t, small, mode)})
			}
			suite(t, target, exports...)
		})
	}
}

// freshDir is a new directory that anybody may write to.
func freshDir(t *testing.T, home, name string) string {
	t.Helper()
	dir := filepath.Join(home, name)
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { // past the umask
		t.Fatal(err)
	}
	return dir
}

// mountSmall mounts a file system of 1 MiB on dir, if that is possible.
func mountSmall(t *testing.T, dir string) bool {
	t.Helper()
	if err := syscall.Mount("small", dir, "tmpfs", 0, "size=1m,mode=777"); err != nil {
		t.Logf("NOT TESTED: space and borders of file systems (mount: %v)", err)
		return false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return true
}

// localDir serves a directory of the disk.
func localDir(t *testing.T, dir string, mode localfs.Mode) *localfs.FS {
	t.Helper()
	fs, err := localfs.New(dir, localfs.Options{Handles: mode, StateDir: t.TempDir()})
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
