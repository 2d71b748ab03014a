//go:build linux

package localfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// testMountsSealed hands out files of what is mounted below the root. Neither they
// nor what they were opened through keep anybody from unmounting it.
func testMountsSealed(t *testing.T, r *mountRig, o Options) {
	deeper := []string{r.tmpfs("mem"), r.tmpfs("mem/deeper"), r.bind("bound")}
	r.put(filepath.Join(r.dir, "plain", "file"), "plain")
	o = o.anew(t)
	o.CrossMounts = true
	f := must[*FS](t)(New(r.dir, o))
	before := f.Snapshot().Open
	for path, want := range map[string]string{
		"mem/file": "in mem", "mem/deeper/file": "in mem/deeper", "bound/sub/file": "shared", "plain/file": "plain",
	} {
		x, a := r.walk(f, path)
		for range 2 {
			file, got := hostOpen(t, f, x, vfs.HostOpen{Access: vfs.ShareRead, Sealed: true})
			if got.FileID != a.FileID || got.FSID != a.FSID {
				t.Errorf("%s: attributes %+v, want %+v", path, got, a)
			}
			if got := string(must[[]byte](t)(io.ReadAll(file))); got != want {
				t.Errorf("%s: %q", path, got)
			}
			_, err := unix.Open(linux.ProcPath(int(file.Fd())), unix.O_WRONLY, 0)
			wantErr(t, err, unix.EROFS)
		}
	}
	if n := f.Snapshot().Open; n < before+4 {
		t.Errorf("%d descriptors are counted, %d before there were four doubles", n, before)
	}
	for _, p := range []string{deeper[1], deeper[2]} {
		if err := unix.Unmount(p, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}
	if x, _ := r.walk(f, "mem/file"); !x.IsZero() {
		hostOpen(t, f, x, vfs.HostOpen{Access: vfs.ShareRead, Sealed: true})
	}
	closeFS(t, f)
	if err := unix.Unmount(deeper[0], 0); err != nil {
		t.Errorf("umount after Close: %v", err)
	}
}

// testMountsWatched watches a file by one mount and changes it by another, by which it
// has another handle.
func testMountsWatched(t *testing.T, r *mountRig, o Options) {
	r.put(filepath.Join(r.dir, "plain", "file"), "plain")
	r.mount(filepath.Join(r.dir, "plain"), "", "twin", unix.MS_BIND, "")
	usePoller(t)
	f := r.open(o, true)
	x, _ := r.walk(f, "plain/file")
	y, _ := r.walk(f, "twin/file")
	if x == y {
		t.Fatal("one handle")
	}
	w, _ := hear(t, f, x)
	if err := chmod(t, f, y, 0o640); err != nil {
		t.Fatal(err)
	}
	if got := w.take(); got&vfs.ChangeRights == 0 {
		t.Errorf("told %b when the change is answered", got)
	}
}

// testOverlaySealed serves what the root of a container is made of.
func testOverlaySealed(t *testing.T, r *mountRig, o Options) {
	mem := r.tmpfs("mem")
	for _, name := range []string{"lower", "upper", "work"} {
		if err := unix.Mkdir(filepath.Join(mem, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.put(filepath.Join(mem, "lower", "file"), "below")
	data := "lowerdir=" + mem + "/lower,upperdir=" + mem + "/upper,workdir=" + mem + "/work"
	if o.Handles == HandlesKernel {
		data += ",index=on,nfs_export=on"
	}
	top := filepath.Join(r.dir, "plain")
	if err := unix.Mount("overlay", top, "overlay", 0, data); err != nil {
		t.Skipf("NOT TESTED: no overlayfs here: %v", err)
	}
	f := must[*FS](t)(New(top, o.anew(t)))
	x, _ := r.walk(f, "file")
	file, _ := hostOpen(t, f, x, vfs.HostOpen{Access: vfs.ShareRead, Sealed: true})
	if err := write(t, f, x); err != nil { // and so it is copied up
		t.Fatal(err)
	}
	again, _ := hostOpen(t, f, x, vfs.HostOpen{Access: vfs.ShareRead, Sealed: true})
	for _, file := range []*os.File{file, again} {
		if got := string(must[[]byte](t)(io.ReadAll(file))); got != "welow" {
			t.Errorf("%q is read after the file was copied up", got)
		}
		_, err := unix.Open(linux.ProcPath(int(file.Fd())), unix.O_WRONLY, 0)
		wantErr(t, err, unix.EROFS)
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	closeFS(t, f)
	if err := errors.Join(unix.Unmount(top, 0), unix.Unmount(mem, 0)); err != nil {
		t.Errorf("umount after Close: %v", err)
	}
}
