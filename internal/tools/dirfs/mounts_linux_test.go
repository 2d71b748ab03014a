package dirfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
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

// TestRootOverlay changes what lies in the lower layer of an overlay, which is thereby
// copied to the upper one: it stays the same object.
func TestRootOverlay(t *testing.T) {
	need.Root(t, "mounts")
	top := t.TempDir()
	for _, dir := range []string{"lower/dir/sub", "upper", "work", "merged"} {
		must(t, os.MkdirAll(filepath.Join(top, dir), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(top, "lower/dir/file"), []byte("lower"), 0o600))
	merged := filepath.Join(top, "merged")
	layers := "lowerdir=" + filepath.Join(top, "lower") + ",upperdir=" + filepath.Join(top, "upper") + ",workdir=" + filepath.Join(top, "work")
	if err := unix.Mount("overlay", merged, "overlay", 0, layers); err != nil {
		need.Missing(t, "overlay", "mount: "+err.Error())
	}
	t.Cleanup(func() { must(t, unix.Unmount(merged, unix.MNT_DETACH)) })
	f := open(t, merged, Options{Descriptors: 9})
	var all []vfs.Handle
	for _, path := range []string{"dir", "dir/sub", "dir/file"} {
		root, _, err := f.Root(t.Context())
		must(t, err)
		r, err := vfs.Resolve(t.Context(), f, root, path, false)
		must(t, err)
		all = append(all, r.Handle)
	}
	for range 2 {
		for i, h := range all {
			if _, err := f.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}, nil); err != nil {
				t.Errorf("setattr of %d: %v", i, err)
			}
		}
		_, _, _, err := f.Create(t.Context(), all[1], "new", &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked})
		must(t, err)
		if got := content(t, f, all[2]); got != "lower" {
			t.Errorf("%q", got)
		}
		must(t, f.Sync(t.Context(), all[1]))
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
