//go:build linux

package localfs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

func (r *mountRig) mkdir(dir, name string) string {
	r.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(p, 0o755); err != nil {
		r.Fatal(err)
	}
	return p
}

// ext4 mounts a new file system of that kind on name.
func (r *mountRig) ext4(name string, options ...string) string {
	r.Helper()
	p, err := r.tryExt4(name, options...)
	if err != nil {
		need.Missing(r, "root", fmt.Sprintf("no loop device here: %v", err))
	}
	return p
}

// tryExt4 is ext4 for what not every kernel can mount.
func (r *mountRig) tryExt4(name string, options ...string) (string, error) {
	r.Helper()
	mkfs := need.Tool(r, "root", "mkfs.ext4")
	image := filepath.Join(r.outside, "..", name+".img")
	r.put(image, "")
	if err := os.Truncate(image, 16<<20); err != nil {
		r.Fatal(err)
	}
	if out, err := exec.CommandContext(r.Context(), mkfs, append(options, "-q", "-F", image)...).CombinedOutput(); err != nil {
		r.Fatalf("mkfs.ext4: %v\n%s", err, out)
	}
	p := r.mkdir(r.dir, name)
	if out, err := exec.CommandContext(r.Context(), "mount", "-o", "loop", image, p).CombinedOutput(); err != nil {
		return "", fmt.Errorf("mount: %w: %s", err, out)
	}
	r.Cleanup(func() {
		if err := unix.Unmount(p, unix.MNT_DETACH); err != nil {
			r.Errorf("umount %s: %v", name, err)
		}
	})
	return p, nil
}

// overlay mounts one on name, with its layers in base.
func (r *mountRig) overlay(base, name, options string) string {
	r.Helper()
	for _, layer := range []string{"lower", "upper", "work"} {
		if err := os.MkdirAll(filepath.Join(base, layer), 0o755); err != nil {
			r.Fatal(err)
		}
	}
	r.put(filepath.Join(base, "lower", "below"), "below")
	data := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work%[2]s", base, options)
	return r.mount("overlay", "overlay", name, 0, data)
}

// testStaleForEver has inode numbers used again, under the old name and under
// others, by any caller. What a handle that was stale may still open is nothing.
func testStaleForEver(t *testing.T, r *mountRig, o Options) {
	layers := ""
	if o.Handles == HandlesKernel {
		layers = ",index=on,nfs_export=on"
	}
	disk := r.ext4("disk")
	for name, dir := range map[string]string{
		"ext4": r.ext4("ext4"), "tmpfs": r.tmpfs("tmpfs"), "overlay": r.overlay(disk, "layers", layers),
	} {
		t.Run(name, func(t *testing.T) {
			o := o.anew(t)
			f := must[*FS](t)(New(dir, o))
			for i := range 8 {
				f = reuse(t, f, dir, o, &reuseCase{asked: i&1 != 0, otherName: i&2 != 0, restarted: i&4 != 0}, name != "tmpfs")
			}
			closeFS(t, f)
		})
	}
}

// testCopiedUp changes files of a lower layer where nothing but the birth tells objects
// apart, as on the overlays of old kernels.
func testCopiedUp(t *testing.T, r *mountRig, o Options) {
	if o.Handles != HandlesMap {
		t.Skip("the kernel's handles tell objects apart by themselves")
	}
	top := r.overlay(r.ext4("disk"), "layers", "")
	r.put(filepath.Join(r.dir, "disk", "lower", "moved"), "moved")
	o = o.anew(t)
	o.noHandles = true
	f := must[*FS](t)(New(top, o))
	x, _ := r.walk(f, "below")
	y, _ := r.walk(f, "moved")
	if err := chmod(t, f, x, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Rename(t.Context(), root(t, f), "moved", root(t, f), "moved again"); err != nil {
		t.Fatal(err)
	}
	f = reopenFS(t, f, top, o)
	for h, want := range map[vfs.Handle]string{x: "below", y: "moved"} {
		if got := content(t, f, h); got != want {
			t.Errorf("%q reads %q after it was copied up", want, got)
		}
	}
	closeFS(t, f)
}

// reuseCase is how an inode number comes to be used again.
type reuseCase struct {
	asked     bool // the handle has answered that it is stale before
	otherName bool // what has the number now is called otherwise
	restarted bool // the server was, in between
}

func reuse(t *testing.T, f *FS, dir string, o Options, c *reuseCase, again bool) *FS {
	t.Helper()
	name := filepath.Join(dir, "name")
	x := mkfile(t, f, root(t, f), "name", "old")
	was := inodeOf(t, name)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if c.asked {
		_, err := f.GetAttr(t.Context(), x, vfs.MaskV3)
		wantErr(t, err, vfs.ErrStale)
	} else {
		f.fds.Forget(x) // whose number would not be free otherwise
	}
	if c.restarted {
		f = reopenFS(t, f, dir, o)
	}
	if c.otherName {
		name = filepath.Join(dir, "other")
	}
	secret := func(name string) { // by a program of this host
		if err := os.WriteFile(name, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	for secret(name); again && inodeOf(t, name) != was; secret(name) {
		if len(all) == 200 {
			t.Fatalf("%+v: the inode number was not used again", *c)
		}
		// What is in the way of the number's use is kept until it has come.
		all = append(all, fmt.Sprintf("%s.%d", name, len(all)))
		if err := os.Rename(name, all[len(all)-1]); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.GetAttr(t.Context(), x, vfs.MaskV3)
	wantErr(t, err, vfs.ErrStale)
	if err := write(t, f, x); !vfsStale(err) {
		t.Errorf("%+v: a write by the old handle: %v", *c, err)
	}
	if got := string(must[[]byte](t)(os.ReadFile(name))); got != "secret" {
		t.Errorf("%+v: another file reads %q after a write by an old handle", *c, got)
	}
	for _, name := range append(all, name) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func vfsStale(err error) bool { s, _ := vfs.StatusOf(err); return s == vfs.ErrStale }

func inodeOf(t *testing.T, name string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}
