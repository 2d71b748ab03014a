package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

var errSynced = errors.New("a sync reached the disk below")

// kernel makes syncs errors, because a Disk does not pass them on.
type kernel struct{ linux.OS }

func (kernel) Fdatasync(int) error { return errSynced }
func (kernel) Fsync(int) error     { return errSynced }
func (kernel) Syncfs(int) error    { return errSynced }

// rig is a tree on a Disk, used by paths below its root.
type rig struct {
	t    *testing.T
	disk *Disk
	root string
}

func newRig(t *testing.T, seed uint64) *rig {
	t.Helper()
	base := t.TempDir()
	before := openFDs(t)
	r := &rig{t: t, root: filepath.Join(base, "root")}
	if err := os.Mkdir(r.root, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.disk, err = NewDisk(kernel{}, filepath.Join(base, "shadow"), seed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.disk.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if left, err := os.ReadDir(filepath.Join(base, "shadow")); err != nil || len(left) > 0 {
			t.Errorf("left in the shadow directory: %v, %v", left, err)
		}
		if after := openFDs(t); after != before {
			t.Errorf("%d descriptors are open, %d were before", after, before)
		}
	})
	return r
}

func openFDs(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func (r *rig) path(name string) string { return filepath.Join(r.root, name) }

// fd opens path for the length of f.
func (r *rig) fd(name string, flags int, f func(fd int) error) error {
	fd, err := unix.Open(r.path(name), flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(f(fd), unix.Close(fd))
}

func (r *rig) in(name string, f func(dirfd int, base string) error) error {
	return r.fd(filepath.Dir(name), unix.O_PATH|unix.O_DIRECTORY, func(fd int) error { return f(fd, filepath.Base(name)) })
}

func (r *rig) create(name string) error {
	return r.in(name, func(dirfd int, base string) error {
		fd, err := r.disk.Openat(dirfd, base, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
}

func (r *rig) mkdir(name string) error {
	return r.in(name, func(dirfd int, base string) error { return r.disk.Mkdirat(dirfd, base, 0o755) })
}

func (r *rig) write(name string, off int64, data []byte) error {
	return r.fd(name, unix.O_WRONLY, func(fd int) error {
		_, err := r.disk.Pwrite(fd, data, off)
		return err
	})
}

func (r *rig) truncate(name string, size int64) error {
	return r.fd(name, unix.O_WRONLY, func(fd int) error { return r.disk.Ftruncate(fd, size) })
}

func (r *rig) unlink(name string) error {
	return r.in(name, func(dirfd int, base string) error { return r.disk.Unlinkat(dirfd, base, 0) })
}

func (r *rig) rmdir(name string) error {
	return r.in(name, func(dirfd int, base string) error { return r.disk.Unlinkat(dirfd, base, unix.AT_REMOVEDIR) })
}

func (r *rig) rename(from, to string) error { return r.moved(from, to, r.disk.Renameat) }

func (r *rig) renameNoReplace(from, to string) error {
	return r.moved(from, to, r.disk.RenameatNoReplace)
}

func (r *rig) moved(from, to string, call func(fromfd int, from string, tofd int, to string) error) error {
	return r.in(from, func(fromfd int, f string) error {
		return r.in(to, func(tofd int, t string) error { return call(fromfd, f, tofd, t) })
	})
}

func (r *rig) link(from, to string) error {
	return r.fd(from, unix.O_PATH, func(fd int) error {
		return r.in(to, func(dirfd int, base string) error { return r.disk.Linkat(fd, dirfd, base) })
	})
}

func (r *rig) symlink(target, name string) error {
	return r.in(name, func(dirfd int, base string) error { return r.disk.Symlinkat(target, dirfd, base) })
}

func (r *rig) chmod(name string, mode uint32) error {
	return r.fd(name, unix.O_PATH, func(fd int) error { return r.disk.Fchmod(fd, mode) })
}

func (r *rig) fsync(name string) error     { return r.fd(name, unix.O_RDONLY, r.disk.Fsync) }
func (r *rig) fdatasync(name string) error { return r.fd(name, unix.O_RDONLY, r.disk.Fdatasync) }
func (r *rig) syncfs() error               { return r.disk.Syncfs(-1) }

func (r *rig) ok(errs ...error) {
	r.t.Helper()
	if err := errors.Join(errs...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) crash(loss Loss) {
	r.t.Helper()
	r.ok(r.disk.Crash(loss))
	if list := r.disk.Unsynced(); len(list) > 0 {
		r.t.Fatalf("not stable after a crash: %v", list)
	}
}

// wantTree compares the tree with a map from path to content; a directory's
// path ends in a slash, the content of a symbolic link is "-> target".
func (r *rig) wantTree(want map[string]string) {
	r.t.Helper()
	got := make(map[string]string)
	for path, o := range r.tree() {
		got[path] = o.content
	}
	if !maps.Equal(got, want) {
		r.t.Errorf("the tree is %q, want %q", got, want)
	}
}

// object is what a test compares of an object.
type object struct {
	ino     uint64
	mode    uint32
	nlink   uint64
	content string
}

func (r *rig) tree() map[string]object {
	r.t.Helper()
	tree := make(map[string]object)
	err := filepath.WalkDir(r.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == r.root {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		o := object{ino: st.Ino, mode: st.Mode, nlink: uint64(st.Nlink)}
		name := path[len(r.root)+1:]
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			name += "/"
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			o.content = "-> " + target
		case unix.S_IFREG:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			o.content = string(b)
		}
		tree[name] = o
		return nil
	})
	r.ok(err)
	return tree
}

// TestLoseAll pins down what each sync promises, one rule a case. The tree is
// stable before do: the file "old" holding "stable", the directories "d/" with
// the file "d/f", and "empty/".
func TestLoseAll(t *testing.T) {
	start := func() map[string]string {
		return map[string]string{"old": "stable", "d/": "", "d/f": "inner", "empty/": ""}
	}
	with := func(pairs ...string) map[string]string {
		m := start()
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	without := func(m map[string]string, names ...string) map[string]string {
		for _, name := range names {
			delete(m, name)
		}
		return m
	}
	tests := []struct {
		name string
		do   func(r *rig) []error
		want map[string]string
	}{
		{"a synced file in a directory that was not", func(r *rig) []error {
			return []error{r.create("new"), r.write("new", 0, []byte("x")), r.fsync("new")}
		}, start()},
		{"a name without its bytes", func(r *rig) []error {
			return []error{r.create("new"), r.write("new", 0, []byte("x")), r.fsync(".")}
		}, with("new", "")},
		{"file and directory", func(r *rig) []error {
			return []error{r.create("new"), r.write("new", 0, []byte("x")), r.fdatasync("new"), r.fsync(".")}
		}, with("new", "x")},
		{"a write without commit", func(r *rig) []error { return []error{r.write("old", 2, []byte("XXXXXXXXX"))} }, start()},
		{"a write with commit", func(r *rig) []error {
			return []error{r.write("old", 2, []byte("XXXXXX")), r.fdatasync("old"), r.write("old", 0, []byte("YYY"))}
		}, with("old", "stXXXXXX")},
		{"truncate and grow", func(r *rig) []error { return []error{r.truncate("old", 1), r.truncate("old", 100)} }, start()},
		{"truncate with commit", func(r *rig) []error { return []error{r.truncate("old", 3), r.fdatasync("old")} }, with("old", "sta")},
		{"unlink", func(r *rig) []error { return []error{r.unlink("old")} }, start()},
		{"unlink with sync", func(r *rig) []error { return []error{r.unlink("old"), r.fsync(".")} }, without(start(), "old")},
		{"written, then unlinked", func(r *rig) []error { return []error{r.write("old", 0, []byte("X")), r.unlink("old")} }, start()},
		{"rmdir", func(r *rig) []error { return []error{r.rmdir("empty")} }, start()},
		{"rmdir with sync", func(r *rig) []error { return []error{r.rmdir("empty"), r.fsync(".")} }, without(start(), "empty/")},
		{"rm -r", func(r *rig) []error { return []error{r.unlink("d/f"), r.rmdir("d")} }, start()},
		{"rm -r, top synced", func(r *rig) []error {
			return []error{r.unlink("d/f"), r.rmdir("d"), r.fsync(".")}
		}, without(start(), "d/", "d/f")},
		{"a new directory with synced content", func(r *rig) []error {
			return []error{r.mkdir("n"), r.create("n/a"), r.write("n/a", 0, []byte("x")), r.fsync("n/a"), r.fsync("n")}
		}, start()},
		{"a new directory without its content", func(r *rig) []error { return []error{r.mkdir("n"), r.create("n/a"), r.fsync(".")} }, with("n/", "")},
		{"rename without sync", func(r *rig) []error { return []error{r.rename("old", "renamed")} }, start()},
		{"rename with sync", func(r *rig) []error {
			return []error{r.rename("old", "renamed"), r.fsync(".")}
		}, without(with("renamed", "stable"), "old")},
		{"rename to a free name without sync", func(r *rig) []error { return []error{r.renameNoReplace("old", "renamed")} }, start()},
		{"rename to a free name with sync", func(r *rig) []error {
			return []error{r.renameNoReplace("old", "renamed"), r.fsync(".")}
		}, without(with("renamed", "stable"), "old")},
		{"rename over a file", func(r *rig) []error { return []error{r.rename("old", "d/f")} }, start()},
		{"rename, new directory synced", func(r *rig) []error {
			return []error{r.rename("old", "d/f"), r.fsync("d")}
		}, with("d/f", "stable")},
		{"rename, old directory synced", func(r *rig) []error {
			return []error{r.rename("old", "d/f"), r.fsync(".")}
		}, without(start(), "old")},
		{"rename, both synced", func(r *rig) []error {
			return []error{r.rename("old", "d/f"), r.fsync("d"), r.fsync(".")}
		}, without(with("d/f", "stable"), "old")},
		{"rename, then unlink", func(r *rig) []error { return []error{r.rename("old", "x"), r.unlink("x")} }, start()},
		{"rename of a directory over another", func(r *rig) []error { return []error{r.rename("d", "empty")} }, start()},
		{"rename of a directory, then rm -r", func(r *rig) []error {
			return []error{r.rename("d", "x"), r.unlink("x/f"), r.rmdir("x")}
		}, start()},
		{"directory moved, new parent synced", func(r *rig) []error {
			return []error{r.rename("d", "empty/d"), r.fsync("empty")}
		}, without(with("empty/d/", "", "empty/d/f", "inner"), "d/", "d/f")},
		{"a swap of two names", func(r *rig) []error {
			return []error{r.rename("old", "t"), r.rename("d/f", "old"), r.rename("t", "d/f")}
		}, start()},
		{"link", func(r *rig) []error { return []error{r.link("old", "l"), r.unlink("old")} }, start()},
		{"link with sync", func(r *rig) []error { return []error{r.link("old", "l"), r.fsync(".")} }, with("l", "stable")},
		{"symlink", func(r *rig) []error { return []error{r.symlink("old", "s")} }, start()},
		{"symlink with sync", func(r *rig) []error { return []error{r.symlink("old", "s"), r.fsync(".")} }, with("s", "-> old")},
		{"save by rename, with all its syncs", func(r *rig) []error {
			return []error{r.create("t"), r.write("t", 0, []byte("2")), r.fsync("t"), r.rename("t", "old"), r.fsync(".")}
		}, with("old", "2")},
		{"save by rename, without a sync of the file", func(r *rig) []error {
			return []error{r.create("t"), r.write("t", 0, []byte("2")), r.rename("t", "old"), r.fsync(".")}
		}, with("old", "")},
		{"syncfs", func(r *rig) []error {
			return []error{r.create("a"), r.write("a", 0, []byte("x")), r.unlink("old"), r.syncfs()}
		}, without(with("a", "x"), "old")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, 1)
			r.ok(os.WriteFile(r.path("old"), []byte("stable"), 0o644), os.Mkdir(r.path("d"), 0o755),
				os.WriteFile(r.path("d/f"), []byte("inner"), 0o644), os.Mkdir(r.path("empty"), 0o755))
			r.ok(tt.do(r)...)
			r.crash(LoseAll)
			r.wantTree(tt.want)
		})
	}
}

// TestAttributes: fdatasync leaves them out, fsync does not, and those of a new
// object come with its name.
func TestAttributes(t *testing.T) {
	r := newRig(t, 1)
	r.ok(r.create("a"), r.create("b"), r.create("c"), r.chmod("c", 0o600), r.fsync("."))
	r.ok(r.chmod("a", 0o400), r.fdatasync("a"), r.chmod("b", 0o400), r.fsync("b"), r.chmod("c", 0o777))
	r.ok(r.fd("a", unix.O_PATH, func(fd int) error { return r.disk.Futimens(fd, 1, 0, 1, 0) }))
	r.crash(LoseAll)
	for name, want := range map[string]uint32{"a": 0o644, "b": 0o400, "c": 0o600} {
		var st unix.Stat_t
		r.ok(unix.Stat(r.path(name), &st))
		if got := st.Mode & 0o7777; got != want || st.Mtim.Sec == 1 {
			t.Errorf("%s has mode %o, want %o, mtime %d", name, got, want, st.Mtim.Sec)
		}
	}
}

// TestFailedCalls: what fails changes nothing, and nothing is noted.
func TestFailedCalls(t *testing.T) {
	r := newRig(t, 1)
	r.ok(r.create("f"), r.mkdir("d"), r.create("d/x"), r.mkdir("e"), r.syncfs())
	tests := []struct {
		name string
		err  error
		want syscall.Errno
	}{
		{"create what exists", r.create("f"), syscall.EEXIST},
		{"unlink nothing", r.unlink("nothing"), syscall.ENOENT},
		{"unlink a directory", r.unlink("e"), syscall.EISDIR},
		{"rmdir a file", r.rmdir("f"), syscall.ENOTDIR},
		{"rmdir what is not empty", r.rmdir("d"), syscall.ENOTEMPTY},
		{"rename nothing", r.rename("nothing", "f"), syscall.ENOENT},
		{"rename a file over a directory", r.rename("f", "e"), syscall.EISDIR},
		{"rename a directory over a full one", r.rename("e", "d"), syscall.ENOTEMPTY},
		{"rename over a file that is not to be replaced", r.renameNoReplace("f", "d/x"), syscall.EEXIST},
		{"rename into itself", r.rename("d", "d/d"), syscall.EINVAL},
		{"a descriptor that is none", r.disk.Fsync(-1), syscall.EBADF},
	}
	for _, tt := range tests {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, tt.err, tt.want)
		}
	}
	r.ok(r.rename("f", "f"))
	if list := r.disk.Unsynced(); len(list) > 0 {
		t.Errorf("noted: %v", list)
	}
	r.wantTree(map[string]string{"f": "", "d/": "", "d/x": "", "e/": ""})
}

// TestPowerOff: from the chosen call on nothing happens any more.
func TestPowerOff(t *testing.T) {
	r := newRig(t, 1)
	r.ok(r.create("f"))
	r.disk.PowerOff(1)
	r.ok(r.fsync("."))
	if err := r.write("f", 0, []byte("x")); !errors.Is(err, syscall.EIO) {
		t.Errorf("a write without power: %v", err)
	}
	if err := r.unlink("f"); !errors.Is(err, syscall.EIO) {
		t.Errorf("unlink without power: %v", err)
	}
	r.crash(LoseAll)
	r.wantTree(map[string]string{"f": ""})
	r.disk.SetFault(func(op string) error {
		if op == "pwrite" {
			return syscall.ENOSPC
		}
		return nil
	})
	if err := r.write("f", 0, []byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a write with a fault: %v", err)
	}
	r.disk.SetFault(nil)
	r.ok(r.write("f", 0, []byte("x")))
}

// randomOps makes n random changes, of which some fail, and no sync.
func randomOps(r *rig, rnd *rand.Rand, n int) {
	names := []string{"a", "b", "c", "d", "a/a", "a/b", "b/a", "b/c", "c/d", "a/b/c", "b/a/d"}
	name := func() string { return names[rnd.IntN(len(names))] }
	for range n {
		var err error
		switch rnd.IntN(12) {
		case 0, 1:
			err = r.create(name())
		case 2, 3:
			err = r.mkdir(name())
		case 4:
			err = r.unlink(name())
		case 5:
			err = r.rmdir(name())
		case 6, 7:
			err = r.rename(name(), name())
		case 8:
			err = r.link(name(), name())
		case 9:
			data := bytes.Repeat([]byte{byte('A' + rnd.IntN(26))}, 1+rnd.IntN(3*pageSize))
			err = r.write(name(), rnd.Int64N(5*pageSize), data)
		case 10:
			if err = r.truncate(name(), rnd.Int64N(6*pageSize)); err == nil {
				err = r.chmod(name(), uint32(0o700+rnd.IntN(0o100)))
			}
		case 11:
			err = r.renameNoReplace(name(), name())
		}
		var errno syscall.Errno
		if err != nil && !errors.As(err, &errno) {
			r.t.Fatal(err)
		}
	}
}

// TestRandomChangesAreTurnedBack: whatever was changed, the tree of the last
// sync comes back, with its inode numbers.
func TestRandomChangesAreTurnedBack(t *testing.T) {
	need.Time(t, "random changes of a disk that loses its power")
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newRig(t, seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			for round := range 3 {
				randomOps(r, rnd, 40)
				r.ok(r.syncfs())
				if list := r.disk.Unsynced(); len(list) > 0 {
					t.Fatalf("not stable after syncfs: %v", list)
				}
				want := r.tree()
				randomOps(r, rnd, 60)
				r.crash(LoseAll)
				if got := r.tree(); !maps.Equal(got, want) {
					t.Fatalf("round %d:\ngot  %v\nwant %v", round, brief(got), brief(want))
				}
			}
		})
	}
}

func brief(tree map[string]object) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		o := tree[name]
		list = append(list, fmt.Sprintf("%s ino %d mode %o links %d bytes %d", name, o.ino, o.mode, o.nlink, len(o.content)))
	}
	return list
}

// TestLoseSomeIsReproducible: one seed is one outcome, and seeds differ.
func TestLoseSomeIsReproducible(t *testing.T) {
	outcome := func(seed uint64) map[string]string {
		r := newRig(t, seed)
		randomOps(r, rand.New(rand.NewPCG(7, 0)), 150)
		r.crash(LoseSome)
		tree := make(map[string]string)
		for name, o := range r.tree() {
			tree[name] = fmt.Sprintf("%o %s", o.mode, o.content)
		}
		return tree
	}
	first, differ := outcome(1), false
	if !maps.Equal(first, outcome(1)) {
		t.Error("seed 1 had two outcomes")
	}
	for seed := uint64(2); seed < 6; seed++ {
		differ = differ || !maps.Equal(first, outcome(seed))
	}
	if !differ {
		t.Error("five seeds had one outcome")
	}
}

// TestLoseSome: pages are old or new, stable ones untouched, a rename within a
// directory is whole, and over some seeds everything possible happens.
func TestLoseSome(t *testing.T) {
	seen := make(map[string]bool)
	for seed := range uint64(30) {
		r := newRig(t, seed)
		r.ok(r.create("f"), r.write("f", 0, bytes.Repeat([]byte("o"), 3*pageSize)), r.syncfs())
		r.ok(r.write("f", 2*pageSize, bytes.Repeat([]byte("n"), 2*pageSize)), r.rename("f", "g"))
		r.crash(LoseSome)
		tree := r.tree()
		if len(tree) != 1 {
			t.Fatalf("seed %d: %v", seed, brief(tree))
		}
		for name, o := range tree {
			seen[name] = true
			seen[fmt.Sprint(len(o.content)/pageSize)] = true
			for page := range len(o.content) / pageSize {
				b := o.content[page*pageSize : (page+1)*pageSize]
				if b != string(bytes.Repeat([]byte{b[0]}, pageSize)) {
					t.Fatalf("seed %d: page %d is torn", seed, page)
				}
				seen[fmt.Sprintf("%d%q", page, b[0])] = true
			}
		}
	}
	want := []string{"f", "g", "3", "4", "0'o'", "1'o'", "2'o'", "2'n'", "3'n'", "3'\\x00'"}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("outcomes are %v, want %v", got, want)
	}
}
