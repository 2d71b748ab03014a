//go:build linux

package fusefs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestPOSIX: what programs expect of a directory, on a mount of our server.
func TestPOSIX(t *testing.T) {
	dir := mount(t, serve(t, t.TempDir()), Options{})
	for _, c := range []struct {
		name string
		test func(*testing.T, string)
	}{
		{"open", testOpen}, {"append", testAppend}, {"rename", testRename}, {"links", testLinks}, {"unlink open", testUnlinkOpen},
		{"attributes", testAttributes}, {"large offsets", testLargeOffsets}, {"shared mapping", testMapping}, {"nodes", testNodes},
		{"listing", testListing}, {"space", testSpace}, {"direct", testDirect},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := filepath.Join(dir, c.name)
			check(t, os.Mkdir(at, 0o755))
			c.test(t, at)
			waitFor(t, func() bool { return os.RemoveAll(at) == nil }) // no hidden name is left behind for ever
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails fails the test unless err is want.
func fails(t *testing.T, err error, want syscall.Errno) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func content(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s holds %q, %v; want %q", path, b, err, want)
	}
}

func testOpen(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	_, err := os.Open(name)
	fails(t, err, syscall.ENOENT)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	check(t, err)
	_, err = f.Read(make([]byte, 1))
	fails(t, err, syscall.EBADF)
	_, err = f.WriteString("0123456789")
	check(t, err)
	check(t, f.Close())
	st, err := os.Stat(name)
	check(t, err)
	if st.Mode() != 0o640 || st.Size() != 10 {
		t.Errorf("made with %v, %d bytes", st.Mode(), st.Size())
	}
	_, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	fails(t, err, syscall.EEXIST)
	f, err = os.OpenFile(name, os.O_RDWR|os.O_TRUNC, 0)
	check(t, err)
	_, err = f.WriteAt([]byte("xy"), 3)
	check(t, err)
	check(t, f.Close())
	content(t, name, "\x00\x00\x00xy")
	_, err = os.OpenFile(filepath.Join(name, "below"), os.O_RDONLY, 0)
	fails(t, err, syscall.ENOTDIR)
	_, err = os.OpenFile(dir, os.O_WRONLY, 0)
	fails(t, err, syscall.EISDIR)
	_, err = os.OpenFile(filepath.Join(dir, string(bytes.Repeat([]byte{'n'}, 256))), os.O_CREATE|os.O_WRONLY, 0o600)
	fails(t, err, syscall.ENAMETOOLONG)
	// Made without the right to write, and written through the open that made it.
	f, err = os.OpenFile(filepath.Join(dir, "ro"), os.O_CREATE|os.O_WRONLY, 0o400)
	check(t, err)
	_, err = f.WriteString("once")
	check(t, errors.Join(err, f.Close()))
	content(t, filepath.Join(dir, "ro"), "once")
}

func testAppend(t *testing.T, dir string) {
	name := filepath.Join(dir, "log")
	var files [2]*os.File
	for i := range files {
		var err error
		files[i], err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		check(t, err)
	}
	want := ""
	for i := range 100 {
		line := fmt.Sprintf("line %d\n", i)
		want += line
		_, err := files[i%2].WriteString(line)
		check(t, err)
	}
	check(t, errors.Join(files[0].Close(), files[1].Close()))
	content(t, name, want)
}

func testRename(t *testing.T, dir string) {
	a, b, d, e := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "d"), filepath.Join(dir, "e")
	check(t, os.WriteFile(a, []byte("a"), 0o644))
	check(t, os.WriteFile(b, []byte("b"), 0o644))
	fails(t, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, filepath.Join(dir, "new"), unix.RENAME_NOREPLACE), syscall.EINVAL)
	fails(t, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE), syscall.EINVAL)
	open, err := os.Open(b)
	check(t, err)
	check(t, os.Rename(a, b)) // over a file that is open
	got, err := io.ReadAll(open)
	check(t, errors.Join(err, open.Close()))
	if string(got) != "b" {
		t.Errorf("what was open holds %q", got)
	}
	content(t, b, "a")
	_, err = os.Stat(a)
	fails(t, err, syscall.ENOENT)
	check(t, errors.Join(os.Mkdir(d, 0o755), os.Mkdir(e, 0o755)))
	check(t, os.Rename(b, filepath.Join(d, "b")))
	fails(t, os.Rename(e, filepath.Join(d, "b")), syscall.ENOTDIR)
	fails(t, syscall.Rename(e, d), syscall.ENOTEMPTY)
	check(t, os.Rename(d, filepath.Join(e, "d")))
	content(t, filepath.Join(e, "d", "b"), "a")
	fails(t, syscall.Rmdir(e), syscall.ENOTEMPTY)
}

func testLinks(t *testing.T, dir string) {
	a, b, s := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "s")
	check(t, os.WriteFile(a, []byte("a"), 0o644))
	check(t, os.Link(a, b))
	var sa, sb syscall.Stat_t
	check(t, errors.Join(syscall.Lstat(a, &sa), syscall.Lstat(b, &sb)))
	if sa.Ino != sb.Ino || sa.Nlink != 2 || sb.Nlink != 2 {
		t.Errorf("inodes %d and %d, links %d and %d", sa.Ino, sb.Ino, sa.Nlink, sb.Nlink)
	}
	fails(t, os.Link(a, b), syscall.EEXIST)
	fails(t, os.Link(dir, filepath.Join(dir, "dir")), syscall.EPERM)
	check(t, os.Remove(a))
	check(t, syscall.Lstat(b, &sb))
	if sb.Nlink != 1 {
		t.Errorf("%d links, want 1", sb.Nlink)
	}
	check(t, os.Symlink("b", s))
	if to, err := os.Readlink(s); err != nil || to != "b" {
		t.Errorf("link to %q, %v", to, err)
	}
	content(t, s, "a")
	check(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	_, err := os.Open(filepath.Join(dir, "loop"))
	fails(t, err, syscall.ELOOP)
}

func testUnlinkOpen(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	check(t, err)
	_, err = f.WriteString("still here")
	check(t, err)
	check(t, os.Remove(name))
	_, err = os.Stat(name)
	fails(t, err, syscall.ENOENT)
	_, err = f.WriteAt([]byte("S"), 0)
	check(t, err)
	got := make([]byte, 10)
	_, err = f.ReadAt(got, 0)
	check(t, err)
	if string(got) != "Still here" {
		t.Errorf("holds %q", got)
	}
	check(t, f.Close())
	// Many files, each removed right after its close: their directory can be removed, at once or soon.
	for i := range 50 {
		sub := filepath.Join(dir, fmt.Sprint("sub", i))
		check(t, os.Mkdir(sub, 0o755))
		check(t, os.WriteFile(filepath.Join(sub, "f"), []byte("x"), 0o644))
		check(t, os.Remove(filepath.Join(sub, "f")))
		waitFor(t, func() bool { return os.Remove(sub) == nil })
	}
}

func testAttributes(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	check(t, os.WriteFile(name, []byte("0123456789"), 0o644))
	check(t, os.Chmod(name, 0o751))
	at, mt := time.Unix(1e9, 123456789), time.Unix(2e9, 987654321)
	check(t, os.Chtimes(name, at, mt))
	var st syscall.Stat_t
	check(t, syscall.Stat(name, &st))
	if st.Mode != syscall.S_IFREG|0o751 || st.Atim != syscall.NsecToTimespec(at.UnixNano()) || st.Mtim != syscall.NsecToTimespec(mt.UnixNano()) {
		t.Errorf("%o, %v, %v", st.Mode, st.Atim, st.Mtim)
	}
	check(t, os.Truncate(name, 4))
	content(t, name, "0123")
	check(t, os.Truncate(name, 6))
	content(t, name, "0123\x00\x00")
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	check(t, err)
	check(t, os.Chmod(name, 0))
	check(t, f.Truncate(2)) // the right was given by the open
	check(t, f.Close())
	check(t, os.Chmod(name, 0o600))
	content(t, name, "01")
	if os.Geteuid() == 0 {
		check(t, os.Chown(name, 1234, 4321))
		check(t, syscall.Stat(name, &st))
		if st.Uid != 1234 && st.Uid != 65534 { // root may be squashed
			t.Errorf("owner %d", st.Uid)
		}
	}
}

func testLargeOffsets(t *testing.T, dir string) {
	const far = 5<<30 + 123
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_CREATE|os.O_RDWR, 0o644)
	check(t, err)
	_, err = f.WriteAt([]byte("far"), far)
	check(t, err)
	got := make([]byte, 4)
	_, err = f.ReadAt(got[:3], far)
	check(t, err)
	n, err := f.ReadAt(got, far)
	if n != 3 || !errors.Is(err, io.EOF) || string(got[:3]) != "far" {
		t.Errorf("read %q, %v", got[:n], err)
	}
	if _, err := f.ReadAt(got, 1<<32); err != nil || !bytes.Equal(got, make([]byte, 4)) {
		t.Errorf("the hole reads %q, %v", got, err)
	}
	check(t, f.Close())
}

// testMapping touches no mapped byte itself, but by read(2) and write(2) of a pipe. The file system is this process:
// while a goroutine waits for a page outside of a system call, the garbage collector would stop all others, and wait
// for it for ever.
func testMapping(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	check(t, os.WriteFile(name, bytes.Repeat([]byte{'.'}, 10000), 0o644))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	check(t, err)
	m, err := syscall.Mmap(int(f.Fd()), 0, 10000, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(t, err)
	r, w, err := os.Pipe()
	check(t, err)
	_, err = w.WriteString("mapped")
	check(t, err)
	_, err = r.Read(m[5000:5006])
	check(t, err)
	check(t, unix.Msync(m, unix.MS_SYNC))
	got := make([]byte, 6)
	_, err = f.ReadAt(got, 5000)
	check(t, err)
	if string(got) != "mapped" {
		t.Errorf("read %q", got)
	}
	_, err = f.WriteAt([]byte("W"), 5000)
	check(t, err)
	_, err = w.Write(m[5000:5006])
	check(t, err)
	_, err = r.Read(got)
	check(t, err)
	if string(got) != "Wapped" {
		t.Errorf("the mapping has %q", got)
	}
	check(t, errors.Join(syscall.Munmap(m), f.Close(), r.Close(), w.Close()))
}

func testNodes(t *testing.T, dir string) {
	fifo := filepath.Join(dir, "fifo")
	check(t, syscall.Mkfifo(fifo, 0o644))
	st, err := os.Lstat(fifo)
	check(t, err)
	if st.Mode() != os.ModeNamedPipe|0o644 {
		t.Errorf("made %v", st.Mode())
	}
	if os.Geteuid() != 0 {
		return
	}
	err = syscall.Mknod(filepath.Join(dir, "null"), syscall.S_IFCHR|0o600, int(unix.Mkdev(1, 300)))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) { // root is squashed
		return
	}
	check(t, err)
	var raw syscall.Stat_t
	check(t, syscall.Lstat(filepath.Join(dir, "null"), &raw))
	if raw.Rdev != unix.Mkdev(1, 300) {
		t.Errorf("device %d:%d", unix.Major(raw.Rdev), unix.Minor(raw.Rdev))
	}
}

// testListing: names that are there throughout are listed exactly once, though others come and go meanwhile; a listing
// can be begun anew.
func testListing(t *testing.T, dir string) {
	const stay, leave = 150, 150
	for i := range stay + leave {
		kind := "stay"
		if i%2 == 1 {
			kind = "go"
		}
		check(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s%03d", kind, i)), nil, 0o644))
	}
	d, err := os.Open(dir)
	check(t, err)
	seen := make(map[string]int)
	for part := 0; ; part++ {
		names, err := d.Readdirnames(20)
		for _, n := range names {
			seen[n]++
		}
		if errors.Is(err, io.EOF) {
			break
		}
		check(t, err)
		if part < 3 {
			for i := part * 100; i < part*100+100; i++ {
				if i%2 == 1 {
					check(t, os.Remove(filepath.Join(dir, fmt.Sprintf("go%03d", i))))
				}
			}
			check(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("new", part)), nil, 0o644))
		}
	}
	for i := 0; i < stay+leave; i += 2 {
		if n := seen[fmt.Sprintf("stay%03d", i)]; n != 1 {
			t.Errorf("stay%03d was listed %d times", i, n)
		}
	}
	_, err = d.Seek(0, io.SeekStart)
	check(t, err)
	names, err := d.Readdirnames(-1)
	check(t, errors.Join(err, d.Close()))
	if len(names) != stay+3 {
		t.Errorf("%d names, want %d", len(names), stay+3)
	}
	entries, err := os.ReadDir(dir)
	check(t, err)
	for _, e := range entries {
		if e.Type() != 0 {
			t.Errorf("%s is listed as %v", e.Name(), e.Type())
		}
	}
}

func testSpace(t *testing.T, dir string) {
	var st syscall.Statfs_t
	check(t, syscall.Statfs(dir, &st))
	if st.Blocks == 0 || st.Bfree > st.Blocks || st.Bavail > st.Bfree || st.Files == 0 || st.Namelen < 255 {
		t.Errorf("%+v", st)
	}
}

// testDirect: O_DIRECT reads and writes past the kernel's cache.
func testDirect(t *testing.T, dir string) {
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_CREATE|os.O_RDWR|syscall.O_DIRECT, 0o644)
	check(t, err)
	raw := make([]byte, 3*4096)
	skip := -int(uintptr(unsafe.Pointer(&raw[0]))) & 4095
	p := raw[skip : skip+4096]
	copy(p, bytes.Repeat([]byte("direct  "), 512))
	want := bytes.Clone(p)
	_, err = f.WriteAt(p, 4096)
	check(t, err)
	clear(p)
	_, err = f.ReadAt(p, 4096)
	check(t, err)
	if !bytes.Equal(p, want) {
		t.Error("what was written directly is not what is read")
	}
	check(t, f.Close())
}

// TestTwoClients: what one mount has closed, another sees when it opens (close-to-open), though it had it in its cache;
// and with no time-outs at all it sees names at once.
func TestTwoClients(t *testing.T) {
	url := serve(t, t.TempDir())
	a, b := mount(t, url, Options{}), mount(t, url, Options{})
	for i := range 20 {
		want := fmt.Sprintf("version %d%s", i, bytes.Repeat([]byte{'.'}, i*100))
		check(t, os.WriteFile(filepath.Join(a, "f"), []byte(want), 0o644))
		if i == 0 {
			waitFor(t, func() bool { _, err := os.Stat(filepath.Join(b, "f")); return err == nil })
		}
		content(t, filepath.Join(b, "f"), want)
	}
	// Replaced by a rename: the entry that b has cached is of a file that has gone.
	check(t, os.WriteFile(filepath.Join(a, "g"), []byte("another"), 0o644))
	check(t, os.Rename(filepath.Join(a, "g"), filepath.Join(a, "f")))
	content(t, filepath.Join(b, "f"), "another")
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// TestLists: access control lists are extended attributes of the names that acl(5) has.
func TestLists(t *testing.T) {
	need.Fuse(t)
	dir := mount(t, serveMemory(t), Options{})
	name := filepath.Join(dir, "f")
	check(t, os.WriteFile(name, nil, 0o644))
	get := func() ([]byte, error) {
		b := make([]byte, 1024)
		n, err := unix.Lgetxattr(name, aclAccess, b)
		return b[:max(n, 0)], err
	}
	_, err := get()
	fails(t, err, syscall.ENODATA)
	uid := uint32(os.Geteuid()) + 7
	list := encodeACL(aclOf(uid))
	check(t, unix.Lsetxattr(name, aclAccess, list, 0))
	if got, err := get(); err != nil || !bytes.Equal(got, list) {
		t.Errorf("the list is %x, %v; want %x", got, err, list)
	}
	check(t, unix.Lremovexattr(name, aclAccess))
	_, err = get()
	fails(t, err, syscall.ENODATA)
	fails(t, unix.Lsetxattr(name, "user.x", []byte("v"), 0), syscall.ENOTSUP)
}
