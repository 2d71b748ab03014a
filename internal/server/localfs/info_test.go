//go:build linux

package localfs

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestLimits are those of file systems that a machine may have.
func TestLimits(t *testing.T) {
	var born, unborn linux.Stat
	born.Mask = unix.STATX_BTIME
	for _, c := range []struct {
		magic int64
		st    *linux.Stat
		size  uint64
		delta time.Duration
	}{
		{unix.EXT4_SUPER_MAGIC, &born, 16<<40 - 4096, 1},
		{unix.EXT4_SUPER_MAGIC, &unborn, 16<<40 - 4096, time.Second},
		{unix.XFS_SUPER_MAGIC, &born, math.MaxInt64, 1},
		{magicVFAT, &unborn, 4<<30 - 1, 2 * time.Second},
	} {
		if size, delta := maxFileSize(c.magic, 4096), timeDelta(c.magic, c.st); size != c.size || delta != c.delta {
			t.Errorf("%#x: files of %d bytes and times of %v, want %d and %v", c.magic, size, delta, c.size, c.delta)
		}
	}
}

// testInfo asks a real ext4, one with small inodes, and one whose directory folds case,
// and holds what they say against what they do.
func testInfo(t *testing.T, r *mountRig, o Options) {
	for _, c := range []struct {
		name    string
		options []string
	}{{"plain", nil}, {"seconds", []string{"-I", "128"}}, {"folds", []string{"-O", "casefold"}}} {
		name := c.name
		dir, err := r.tryExt4(name, c.options...)
		if name == "folds" && err == nil {
			dir = r.mkdir(dir, "sub")
			err = exec.Command("chattr", "+F", dir).Run()
		}
		if err != nil {
			t.Logf("NOT TESTED: no ext4 %q here: %v", c.options, err)
			continue
		}
		f := must[*FS](t)(New(dir, o.anew(t)))
		i, err := f.Info(t.Context(), root(t, f), vfs.InfoLimits|vfs.InfoNames)
		if err != nil {
			t.Fatal(err)
		}
		r.put(filepath.Join(dir, "name"), "")
		if _, err := os.Stat(filepath.Join(dir, "NAME")); (err == nil) != i.CaseInsensitive || i.CaseInsensitive != (name == "folds") {
			t.Errorf("%s: case insensitive: %v, and the other case: %v", name, i.CaseInsensitive, err)
		}
		if err := os.Truncate(filepath.Join(dir, "name"), int64(i.MaxFileSize)); err != nil {
			t.Errorf("%s: a file of the largest size: %v", name, err)
		}
		if err := os.Truncate(filepath.Join(dir, "name"), int64(i.MaxFileSize)+1); err == nil {
			t.Errorf("%s: a file may have more than %d bytes", name, i.MaxFileSize)
		}
		if (i.TimeDelta == time.Second) != (name == "seconds") {
			t.Errorf("%s: times of %v", name, i.TimeDelta)
		}
		closeFS(t, f)
	}
}

// TestCommitTakesRights has a file written by its owner and committed by another.
func TestCommitTakesRights(t *testing.T) {
	needRoot(t)
	bothModes(t, func(t *testing.T, o Options) {
		f := open(t, t.TempDir(), o)
		x := mkfile(t, f, root(t, f), "name", "secret")
		if err := chmod(t, f, x, 0o600); err != nil {
			t.Fatal(err)
		}
		file, _, err := f.As(bob()).Open(t.Context(), vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareWrite})
		if err != nil {
			t.Fatal(err) // it is open, and so the rights are asked for by what follows
		}
		wantErr(t, file.Commit(t.Context(), 0, 0, new(vfs.Written)), vfs.ErrAccess)
		if err := file.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := f.Snapshot(); s.Syncs != 0 {
			t.Errorf("%d syncs for who may not write", s.Syncs)
		}
	})
}

// TestUnreadableDirectory makes what is new in a directory stable that this process may
// change and not read.
func TestUnreadableDirectory(t *testing.T) {
	if isRoot() {
		t.Skip("root may read all; TestUnprivileged comes here")
	}
	dir := t.TempDir()
	f := open(t, dir, mapOptions(t))
	drop := mkdir(t, f, root(t, f), "drop")
	if err := chmod(t, f, drop, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must[bool](t)(true, os.Chmod(filepath.Join(dir, "drop"), 0o700)) })
	mkfile(t, f, drop, "name", "")
	if err := f.Sync(t.Context(), drop); err != nil {
		t.Error(err)
	}
}
