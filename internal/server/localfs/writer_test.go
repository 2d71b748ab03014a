//go:build linux

package localfs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// modest makes the test's thread one that has given up CAP_SYS_RESOURCE, as a
// server should, and skips the test without root.
func modest(t *testing.T) {
	t.Helper()
	var own linux.Caps
	if err := linux.GetCaps(&own); err != nil {
		t.Fatal(err)
	}
	if !isRoot() || !own.Has(unix.CAP_SETUID) || !own.Has(unix.CAP_SETGID) {
		need.Missing(t, "root", "writing for others takes root")
	}
	less := own.Without(unix.CAP_SYS_RESOURCE)
	runtime.LockOSThread()
	if err := linux.SetCaps(&less); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := linux.SetCaps(&own); err != nil {
			t.Fatal(err) // and the thread stays locked
		}
		runtime.UnlockOSThread()
	})
}

// public is a file of root's that all may write.
func public(t *testing.T, dir string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(dir, "x")
	if err := os.WriteFile(name, []byte("content"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestWriterIdentity looks at which writes are made as the caller, and that no
// privilege is left on what somebody else has written to.
func TestWriterIdentity(t *testing.T) {
	modest(t)
	for _, c := range []struct {
		name     string
		mode     os.FileMode
		switched uint64
	}{
		{"plain", 0o666, 0},
		{"executable", 0o777, 0},
		{"set-uid", 0o777 | os.ModeSetuid, 1},
		{"set-gid", 0o777 | os.ModeSetgid, 1},
		{"both", 0o777 | os.ModeSetuid | os.ModeSetgid, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			name := public(t, dir, c.mode)
			f := open(t, dir, Options{Handles: HandlesMap, Volatile: true})
			x, _, _, err := f.Lookup(t.Context(), root(t, f), "x")
			if err != nil {
				t.Fatal(err)
			}
			if f.nearReserve() {
				t.Skip("NOT TESTED: the disk is nearly full")
			}
			if err := write(t, f.As(alice()), x); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(name)
			if err != nil || info.Mode() != c.mode.Perm() {
				t.Errorf("mode is %v, %v; want %v", info.Mode(), err, c.mode.Perm())
			}
			if n := f.Snapshot().AsCaller; n != c.switched {
				t.Errorf("%d writes were made as the caller, want %d", n, c.switched)
			}
			if err := os.Chmod(name, c.mode); err != nil {
				t.Fatal(err)
			}
			if err := write(t, f, x); err != nil { // root keeps what it likes
				t.Fatal(err)
			}
			if info, err = os.Stat(name); err != nil || info.Mode() != c.mode {
				t.Errorf("after root's own write the mode is %v, %v; want %v", info.Mode(), err, c.mode)
			}
		})
	}
}

// TestWriterWithResource: a process that keeps CAP_SYS_RESOURCE has it laid down.
func TestWriterWithResource(t *testing.T) {
	dir := t.TempDir()
	public(t, dir, 0o666)
	f := open(t, dir, Options{Handles: HandlesMap, Volatile: true})
	if f.Squashed() {
		need.Missing(t, "root", "it takes root")
	}
	if !f.creds.Has(unix.CAP_SYS_RESOURCE) {
		t.Skip("NOT TESTED: this root has no CAP_SYS_RESOURCE to lay down")
	}
	x, _, _, err := f.Lookup(t.Context(), root(t, f), "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := write(t, f.As(alice()), x); err != nil {
		t.Fatal(err)
	}
	if n := f.Snapshot().AsCaller; n != 1 {
		t.Errorf("%d writes were made as the caller, want 1", n)
	}
}

// TestFileCapabilitiesFall writes to a program with capabilities, on the way
// that does not take on the writer's identity.
func TestFileCapabilitiesFall(t *testing.T) {
	modest(t)
	dir := t.TempDir()
	name := public(t, dir, 0o777)
	capability := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // VFS_CAP_REVISION_2, effective, CAP_NET_BIND_SERVICE
	const attr = "security.capability"
	if err := unix.Setxattr(name, attr, capability, 0); err != nil {
		t.Skipf("NOT TESTED: no file capabilities here: %v", err)
	}
	f := open(t, dir, Options{Handles: HandlesMap, Volatile: true})
	x, _, _, err := f.Lookup(t.Context(), root(t, f), "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := write(t, f.As(alice()), x); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Getxattr(name, attr, nil); !errors.Is(err, unix.ENODATA) {
		t.Errorf("the capabilities are still there: %v", err)
	}
}

// mounted mounts something on a new directory until the test ends.
func mounted(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", append(args, dir)...).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: mount %v: %v: %s", args, err, out)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fill writes to x as c until there is no more room, and returns how much it was.
func fill(t *testing.T, f *FS, c *vfs.Caller, x vfs.Handle, most int) (n int, err error) {
	t.Helper()
	file, _, err := f.As(c).Open(t.Context(), vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 256<<10)
	var w vfs.Written
	for n < most && err == nil {
		var k int
		k, err = file.WriteAt(t.Context(), p, uint64(n), vfs.Unstable, &w)
		n += k
	}
	if e := file.Close(context.Background()); e != nil {
		t.Error(e)
	}
	return n, err
}

// TestQuota: the owner's quota binds a write that no longer takes on his
// identity.
func TestQuota(t *testing.T) {
	modest(t)
	dir := mounted(t, "-t", "tmpfs", "-o", "usrquota,usrquota_block_hardlimit=1m", "tmpfs")
	f := open(t, dir, Options{Handles: HandlesMap, Volatile: true})
	x, _, _, err := f.As(alice()).Create(t.Context(), root(t, f), "x", &vfs.CreateHow{Type: vfs.TypeReg})
	if err != nil {
		t.Fatal(err)
	}
	n, err := fill(t, f, alice(), x, 4<<20)
	if !errors.Is(err, vfs.ErrQuota) || n > 1<<20 {
		t.Errorf("%d bytes are written under a quota of 1 MiB: %v", n, err)
	}
}

// TestReserve fills a disk of which a fifth is root's.
func TestReserve(t *testing.T) {
	modest(t)
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	img := filepath.Join(t.TempDir(), "disk")
	const size = 48 << 20
	if err := os.WriteFile(img, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(img, size); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, "-q", "-F", "-m", "20", img).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := mounted(t, "-o", "loop", img)
	f := open(t, dir, Options{Handles: HandlesMap, Volatile: true})
	var before, after unix.Statfs_t
	if err := unix.Statfs(dir, &before); err != nil {
		t.Fatal(err)
	}
	reserved := before.Bfree - before.Bavail
	x, _, _, err := f.As(alice()).Create(t.Context(), root(t, f), "x", &vfs.CreateHow{Type: vfs.TypeReg})
	if err != nil {
		t.Fatal(err)
	}
	n, err := fill(t, f, alice(), x, size)
	wantErr(t, err, vfs.ErrNoSpace)
	if err := unix.Statfs(dir, &after); err != nil {
		t.Fatal(err)
	}
	if after.Bfree < reserved*9/10 {
		t.Errorf("alice wrote %d bytes and left %d blocks of the %d that are root's", n, after.Bfree, reserved)
	}
	if more, err := fill(t, f, nil, mkfile(t, f, root(t, f), "y", ""), 1<<20); err != nil {
		t.Errorf("root, who has room, wrote %d bytes: %v", more, err)
	}
}
