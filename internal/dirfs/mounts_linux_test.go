package dirfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// mounted is a directory with a file system mounted on "mount", and with a file of
// another place bound over "bound".
func mounted(t *testing.T) string {
	t.Helper()
	need.Root(t, "mounts")
	top := t.TempDir()
	mount, bound, other := filepath.Join(top, "mount"), filepath.Join(top, "bound"), filepath.Join(t.TempDir(), "other")
	must(t, os.Mkdir(mount, 0o700))
	must(t, os.WriteFile(bound, []byte("beneath"), 0o600))
	must(t, os.WriteFile(other, []byte("bound"), 0o600))
	if err := unix.Mount("none", mount, "tmpfs", 0, ""); err != nil {
		need.Missing(t, "root", "mount: "+err.Error())
	}
	t.Cleanup(func() { must(t, unix.Unmount(mount, unix.MNT_DETACH)) })
	must(t, unix.Mount(other, bound, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(bound, unix.MNT_DETACH)) })
	must(t, os.MkdirAll(filepath.Join(mount, "deeper", "still"), 0o700))
	must(t, os.WriteFile(filepath.Join(mount, "deeper", "file"), []byte("mounted"), 0o600))
	return top
}

func TestRootMountsAreCrossed(t *testing.T) {
	f := open(t, mounted(t), Options{Descriptors: 12})
	root, rootAttr, err := f.Root(t.Context())
	must(t, err)
	r, err := vfs.Resolve(t.Context(), f, root, "mount/deeper/file", false)
	must(t, err)
	if r.Attr.FSID == rootAttr.FSID {
		t.Error("what is mounted has the root's file system id")
	}
	if got := content(t, f, r.Handle); got != "mounted" {
		t.Errorf("%q", got)
	}
	b, _, _, err := f.Lookup(t.Context(), root, "bound")
	must(t, err)
	if got := content(t, f, b); got != "bound" {
		t.Errorf("%q", got)
	}
	// Into a mount it goes as well.
	_, _, _, err = f.Create(t.Context(), r.Dir, "new", &vfs.CreateHow{Type: vfs.TypeReg})
	must(t, err)
	if n, err := visit(t.Context(), f, root); err != nil || n != 6 {
		t.Errorf("%d entries, %v; want 6", n, err)
	}
	if f.Mounts() != 0 {
		t.Errorf("%d mounts are said to be left", f.Mounts())
	}
}

func TestRootOneFileSystem(t *testing.T) {
	f := open(t, mounted(t), Options{OneFileSystem: true})
	root, _, err := f.Root(t.Context())
	must(t, err)
	if n, err := visit(t.Context(), f, root); err != nil || n != 2 {
		t.Errorf("%d entries, %v; want the mount point, and the file", n, err)
	}
	if f.Mounts() != 1 {
		t.Errorf("%d mounts are said to be left, want 1", f.Mounts())
	}
	mount, attr, _, err := f.Lookup(t.Context(), root, "mount")
	must(t, err)
	if attr.Type != vfs.TypeDir {
		t.Errorf("the mount point is a %v", attr.Type)
	}
	if _, _, _, err := f.Lookup(t.Context(), mount, "deeper"); err != vfs.ErrNoEnt { //nolint:errorlint // returned as it is
		t.Errorf("lookup beyond: %v", err)
	}
}

func content(t *testing.T, f *FS, h vfs.Handle) string {
	t.Helper()
	file, _, err := f.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	must(t, err)
	p := make([]byte, 100)
	n, _, err := vfs.ReadFull(t.Context(), file, p, 0)
	must(t, err)
	must(t, file.Close(t.Context()))
	return string(p[:n])
}
