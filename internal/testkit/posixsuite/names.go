//go:build linux

package posixsuite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
)

func testRename(t *testing.T, dir string) {
	a, b, d, e := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "d"), filepath.Join(dir, "e")
	expect.OK(t, os.WriteFile(a, []byte("a"), 0o644))
	expect.OK(t, os.WriteFile(b, []byte("b"), 0o644))
	expect.Errno(t, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, filepath.Join(dir, "new"), unix.RENAME_NOREPLACE), syscall.EINVAL)
	expect.Errno(t, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE), syscall.EINVAL)
	open, err := os.Open(b)
	expect.OK(t, err)
	expect.OK(t, os.Rename(a, b)) // over a file that is open
	got, err := io.ReadAll(open)
	expect.OK(t, errors.Join(err, open.Close()))
	if string(got) != "b" {
		t.Errorf("what was open holds %q", got)
	}
	expect.Content(t, b, "a")
	_, err = os.Stat(a)
	expect.Errno(t, err, syscall.ENOENT)
	expect.OK(t, errors.Join(os.Mkdir(d, 0o755), os.Mkdir(e, 0o755)))
	expect.OK(t, os.Rename(b, filepath.Join(d, "b")))
	expect.Errno(t, os.Rename(e, filepath.Join(d, "b")), syscall.ENOTDIR)
	expect.Errno(t, syscall.Rename(e, d), syscall.ENOTEMPTY)
	expect.OK(t, os.Rename(d, filepath.Join(e, "d")))
	expect.Content(t, filepath.Join(e, "d", "b"), "a")
	expect.Errno(t, syscall.Rmdir(e), syscall.ENOTEMPTY)
}

func testLinks(t *testing.T, dir string) {
	a, b, s := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "s")
	expect.OK(t, os.WriteFile(a, []byte("a"), 0o644))
	expect.OK(t, os.Link(a, b))
	var sa, sb syscall.Stat_t
	expect.OK(t, errors.Join(syscall.Lstat(a, &sa), syscall.Lstat(b, &sb)))
	if sa.Ino != sb.Ino || sa.Nlink != 2 || sb.Nlink != 2 {
		t.Errorf("inodes %d and %d, links %d and %d", sa.Ino, sb.Ino, sa.Nlink, sb.Nlink)
	}
	expect.Errno(t, os.Link(a, b), syscall.EEXIST)
	expect.Errno(t, os.Link(dir, filepath.Join(dir, "dir")), syscall.EPERM)
	expect.OK(t, os.Remove(a))
	expect.OK(t, syscall.Lstat(b, &sb))
	if sb.Nlink != 1 {
		t.Errorf("%d links, want 1", sb.Nlink)
	}
	expect.OK(t, os.Symlink("b", s))
	if to, err := os.Readlink(s); err != nil || to != "b" {
		t.Errorf("link to %q, %v", to, err)
	}
	expect.Content(t, s, "a")
	expect.OK(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	_, err := os.Open(filepath.Join(dir, "loop"))
	expect.Errno(t, err, syscall.ELOOP)
}

func testUnlinkOpen(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	expect.OK(t, err)
	_, err = f.WriteString("still here")
	expect.OK(t, err)
	expect.OK(t, os.Remove(name))
	_, err = os.Stat(name)
	expect.Errno(t, err, syscall.ENOENT)
	_, err = f.WriteAt([]byte("S"), 0)
	expect.OK(t, err)
	got := make([]byte, 10)
	_, err = f.ReadAt(got, 0)
	expect.OK(t, err)
	if string(got) != "Still here" {
		t.Errorf("holds %q", got)
	}
	expect.OK(t, f.Close())
	// Many files, each removed right after its close: their directory can be removed, at once or soon.
	for i := range 50 {
		sub := filepath.Join(dir, fmt.Sprint("sub", i))
		expect.OK(t, os.Mkdir(sub, 0o755))
		expect.OK(t, os.WriteFile(filepath.Join(sub, "f"), []byte("x"), 0o644))
		expect.OK(t, os.Remove(filepath.Join(sub, "f")))
		expect.Soon(t, "the directory is removed", func() bool { return os.Remove(sub) == nil })
	}
}

func testNodes(t *testing.T, dir string) {
	fifo := filepath.Join(dir, "fifo")
	expect.OK(t, syscall.Mkfifo(fifo, 0o644))
	st, err := os.Lstat(fifo)
	expect.OK(t, err)
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
	expect.OK(t, err)
	var raw syscall.Stat_t
	expect.OK(t, syscall.Lstat(filepath.Join(dir, "null"), &raw))
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
		expect.OK(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s%03d", kind, i)), nil, 0o644))
	}
	d, err := os.Open(dir)
	expect.OK(t, err)
	seen := make(map[string]int)
	for part := 0; ; part++ {
		names, err := d.Readdirnames(20)
		for _, n := range names {
			seen[n]++
		}
		if errors.Is(err, io.EOF) {
			break
		}
		expect.OK(t, err)
		if part < 3 {
			for i := part * 100; i < part*100+100; i++ {
				if i%2 == 1 {
					expect.OK(t, os.Remove(filepath.Join(dir, fmt.Sprintf("go%03d", i))))
				}
			}
			expect.OK(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("new", part)), nil, 0o644))
		}
	}
	for i := 0; i < stay+leave; i += 2 {
		if n := seen[fmt.Sprintf("stay%03d", i)]; n != 1 {
			t.Errorf("stay%03d was listed %d times", i, n)
		}
	}
	_, err = d.Seek(0, io.SeekStart)
	expect.OK(t, err)
	names, err := d.Readdirnames(-1)
	expect.OK(t, errors.Join(err, d.Close()))
	if len(names) != stay+3 {
		t.Errorf("%d names, want %d", len(names), stay+3)
	}
	entries, err := os.ReadDir(dir)
	expect.OK(t, err)
	for _, e := range entries {
		if e.Type() != 0 {
			t.Errorf("%s is listed as %v", e.Name(), e.Type())
		}
	}
}
