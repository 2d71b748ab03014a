//go:build linux

package posixsuite

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
)

func testAttributes(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	expect.OK(t, os.WriteFile(name, []byte("0123456789"), 0o644))
	expect.OK(t, os.Chmod(name, 0o751))
	at, mt := time.Unix(1e9, 123456789), time.Unix(2e9, 987654321)
	expect.OK(t, os.Chtimes(name, at, mt))
	var st syscall.Stat_t
	expect.OK(t, syscall.Stat(name, &st))
	if st.Mode != syscall.S_IFREG|0o751 || st.Atim != syscall.NsecToTimespec(at.UnixNano()) || st.Mtim != syscall.NsecToTimespec(mt.UnixNano()) {
		t.Errorf("%o, %v, %v", st.Mode, st.Atim, st.Mtim)
	}
	expect.OK(t, os.Truncate(name, 4))
	expect.Content(t, name, "0123")
	expect.OK(t, os.Truncate(name, 6))
	expect.Content(t, name, "0123\x00\x00")
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	expect.OK(t, err)
	expect.OK(t, os.Chmod(name, 0))
	expect.OK(t, f.Truncate(2)) // the right was given by the open
	expect.OK(t, f.Close())
	expect.OK(t, os.Chmod(name, 0o600))
	expect.Content(t, name, "01")
	if os.Geteuid() == 0 {
		expect.OK(t, os.Chown(name, 1234, 4321))
		expect.OK(t, syscall.Stat(name, &st))
		if st.Uid != 1234 && st.Uid != 65534 { // root may be squashed
			t.Errorf("owner %d", st.Uid)
		}
	}
}

func testSpace(t *testing.T, dir string) {
	var st syscall.Statfs_t
	expect.OK(t, syscall.Statfs(dir, &st))
	if st.Blocks == 0 || st.Bfree > st.Blocks || st.Bavail > st.Bfree || st.Files == 0 || st.Namelen < 255 {
		t.Errorf("%+v", st)
	}
}

// testTimes: what changes an object changes its times, and times can be set: to now, to another, and not at all.
func testTimes(t *testing.T, dir string) {
	name, sub := filepath.Join(dir, "f"), filepath.Join(dir, "d")
	expect.OK(t, errors.Join(os.WriteFile(name, []byte("1"), 0o644), os.Mkdir(sub, 0o755)))
	long := time.Unix(1e9, 5000)
	changes := func(of, what string, do func() error) {
		t.Helper()
		expect.OK(t, os.Chtimes(of, long, long))
		expect.OK(t, do())
		st, err := os.Stat(of)
		expect.OK(t, err)
		if !st.ModTime().After(long) {
			t.Errorf("%s leaves its mtime at %v", what, st.ModTime())
		}
	}
	changes(name, "a write", func() error { return os.WriteFile(name, []byte("22"), 0o644) })
	changes(name, "a truncation", func() error { return os.Truncate(name, 1) })
	changes(sub, "a new name in it", func() error { return os.WriteFile(filepath.Join(sub, "a"), nil, 0o644) })
	changes(sub, "a rename in it", func() error { return os.Rename(filepath.Join(sub, "a"), filepath.Join(sub, "b")) })
	changes(sub, "a removal in it", func() error { return os.Remove(filepath.Join(sub, "b")) })

	var st syscall.Stat_t
	past, omit, now := unix.Timespec{Sec: 1_500_000_000, Nsec: 7}, unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Nsec: unix.UTIME_NOW}
	expect.OK(t, os.Chtimes(name, long, long))
	expect.OK(t, unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{omit, past}, 0))
	expect.OK(t, syscall.Stat(name, &st))
	if st.Atim.Nano() != long.UnixNano() || st.Mtim.Nano() != past.Nano() {
		t.Errorf("atime %v, mtime %v; the first was left alone", st.Atim, st.Mtim)
	}
	expect.OK(t, unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{now, omit}, 0))
	expect.OK(t, syscall.Stat(name, &st))
	if st.Atim.Nano() <= past.Nano() || st.Mtim.Nano() != past.Nano() {
		t.Errorf("atime %v, mtime %v; the second was left alone", st.Atim, st.Mtim)
	}
	before := st.Ctim.Nano()
	expect.Soon(t, "a later ctime", func() bool { // clocks have steps
		expect.OK(t, os.Chmod(name, 0o600))
		expect.OK(t, syscall.Stat(name, &st))
		return st.Ctim.Nano() > before
	})
}

// testPermissions: modes are kept with all their bits, are asked for, and pass from a directory to what is made in it.
// What they mean for others than this process is in the rights matrix (export/exporttest).
func testPermissions(t *testing.T, dir string) {
	name, sub := filepath.Join(dir, "f"), filepath.Join(dir, "d")
	expect.OK(t, errors.Join(os.WriteFile(name, []byte("text"), 0o644), os.Mkdir(sub, 0o755)))
	var st syscall.Stat_t
	for _, mode := range []uint32{0o4755, 0o1644, 0, 0o111, 0o640} {
		expect.OK(t, syscall.Chmod(name, mode))
		expect.OK(t, syscall.Stat(name, &st))
		if st.Mode&0o7777 != mode {
			t.Errorf("mode %o, want %o", st.Mode&0o7777, mode)
		}
	}
	expect.Errno(t, unix.Access(name, unix.X_OK), syscall.EACCES)
	expect.OK(t, unix.Access(name, unix.R_OK|unix.W_OK))
	expect.OK(t, syscall.Chmod(name, 0o750))
	expect.OK(t, unix.Access(name, unix.X_OK))
	expect.Errno(t, unix.Access(filepath.Join(dir, "none"), unix.F_OK), syscall.ENOENT)
	if os.Geteuid() != 0 {
		expect.OK(t, syscall.Chmod(name, 0))
		_, err := os.Open(name)
		expect.Errno(t, err, syscall.EACCES)
		expect.OK(t, os.Chmod(sub, 0o500))
		expect.Errno(t, os.WriteFile(filepath.Join(sub, "new"), nil, 0o644), syscall.EACCES)
		expect.OK(t, os.Chmod(sub, 0o755))
		return
	}
	// Set-group-ID of a directory: what is made in it has its group, and directories have the bit as well.
	expect.OK(t, errors.Join(os.Chown(sub, 0, 4321), syscall.Chmod(sub, 0o2775)))
	expect.OK(t, errors.Join(os.WriteFile(filepath.Join(sub, "f"), nil, 0o644), os.Mkdir(filepath.Join(sub, "d"), 0o755)))
	expect.OK(t, syscall.Stat(filepath.Join(sub, "f"), &st))
	if st.Gid != 4321 {
		t.Errorf("a file has group %d, and its directory 4321", st.Gid)
	}
	expect.OK(t, syscall.Stat(filepath.Join(sub, "d"), &st))
	if st.Gid != 4321 || st.Mode&syscall.S_ISGID == 0 {
		t.Errorf("a directory has group %d, mode %o; that above it 4321, 2775", st.Gid, st.Mode)
	}
	expect.OK(t, errors.Join(syscall.Chmod(name, 0o6755), os.Chown(name, 1234, 1234)))
	expect.OK(t, syscall.Stat(name, &st))
	if st.Mode&(syscall.S_ISUID|syscall.S_ISGID) != 0 {
		t.Errorf("given to another, it still has mode %o", st.Mode&0o7777)
	}
}

// testTruncate: what was cut off does not come back, by whatever name the file is known.
func testTruncate(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	expect.OK(t, os.WriteFile(name, bytes.Repeat([]byte{'x'}, 10_000), 0o644))
	want := append(bytes.Repeat([]byte{'x'}, 5000), make([]byte, 5000)...)
	expect.OK(t, errors.Join(os.Truncate(name, 5000), os.Truncate(name, 10_000)))
	expect.Content(t, name, string(want))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	expect.OK(t, err)
	expect.OK(t, errors.Join(f.Truncate(100), f.Truncate(200)))
	got, err := io.ReadAll(f)
	expect.OK(t, err)
	if !bytes.Equal(got, append(want[:100:100], make([]byte, 100)...)) {
		t.Errorf("cut off and grown, it holds %.300q", got)
	}
	expect.OK(t, errors.Join(f.Truncate(1<<33), f.Close()))
	st, err := os.Stat(name)
	expect.OK(t, err)
	if st.Size() != 1<<33 {
		t.Errorf("%d bytes, want %d", st.Size(), int64(1)<<33)
	}
	f, err = os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	expect.OK(t, errors.Join(err, f.Close()))
	expect.Content(t, name, "")
	f, err = os.Open(name)
	expect.OK(t, err)
	expect.Errno(t, f.Truncate(1), syscall.EINVAL)
	expect.OK(t, f.Close())
	expect.Errno(t, os.Truncate(dir, 0), syscall.EISDIR)
	expect.Errno(t, os.Truncate(filepath.Join(dir, "none"), 0), syscall.ENOENT)
}
