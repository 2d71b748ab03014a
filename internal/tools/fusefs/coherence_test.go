//go:build linux

package fusefs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestChangeTime: an open sees a change of which only the time of change tells, whatever was asked meanwhile.
func TestChangeTime(t *testing.T) {
	need.Fuse(t)
	served := t.TempDir()
	dir := mount(t, serve(t, served), Options{Times: Times{1, 1, 1, 1}})
	at, name := filepath.Join(served, "f"), filepath.Join(dir, "f")
	past := time.Unix(1_000_000_000, 0)
	expect.OK(t, os.WriteFile(at, []byte("AAAA"), 0o644))
	expect.OK(t, os.Chtimes(at, past, past))
	for _, text := range []string{"AAAA", "BBBB", "CCCC"} {
		before, err := os.Stat(name)
		expect.OK(t, err)
		was := changed(t, at)
		expect.Soon(t, "another time of change, which a kernel may count in ticks", func() bool {
			expect.OK(t, os.WriteFile(at, []byte(text), 0o644))
			expect.OK(t, os.Chtimes(at, past, past))
			return changed(t, at) != was
		})
		after, err := os.Stat(name) // the kernel hears of the new time of change, and keeps its pages
		expect.OK(t, err)
		if !before.ModTime().Equal(after.ModTime()) {
			t.Error("the time of modification was to stay")
		}
		expect.Content(t, name, text)
		expect.Content(t, name, text)
	}
}

// changed is a file's time of change.
func changed(t *testing.T, name string) unix.Timespec {
	t.Helper()
	var s unix.Stat_t
	expect.OK(t, unix.Stat(name, &s))
	return s.Ctim
}

// TestUtimeOfMapped: a time that is set stays, though pages of a mapping were changed before.
func TestUtimeOfMapped(t *testing.T) {
	need.Fuse(t)
	served := t.TempDir()
	name := filepath.Join(mount(t, serve(t, served), Options{}), "f")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	expect.OK(t, err)
	expect.OK(t, f.Truncate(4096))
	// The page is touched by read(2): a page fault of the process that is the file system would wait for itself.
	p, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	expect.OK(t, err)
	zero, err := os.Open("/dev/zero")
	expect.OK(t, err)
	_, err = unix.Pread(int(zero.Fd()), p[:1], 0)
	expect.OK(t, err)
	expect.OK(t, zero.Close())
	past := time.Unix(1_000_000_000, 0)
	expect.OK(t, os.Chtimes(name, past, past))
	expect.OK(t, unix.Munmap(p))
	expect.OK(t, f.Close())
	for _, at := range []string{name, filepath.Join(served, "f")} {
		s, err := os.Stat(at)
		expect.OK(t, err)
		if !s.ModTime().Equal(past) {
			t.Errorf("%s: the time is %v", at, s.ModTime())
		}
	}
}

// TestUmask: a directory's default list has the umask not used, and without one it is. What is set or taken away by the
// mount itself counts at once.
func TestUmask(t *testing.T) {
	need.Fuse(t)
	defer syscall.Umask(syscall.Umask(0o027))
	dir := mount(t, serveMemory(t), Options{})
	made := func(in, name string, file, sub os.FileMode) {
		t.Helper()
		at := filepath.Join(dir, in, name)
		f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		expect.OK(t, err)
		expect.OK(t, f.Close())
		expect.OK(t, os.Mkdir(at+".d", 0o777))
		expect.OK(t, unix.Mknod(at+".p", unix.S_IFIFO|0o666, 0))
		for end, want := range map[string]os.FileMode{"": file, ".d": sub, ".p": file} {
			s, err := os.Lstat(at + end)
			expect.OK(t, err)
			if s.Mode().Perm() != want {
				t.Errorf("%s%s: mode %v, want %v", name, end, s.Mode().Perm(), want)
			}
		}
	}
	for _, in := range []string{"plain", "lists"} {
		expect.OK(t, os.Mkdir(filepath.Join(dir, in), 0o777))
	}
	made("plain", "a", 0o640, 0o750)
	made("lists", "a", 0o640, 0o750)
	list := encodeACL([]vfs.ACLEntry{{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLGroupObj, Perm: 7}, {Tag: vfs.ACLOther, Perm: 5}})
	expect.OK(t, unix.Lsetxattr(filepath.Join(dir, "lists"), aclDefault, list, 0))
	made("lists", "b", 0o664, 0o775)
	made("plain", "b", 0o640, 0o750)
	expect.OK(t, unix.Lremovexattr(filepath.Join(dir, "lists"), aclDefault))
	made("lists", "c", 0o640, 0o750)
}
