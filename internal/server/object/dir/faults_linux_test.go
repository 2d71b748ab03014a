package dir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// faultySys fails the calls of one name, and writes little at a time.
type faultySys struct {
	osSys
	mu  sync.Mutex
	op  string
	err error
	max int // bytes of a write; 0: all
}

func (s *faultySys) fail(op string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.op, s.err = op, err
}

func (s *faultySys) fault(op string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op != s.op {
		return nil
	}
	return s.err
}

func (s *faultySys) Tmpfile(dirfd int, mode uint32) (int, error) {
	if err := s.fault("tmpfile"); err != nil {
		return -1, err
	}
	return s.osSys.Tmpfile(dirfd, mode)
}

func (s *faultySys) Openat(dirfd int, name string, flags int, mode uint32) (int, error) {
	if err := s.fault("openat"); err != nil {
		return -1, err
	}
	return s.osSys.Openat(dirfd, name, flags, mode)
}

func (s *faultySys) Mkdirat(dirfd int, name string, mode uint32) error {
	if err := s.fault("mkdirat"); err != nil {
		return err
	}
	return s.osSys.Mkdirat(dirfd, name, mode)
}

func (s *faultySys) Linkat(fromfd, dirfd int, name string) error {
	if err := s.fault("linkat"); err != nil {
		return err
	}
	return s.osSys.Linkat(fromfd, dirfd, name)
}

func (s *faultySys) Unlinkat(dirfd int, name string, flags int) error {
	if err := s.fault("unlinkat"); err != nil {
		return err
	}
	return s.osSys.Unlinkat(dirfd, name, flags)
}

func (s *faultySys) Renameat(fromfd int, from string, tofd int, to string) error {
	if err := s.fault("renameat"); err != nil {
		return err
	}
	return s.osSys.Renameat(fromfd, from, tofd, to)
}

func (s *faultySys) Pwrite(fd int, p []byte, off int64) (int, error) {
	if err := s.fault("pwrite"); err != nil {
		return 0, err
	}
	if s.max > 0 {
		p = p[:min(len(p), s.max)]
	}
	return s.osSys.Pwrite(fd, p, off)
}

func (s *faultySys) Fdatasync(fd int) error {
	if err := s.fault("fdatasync"); err != nil {
		return err
	}
	return s.osSys.Fdatasync(fd)
}

func (s *faultySys) Fsync(fd int) error {
	if err := s.fault("fsync"); err != nil {
		return err
	}
	return s.osSys.Fsync(fd)
}

// TestFaults fails each call of a Put. The key has what it had, nothing is left
// behind, the error is the contract's, and the next Put succeeds.
func TestFaults(t *testing.T) {
	for _, isNamed := range []bool{false, true} {
		for _, op := range []string{"tmpfile", "openat", "mkdirat", "linkat", "renameat", "pwrite", "fdatasync"} {
			for errno, want := range map[unix.Errno]error{
				unix.ENOSPC: object.ErrNoSpace, unix.EDQUOT: object.ErrNoSpace, unix.EFBIG: object.ErrTooLarge,
				unix.EMFILE: object.ErrBusy, unix.EIO: unix.EIO,
			} {
				t.Run(fmt.Sprintf("named=%v/%s/%v", isNamed, op, errno), func(t *testing.T) {
					sys := &faultySys{}
					path := memory(t)
					s := reopen(t, path, Options{Create: true, Sys: sys})
					s.named.Store(isNamed)
					put(t, s, "old", "as it was")
					sys.fail(op, errno)
					failed := 0
					for _, key := range []string{"old", "new", "deep/er/new"} {
						_, err := s.Put(t.Context(), key, strings.NewReader("x"), object.PutOptions{Size: 1})
						if err == nil {
							continue
						}
						failed++
						if !errors.Is(err, want) || !errors.Is(err, errno) || errors.Is(err, object.ErrUnknownOutcome) {
							t.Errorf("%s: %v", key, err)
						}
						if key == "old" {
							if got := content(t, s, key); got != "as it was" {
								t.Errorf("the old object is %q", got)
							}
						} else if _, err := s.Stat(t.Context(), key); !errors.Is(err, object.ErrNotExist) {
							t.Errorf("%s: %v", key, err)
						}
					}
					if unused := op == "openat" && !isNamed || isNamed && (op == "tmpfile" || op == "linkat"); !unused && failed == 0 {
						t.Error("nothing has failed")
					}
					sound(t, s, path)
					sys.fail("", nil)
					for _, key := range []string{"old", "new", "deep/er/new"} {
						put(t, s, key, "at last")
						if got := content(t, s, key); got != "at last" {
							t.Errorf("%s is %q", key, got)
						}
					}
					sound(t, s, path)
				})
			}
		}
	}
}

// TestNoTmpfile has a file system that cannot make files without a name.
func TestNoTmpfile(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL} {
		path := memory(t)
		sys := &faultySys{op: "tmpfile", err: errno}
		s := reopen(t, path, Options{Create: true, Sys: sys})
		put(t, s, "k", "1")
		put(t, s, "k", "2")
		if got := content(t, s, "k"); got != "2" {
			t.Errorf("%v: it is %q", errno, got)
		}
		sound(t, s, path)
	}
}

// TestShortWrites has a disk that takes little at a time.
func TestShortWrites(t *testing.T) {
	path := memory(t)
	s := reopen(t, path, Options{Create: true, Sys: &faultySys{max: 1000}})
	put(t, s, "k", strings.Repeat("0123456789", 20_000))
	if got := content(t, s, "k"); got != strings.Repeat("0123456789", 20_000) {
		t.Errorf("%d bytes, or other ones", len(got))
	}
	sound(t, s, path)
}

// TestLeftover has a temporary name that cannot be removed. It is counted, and
// harmless; the next life's sweep removes it.
func TestLeftover(t *testing.T) {
	path := memory(t)
	sys := &faultySys{}
	s := reopen(t, path, Options{Create: true, Sys: named{sys}})
	sys.fail("unlinkat", unix.EIO)
	if _, err := s.Put(t.Context(), "k", strings.NewReader("x"), object.PutOptions{Size: 2}); !errors.Is(err, object.ErrMismatch) {
		t.Fatal(err)
	}
	if s.Snapshot().Left != 1 || len(temps(t, path)) != 1 {
		t.Errorf("left: %d, %q", s.Snapshot().Left, temps(t, path))
	}
	sys.fail("", nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, path, Options{})
	if n, more, err := s.Sweep(t.Context(), time.Now().Add(time.Hour)); n != 1 || more || err != nil {
		t.Errorf("the sweep: %d, %v, %v", n, more, err)
	}
	sound(t, s, path)
}

// TestFull fills a small file system, as far as this process may mount one.
func TestFull(t *testing.T) {
	path := t.TempDir()
	if err := unix.Mount("nfsbox-test", path, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("NOT TESTED on a real file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := reopen(t, path, Options{Create: true})
	put(t, s, "small", strings.Repeat("s", 100_000))
	large := bytes.Repeat([]byte("x"), 2<<20)
	for _, size := range []int64{-1, int64(len(large))} {
		for _, key := range []string{"small", "large"} {
			_, err := s.Put(t.Context(), key, bytes.NewReader(large), object.PutOptions{Size: size})
			if !errors.Is(err, object.ErrNoSpace) || !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("%s: %v", key, err)
			}
		}
	}
	put(t, s, "next", strings.Repeat("n", 500_000)) // the room has been given back
	if got := content(t, s, "small"); got != strings.Repeat("s", 100_000) {
		t.Errorf("the object that could not be replaced has %d bytes", len(got))
	}
	sound(t, s, path)
	if _, err := os.Stat(s.file(path, "large")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the large object: %v", err)
	}
}
