//go:build linux

package posixsuite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
)

// testClients: what one mount has closed, another sees when it opens (close-to-open), though it had it in its cache;
// what the server's own host changes, both.
func testClients(t *testing.T, p Place) {
	a, b := filepath.Join(p.Dir, "f"), filepath.Join(p.Other, "f")
	for i := range 20 {
		want := fmt.Sprintf("version %d%s", i, bytes.Repeat([]byte{'.'}, i*100))
		expect.OK(t, os.WriteFile(a, []byte(want), 0o644))
		if i == 0 {
			expect.Soon(t, "the other mount has the file", func() bool { _, err := os.Stat(b); return err == nil })
		}
		expect.Content(t, b, want)
		if p.Local != "" {
			expect.Content(t, filepath.Join(p.Local, "f"), want)
		}
	}
	// By turns, each behind what the other has written.
	want := ""
	for i := range 10 {
		line := fmt.Sprintf("line %d\n", i)
		want += line
		name := []string{a, b}[i%2]
		if i == 0 {
			expect.OK(t, os.Truncate(a, 0))
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		expect.OK(t, err)
		_, err = f.WriteString(line)
		expect.OK(t, errors.Join(err, f.Close()))
	}
	expect.Content(t, a, want)
	expect.Content(t, b, want)
	expect.OK(t, os.Truncate(a, 5))
	expect.Content(t, b, want[:5])
	// Replaced by a rename: the entry that b has cached is of a file that has gone.
	expect.OK(t, os.WriteFile(filepath.Join(p.Dir, "g"), []byte("another"), 0o644))
	expect.OK(t, os.Rename(filepath.Join(p.Dir, "g"), a))
	expect.Content(t, b, "another")
	if p.Local != "" {
		expect.OK(t, os.WriteFile(filepath.Join(p.Local, "f"), []byte("the server's own"), 0o644))
		expect.Content(t, a, "the server's own")
		expect.Content(t, b, "the server's own")
	}
}

// testExclusive: of two clients that make a file exclusively one does, each time.
func testExclusive(t *testing.T, p Place) {
	for i := range 30 {
		name := fmt.Sprint("f", i)
		ends := make(chan error, 2)
		for _, dir := range []string{p.Dir, p.Other} {
			go func() {
				f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
				if err == nil {
					err = f.Close()
				}
				ends <- err
			}()
		}
		one, other := <-ends, <-ends
		if one != nil {
			one, other = other, one
		}
		expect.OK(t, one)
		expect.Errno(t, other, syscall.EEXIST)
	}
}

// testOthersListing: names that another client makes and removes are listed, and no longer, by the next listing.
func testOthersListing(t *testing.T, p Place) {
	for i := range 100 {
		expect.OK(t, os.WriteFile(filepath.Join(p.Dir, fmt.Sprintf("n%03d", i)), nil, 0o644))
	}
	names := func() int {
		t.Helper()
		list, err := os.ReadDir(p.Other)
		expect.OK(t, err)
		return len(list)
	}
	if n := names(); n != 100 {
		t.Errorf("another client lists %d names of 100", n)
	}
	for i := 0; i < 100; i += 2 {
		expect.OK(t, os.Remove(filepath.Join(p.Dir, fmt.Sprintf("n%03d", i))))
	}
	expect.Soon(t, "50 names", func() bool { return names() == 50 }) // hidden names are for a moment
	expect.Errno(t, syscall.Rmdir(p.Other), syscall.ENOTEMPTY)
}

// held opens the file "f" of a directory.
func held(t *testing.T, dir string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "f"), flags, 0o666)
	expect.OK(t, err)
	t.Cleanup(func() { _ = f.Close() }) // where the check has failed
	return f
}

// lock asks for a lock of an open file description, without waiting unless how says so.
func lock(f *os.File, typ int16, start, length int64, how ...int) error {
	command := unix.F_OFD_SETLK
	if len(how) > 0 {
		command = how[0]
	}
	l := unix.Flock_t{Type: typ, Start: start, Len: length}
	return unix.FcntlFlock(f.Fd(), command, &l)
}

// testLocks: ranges that one mount has locked are locked for another, and for programs of the server's host, as theirs
// are for it; one that waits gets its lock.
func testLocks(t *testing.T, p Place) {
	a := held(t, p.Dir, os.O_RDWR|os.O_CREATE)
	b := held(t, p.Other, os.O_RDWR)
	expect.OK(t, lock(a, unix.F_WRLCK, 2, 3))
	expect.Errno(t, lock(b, unix.F_WRLCK, 4, 1), syscall.EAGAIN)
	expect.Errno(t, lock(b, unix.F_RDLCK, 0, 0), syscall.EAGAIN)
	expect.OK(t, lock(b, unix.F_WRLCK, 5, 10))
	l := unix.Flock_t{Type: unix.F_RDLCK, Len: 5}
	expect.OK(t, unix.FcntlFlock(b.Fd(), unix.F_OFD_GETLK, &l))
	if l.Type != unix.F_WRLCK || l.Start != 2 || l.Len != 3 {
		t.Errorf("held is %+v", l)
	}
	if p.Local != "" {
		c := held(t, p.Local, os.O_RDWR)
		expect.Errno(t, lock(c, unix.F_RDLCK, 0, 0), syscall.EAGAIN)
		expect.OK(t, lock(c, unix.F_WRLCK, 1000, 10))
		expect.Errno(t, lock(a, unix.F_RDLCK, 1005, 1), syscall.EAGAIN)
		expect.OK(t, c.Close())
		expect.OK(t, lock(a, unix.F_RDLCK, 1005, 1))
	}
	got := make(chan error, 1)
	go func() { got <- lock(b, unix.F_WRLCK, 0, 4, unix.F_OFD_SETLKW) }()
	expect.OK(t, lock(a, unix.F_UNLCK, 0, 0))
	expect.OK(t, <-got)
	expect.Errno(t, lock(a, unix.F_RDLCK, 0, 1), syscall.EAGAIN)
	expect.OK(t, b.Close()) // frees them
	expect.Soon(t, "the lock", func() bool { return lock(a, unix.F_WRLCK, 0, 0) == nil })
	expect.OK(t, a.Close())
}

// testLocksCarry: what was written under a lock is there for whoever holds the next one, though nobody has closed the
// file, and whatever was cached of it (nfs(5), "Using file locks with NFS").
func testLocksCarry(t *testing.T, p Place) {
	a := held(t, p.Dir, os.O_RDWR|os.O_CREATE)
	files := []*os.File{a, held(t, p.Other, os.O_RDWR)}
	reader := held(t, p.Other, os.O_RDONLY)
	for i := range 40 {
		want := fmt.Sprintf("round %2d", i)
		by, other := files[i%2], files[1-i%2]
		expect.OK(t, lock(by, unix.F_WRLCK, 0, 0))
		_, err := by.WriteAt([]byte(want), 4096)
		expect.OK(t, errors.Join(err, lock(by, unix.F_UNLCK, 0, 0)))
		seen := []*os.File{other}
		if by == a {
			seen = append(seen, reader)
		}
		for _, f := range seen {
			got := make([]byte, len(want))
			expect.OK(t, lock(f, unix.F_RDLCK, 0, 0))
			_, err := f.ReadAt(got, 4096)
			expect.OK(t, errors.Join(err, lock(f, unix.F_UNLCK, 0, 0)))
			if string(got) != want {
				t.Fatalf("under the next lock %q is read, and %q was written", got, want)
			}
		}
	}
	expect.OK(t, errors.Join(files[0].Close(), files[1].Close(), reader.Close()))
}

// testFlock: a lock by flock(2) holds between mounts.
func testFlock(t *testing.T, p Place) {
	a := held(t, p.Dir, os.O_RDWR|os.O_CREATE)
	b := held(t, p.Other, os.O_RDWR)
	expect.OK(t, syscall.Flock(int(a.Fd()), syscall.LOCK_EX))
	expect.Errno(t, syscall.Flock(int(b.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	got := make(chan error, 1)
	go func() { got <- syscall.Flock(int(b.Fd()), syscall.LOCK_EX) }()
	expect.OK(t, a.Close()) // frees it: what waits gets it
	expect.OK(t, <-got)
	expect.OK(t, b.Close())
}
