//go:build linux

package localfs

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// mountsEnv says that this process has a mount namespace of its own.
const mountsEnv = "LOCALFS_MOUNTS"

// TestMounts runs the tests of what is mounted below the root in a process of
// its own, whose mounts nobody else sees.
func TestMounts(t *testing.T) {
	if os.Getenv(mountsEnv) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		bothModes(t, func(t *testing.T, o Options) {
			for _, test := range mountTests {
				t.Run(test.name, func(t *testing.T) { test.run(t, newMountRig(t), o) })
			}
		})
		return
	}
	needRoot(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMounts$", "-test.v", "-test.timeout=60s")
	child.Env = append(os.Environ(), mountsEnv+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	out, err := child.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		need.Missing(t, "root", "no mount namespace can be made here")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range mountTests {
		if !bytes.Contains(out, []byte("--- PASS: TestMounts/map/"+test.name)) {
			t.Errorf("%s has not run:\n%s", test.name, out)
		}
	}
}

var mountTests = []struct {
	name string
	run  func(*testing.T, *mountRig, Options)
}{
	{"hidden", testHidden},
	{"crossed", testCrossed},
	{"survive-restart", testCrossedRestart},
	{"parents", testCrossedParents},
	{"apart", testCrossedApart},
	{"come-and-go", testMountsComeAndGo},
	{"uncrossed-again", testUncrossedAgain},
	{"no-handles", testMountedWithoutHandles},
	{"sealed", testMountsSealed},
	{"watched", testMountsWatched},
	{"sealed-overlay", testOverlaySealed},
	{"stale-for-ever", testStaleForEver},
	{"copied-up", testCopiedUp},
	{"info", testInfo},
}

// mountRig is a directory to export, and the errors that were reported.
type mountRig struct {
	*testing.T
	dir     string // <temporary>/export
	outside string // <temporary>/outside/shared

	mu       sync.Mutex
	reported []error
}

func newMountRig(t *testing.T) *mountRig {
	t.Helper()
	base := t.TempDir()
	r := &mountRig{T: t, dir: filepath.Join(base, "export"), outside: filepath.Join(base, "outside", "shared")}
	for _, d := range []string{r.dir, r.outside, filepath.Join(r.outside, "sub"), filepath.Join(r.dir, "plain")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.put(filepath.Join(r.outside, "..", "secret"), "secret")
	r.put(filepath.Join(r.outside, "sub", "file"), "shared")
	return r
}

func (r *mountRig) put(path, s string) {
	r.Helper()
	if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
		r.Fatal(err)
	}
}

// mount mounts something on name below the export until the test ends.
func (r *mountRig) mount(what, typ, name string, flags uintptr, data string) string {
	r.Helper()
	p := filepath.Join(r.dir, name)
	if err := os.MkdirAll(p, 0o755); err != nil {
		r.Fatal(err)
	}
	if err := unix.Mount(what, p, typ, flags, data); err != nil {
		r.Fatalf("mount %s on %s: %v", typ, name, err)
	}
	r.Cleanup(func() {
		if err := unix.Unmount(p, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			r.Errorf("umount %s: %v", name, err)
		}
	})
	return p
}

func (r *mountRig) tmpfs(name string) string {
	r.Helper()
	p := r.mount("tmpfs", "tmpfs", name, 0, "size=1m,nr_inodes=100")
	r.put(filepath.Join(p, "file"), "in "+name)
	return p
}

func (r *mountRig) bind(name string) string {
	r.Helper()
	return r.mount(r.outside, "", name, unix.MS_BIND, "")
}

// open serves the export.
func (r *mountRig) open(o Options, cross bool) *FS {
	r.Helper()
	o.CrossMounts = cross
	o.Report = func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reported = append(r.reported, err)
	}
	return open(r.T, r.dir, o.anew(r.T))
}

func (r *mountRig) reports() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reported)
}

// walk looks a path up, from the root.
func (r *mountRig) walk(f vfs.FS, path string) (x vfs.Handle, a vfs.Attr) {
	r.Helper()
	x = root(r.T, f)
	for part := range strings.SplitSeq(path, "/") {
		var err error
		if x, a, _, err = f.Lookup(r.Context(), x, part); err != nil {
			r.Fatalf("lookup %s of %s: %v", part, path, err)
		}
	}
	return x, a
}

// list returns the entries of a directory by their names.
func (r *mountRig) list(f vfs.FS, dir vfs.Handle) map[string]vfs.Entry {
	r.Helper()
	all := make(map[string]vfs.Entry)
	for e, err := range f.ReadDir(r.Context(), dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			r.Fatal(err)
		}
		all[string(e.Name)] = *e
	}
	return all
}

func testHidden(t *testing.T, r *mountRig, o Options) {
	r.tmpfs("mem")
	r.bind("bound")
	f := r.open(o, false)
	for _, name := range []string{"mem", "bound"} {
		_, _, _, err := f.Lookup(t.Context(), f.root, name)
		wantErr(t, err, vfs.ErrNoEnt)
		_, err = f.Remove(t.Context(), f.root, name, true)
		wantErr(t, err, vfs.ErrNoEnt)
		_, _, err = f.Rename(t.Context(), f.root, name, f.root, "stolen")
		wantErr(t, err, vfs.ErrNoEnt)
		_, _, err = f.Rename(t.Context(), f.root, "plain", f.root, name)
		wantErr(t, err, vfs.ErrAccess) // and not JUKEBOX, upon which clients wait
	}
	if all := r.list(f, f.root); len(all) != 1 {
		t.Errorf("listed: %v", all)
	}
	got := r.reports()
	if len(got) != 2 {
		t.Errorf("reported: %v, want each mount once", got)
	}
	for _, err := range got {
		wantErr(t, err, vfs.ErrXDev)
	}
	// Nor does a listing leave them out in silence.
	f = r.open(o, false)
	if all := r.list(f, f.root); len(all) != 1 {
		t.Errorf("listed: %v", all)
	}
	if again := r.reports()[len(got):]; len(again) != 2 {
		t.Errorf("a listing reports %v, want each mount once", again)
	}
}

func testCrossed(t *testing.T, r *mountRig, o Options) {
	mem := r.tmpfs("mem")
	r.bind("bound")
	f := r.open(o, true)
	rootAttr := attrOf(t, f, f.root)
	listed := r.list(f, f.root)
	for _, name := range []string{"mem", "bound"} {
		x, a := r.walk(f, name)
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(r.dir, name), &st); err != nil {
			t.Fatal(err)
		}
		if a.FSID == rootAttr.FSID || a.FileID != st.Ino || a.Type != vfs.TypeDir {
			t.Errorf("%s: %+v, want the mounted root, inode %d", name, a, st.Ino)
		}
		if e := listed[name]; e.Handle != x || e.Attr.FSID != a.FSID || e.Attr.FileID != a.FileID || e.FileID != a.FileID {
			t.Errorf("%s is listed as %+v", name, e)
		}
		if got := attrOf(t, f, x); got.FSID != a.FSID || got.FileID != a.FileID {
			t.Errorf("%s: GETATTR says %+v", name, got)
		}
	}
	memDir, a := r.walk(f, "mem")
	if _, b := r.walk(f, "bound"); a.FSID == b.FSID {
		t.Error("two mounts have one fsid")
	}
	if _, in := r.walk(f, "mem/file"); in.FSID != a.FSID {
		t.Error("a file has another fsid than the root of its file system")
	}
	info := must[vfs.Info](t)(f.Info(t.Context(), memDir, vfs.InfoSpace))
	if info.TotalBytes != 1<<20 || info.TotalFiles != 100 || info.Homogeneous {
		t.Errorf("the space is not that of the file system: %+v", info)
	}
	// Objects are made, read and written there.
	d := mkdir(t, f, memDir, "made")
	x := mkfile(t, f, d, "file", "hello")
	if got := content(t, f, x); got != "hello" {
		t.Errorf("content %q", got)
	}
	if _, err := os.Stat(filepath.Join(mem, "made", "file")); err != nil {
		t.Error(err)
	}
	for _, to := range []vfs.Handle{f.root, must2(r.walk(f, "bound"))} {
		_, _, err := f.Rename(t.Context(), d, "file", to, "moved")
		wantErr(t, err, vfs.ErrXDev)
		_, _, err = f.Link(t.Context(), x, to, "linked")
		wantErr(t, err, vfs.ErrXDev)
	}
	if _, _, err := f.Rename(t.Context(), d, "file", memDir, "moved"); err != nil {
		t.Error(err)
	}
	_, err := f.Remove(t.Context(), f.root, "mem", true)
	wantErr(t, err, vfs.ErrAccess)
	_, _, err = f.Rename(t.Context(), f.root, "mem", f.root, "moved")
	wantErr(t, err, vfs.ErrAccess)
	if got := r.reports(); len(got) != 0 {
		t.Errorf("reported: %v", got)
	}
	if err := errors.Join(f.Sync(t.Context(), d), f.Sync(t.Context(), memDir)); err != nil {
		t.Error(err)
	}
}

func must2(x vfs.Handle, _ vfs.Attr) vfs.Handle { return x }

func testCrossedRestart(t *testing.T, r *mountRig, o Options) {
	r.tmpfs("mem")
	r.tmpfs("mem/deeper")
	r.bind("bound")
	o = o.anew(t)
	o.CrossMounts = true
	paths := []string{"mem", "mem/file", "mem/deeper", "mem/deeper/file", "bound", "bound/sub", "bound/sub/file", "plain"}
	f := must[*FS](t)(New(r.dir, o))
	handles := make(map[string]vfs.Handle)
	fsids := make(map[string][2]uint64)
	seen := make(map[vfs.Handle]string)
	for _, p := range paths {
		x, a := r.walk(f, p)
		handles[p], fsids[p] = x, a.FSID
		if other := seen[x]; other != "" {
			t.Errorf("%s and %s have one handle", p, other)
		}
		seen[x] = p
	}
	f = reopenFS(t, f, r.dir, o)
	t.Cleanup(func() { closeFS(t, f) })
	for _, p := range slices.Backward(paths) { // the deepest first, which nobody has looked up
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(r.dir, p), &st); err != nil {
			t.Fatal(err)
		}
		a, err := f.GetAttr(t.Context(), handles[p], vfs.MaskV3)
		if err != nil || a.FileID != st.Ino || a.FSID != fsids[p] {
			t.Errorf("%s after a restart: %+v, %v", p, a, err)
		}
	}
	if got := content(t, f, handles["mem/deeper/file"]); got != "in mem/deeper" {
		t.Errorf("content %q", got)
	}
}

// testCrossedParents goes up from everywhere: to the root, and no farther.
func testCrossedParents(t *testing.T, r *mountRig, o Options) {
	r.tmpfs("mem")
	r.tmpfs("mem/deeper")
	r.bind("bound")
	f := r.open(o, true)
	for path, want := range map[string]string{"mem": "", "mem/deeper": "mem", "bound": "", "bound/sub": "bound", "plain": ""} {
		x, _ := r.walk(f, path)
		up, a, _, err := f.Lookup(t.Context(), x, "..")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		expect, wantAttr := f.root, attrOf(t, f, f.root)
		if want != "" {
			expect, wantAttr = r.walk(f, want)
		}
		if up != expect || a.FileID != wantAttr.FileID || a.FSID != wantAttr.FSID {
			t.Errorf("above %s is %v, want %q", path, a, want)
		}
	}
	for x := must2(r.walk(f, "bound/sub")); x != f.root; {
		_, _, _, err := f.Lookup(t.Context(), x, "secret")
		wantErr(t, err, vfs.ErrNoEnt)
		if x, _, _, err = f.Lookup(t.Context(), x, ".."); err != nil {
			t.Fatal(err)
		}
	}
	if x, _, _, err := f.Lookup(t.Context(), f.root, ".."); err != nil || x != f.root {
		t.Errorf("above the root: %v, %v", x, err)
	}
	// What a local program moves out of what is bound is out.
	x, _ := r.walk(f, "bound/sub")
	if err := os.Rename(filepath.Join(r.outside, "sub"), filepath.Join(r.outside, "..", "moved")); err != nil {
		t.Fatal(err)
	}
	d := f.fds.Get(x, fdcache.Path)
	defer f.fds.Unpin(d)
	_, _, err := f.parent(d, vfs.Attr{}) // as if it had gone after it was looked at
	wantErr(t, err, vfs.ErrStale)
	_, err = f.GetAttr(t.Context(), x, vfs.MaskV3)
	wantErr(t, err, vfs.ErrStale)
	_, _, _, err = f.Lookup(t.Context(), x, "file")
	wantErr(t, err, vfs.ErrStale)
}

// testCrossedApart has two file systems on which objects have the same inode
// numbers.
func testCrossedApart(t *testing.T, r *mountRig, o Options) {
	r.tmpfs("one")
	r.tmpfs("two")
	f := r.open(o, true)
	x, a := r.walk(f, "one/file")
	y, b := r.walk(f, "two/file")
	if a.FileID != b.FileID {
		t.Logf("inode numbers %d and %d differ here anyway", a.FileID, b.FileID)
	}
	if x == y || a.FSID == b.FSID {
		t.Error("two objects are one")
	}
	if got := content(t, f, x) + ", " + content(t, f, y); got != "in one, in two" {
		t.Errorf("content %q", got)
	}
}

func testMountsComeAndGo(t *testing.T, r *mountRig, o Options) {
	f := r.open(o, true)
	if _, a := r.walk(f, "plain"); a.FSID != attrOf(t, f, f.root).FSID {
		t.Error("a plain directory has an fsid of its own")
	}
	p := r.tmpfs("plain")
	x, a := r.walk(f, "plain/file")
	if got := content(t, f, x); got != "in plain" {
		t.Errorf("content %q", got)
	}
	mounted, _ := r.walk(f, "plain")
	for range 20 { // numbers of mounts come again
		if err := unix.Unmount(p, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		_, _, _, err := f.Lookup(t.Context(), must2(r.walk(f, "plain")), "file")
		wantErr(t, err, vfs.ErrNoEnt)
		_, err = f.GetAttr(t.Context(), mounted, vfs.MaskV3)
		wantErr(t, err, vfs.ErrStale)
		r.tmpfs("plain")
		y, b := r.walk(f, "plain/file")
		if y == x || b.FSID == a.FSID {
			t.Error("the file of another file system has the same handle")
		}
		if got := content(t, f, y); got != "in plain" {
			t.Errorf("content %q", got)
		}
		mounted, _ = r.walk(f, "plain")
	}
	if n := f.mounts.Count(); n != 1 {
		t.Errorf("%d mounts are held", n)
	}
}

// testUncrossedAgain uses handles from before the option was taken back.
func testUncrossedAgain(t *testing.T, r *mountRig, o Options) {
	r.tmpfs("mem")
	o.CrossMounts = true
	f := must[*FS](t)(New(r.dir, o))
	x, _ := r.walk(f, "mem/file")
	d, _ := r.walk(f, "mem")
	o.CrossMounts = false
	f = reopenFS(t, f, r.dir, o)
	t.Cleanup(func() { closeFS(t, f) })
	for _, x := range []vfs.Handle{x, d} {
		_, err := f.GetAttr(t.Context(), x, vfs.MaskV3)
		wantErr(t, err, vfs.ErrStale)
	}
}

// testMountedWithoutHandles mounts what the kernel has no handles for.
func testMountedWithoutHandles(t *testing.T, r *mountRig, o Options) {
	r.mount("sysfs", "sysfs", "sys", unix.MS_RDONLY, "")
	r.mount("proc", "proc", "proc", 0, "")
	for _, cross := range []bool{false, true} {
		f := r.open(o, cross)
		all := r.list(f, f.root)
		if _, ok := all["plain"]; !ok {
			t.Errorf("the listing ends before its end: %v", all)
		}
		_, _, _, err := f.Lookup(t.Context(), f.root, "proc")
		if o.Handles == HandlesKernel || !cross {
			wantErr(t, err, vfs.ErrNoEnt)
		} else if err != nil {
			t.Error(err)
		}
	}
	if len(r.reports()) == 0 {
		t.Error("nobody was told")
	}
}
