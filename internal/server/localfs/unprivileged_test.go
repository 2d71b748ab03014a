//go:build linux

package localfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestUnprivileged runs the tests of this package once more, as a user without
// privilege, if this is root.
func TestUnprivileged(t *testing.T) {
	needRoot(t)
	const uid = 12345
	tmp := inMemory(t)
	if err := os.Chown(tmp, uid, uid); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.count=1", "-test.skip=^TestLayers$") // that reads files of the source
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "NFSBOX_REQUIRE=") // not of root from the child
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as user %d: %v\n%s", uid, err, out)
	}
	if !strings.Contains(string(out), "PASS") {
		t.Errorf("as user %d nothing was tested:\n%s", uid, out)
	}
}

// TestSquashed checks what callers may for which the process cannot act.
func TestSquashed(t *testing.T) {
	if isRoot() {
		t.Skip("root acts for anyone; TestUnprivileged comes here")
	}
	dir := t.TempDir()
	f := open(t, dir, mapOptions(t))
	if !f.Squashed() {
		t.Fatal("not squashed")
	}
	r := root(t, f)
	home := mkdir(t, f, r, "home")
	x := mkfile(t, f, home, "x", "x")
	own := f.As(&vfs.Caller{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())})
	if err := write(t, own, x); err != nil {
		t.Errorf("the process' own user: %v", err)
	}
	b := f.As(bob())
	if got := content(t, b, x); got != "w" {
		t.Errorf("bob reads %q", got)
	}
	wantErr(t, write(t, b, x), vfs.ErrAccess)
	wantErr(t, chmod(t, b, x, 0o777), vfs.ErrPerm)
	_, _, _, err := b.Create(t.Context(), home, "y", &vfs.CreateHow{Type: vfs.TypeDir})
	wantErr(t, err, vfs.ErrAccess)
	_, err = b.Remove(t.Context(), home, "x", false)
	wantErr(t, err, vfs.ErrAccess)
	_, _, err = b.Rename(t.Context(), home, "x", home, "y")
	wantErr(t, err, vfs.ErrAccess)
	if err := chmod(t, f, home, 0o1777); err != nil {
		t.Fatal(err)
	}
	_, err = b.Remove(t.Context(), home, "x", false) // sticky
	wantErr(t, err, vfs.ErrPerm)
	if _, _, _, err := b.Create(t.Context(), home, "y", &vfs.CreateHow{Type: vfs.TypeDir}); err != nil {
		t.Errorf("bob in a directory for all: %v", err)
	}
	exclusive := &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateExclusive}
	_, _, _, err = b.Create(t.Context(), home, "z", exclusive) // whose mode he could not set
	wantErr(t, err, vfs.ErrNotSupp)
	_, _, err = b.Open(t.Context(), vfs.At{Dir: home, Name: "z"}, &vfs.OpenHow{Access: vfs.ShareWrite, Create: exclusive})
	wantErr(t, err, vfs.ErrNotSupp)
	if _, err := os.Lstat(filepath.Join(dir, "home", "z")); err == nil {
		t.Error("what was refused is there")
	}
	if err := chmod(t, f, home, 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, _, err = b.Lookup(t.Context(), home, "x")
	wantErr(t, err, vfs.ErrAccess)
	if err := os.Chmod(filepath.Join(dir, "home", "x"), 0o640); err != nil {
		t.Fatal(err)
	}
	_, err = readAll(t.Context(), b, x)
	wantErr(t, err, vfs.ErrAccess)
	if got, _, err := b.Access(t.Context(), x, vfs.AccessRead); got != 0 || err != nil {
		t.Errorf("bob's rights are %#x, %v", got, err)
	}
}

func TestNewRefusesKernelHandlesItCannotHave(t *testing.T) {
	if isRoot() {
		t.Skip("root may have them; TestUnprivileged comes here")
	}
	if _, err := New(t.TempDir(), Options{Handles: HandlesKernel}); err == nil {
		t.Skip("this kernel gives handles to anyone")
	}
	if _, err := New(t.TempDir(), Options{}); err == nil || !strings.Contains(err.Error(), "state directory") {
		t.Errorf("neither handles nor a place for a map: %v", err)
	}
	f := open(t, t.TempDir(), Options{StateDir: t.TempDir()})
	if f.HandleMode() != HandlesMap {
		t.Errorf("mode %v", f.HandleMode())
	}
}
