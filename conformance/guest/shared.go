//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sillyRename removes a file that is open: it goes on being readable, under a
// name of the client's, until it is closed.
func sillyRename(s site) error {
	if err := put(join(s.a, "f"), "still here"); err != nil {
		return err
	}
	f, err := os.OpenFile(join(s.a, "f"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = all(
		func() error { return os.Remove(join(s.a, "f")) },
		func() error { return gone(join(s.a, "f")) },
		func() error {
			if _, err := f.WriteAt([]byte("STILL"), 0); err != nil {
				return err
			}
			got, err := io.ReadAll(f)
			if err == nil && string(got) != "STILL here" {
				err = fmt.Errorf("an open file that was removed holds %q", got)
			}
			return err
		},
	)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	left, err := os.ReadDir(s.b)
	if err == nil && len(left) != 0 {
		err = fmt.Errorf("left behind: %v", left)
	}
	return err
}

// direct reads and writes past the client's cache.
func direct(s site) error {
	const size = 64 << 10
	buf := make([]byte, size+4096)
	skip := (4096 - int(uintptr(unsafe.Pointer(&buf[0]))%4096)) % 4096 // pages begin on pages
	page := buf[skip : skip+size]
	for i := range page {
		page[i] = byte(i * 7)
	}
	f, err := os.OpenFile(join(s.a, "f"), os.O_CREATE|os.O_RDWR|unix.O_DIRECT, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(page, 0); err == nil {
		err = f.Sync()
	}
	want := string(page)
	clear(page)
	if err == nil {
		_, err = f.ReadAt(page, 0)
	}
	if err == nil && !bytes.Equal(page, []byte(want)) {
		err = errors.New("what was read is not what was written")
	}
	return errors.Join(err, f.Close(), holds(join(s.b, "f"), want))
}

// closeToOpen: what one mount has closed the other sees when it opens.
func closeToOpen(s site) error {
	for i := range 30 {
		text := strings.Repeat(fmt.Sprintf("version %d;", i), i+1)
		if err := put(join(s.a, "f"), text); err != nil {
			return err
		}
		if err := holds(join(s.b, "f"), text); err != nil {
			return err
		}
	}
	return nil
}

// chown gives files to users, and keeps out users who have no right to them.
func chown(s site) error {
	f := join(s.a, "f")
	return all(
		func() error { return put(f, "secret") },
		func() error { return os.Chown(f, 1000, 1001) },
		func() error { return os.Chmod(f, 0o640) },
		func() error {
			var st unix.Stat_t
			if err := unix.Stat(join(s.b, "f"), &st); err != nil || st.Uid != 1000 || st.Gid != 1001 {
				return wrong(err, "owner %d:%d", st.Uid, st.Gid)
			}
			return nil
		},
		func() error {
			cmd := exec.Command("/init", "denied", join(s.b, "f"))
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 2000, Gid: 2000}}
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		},
	)
}

// denied is a process of a user who may not read the file.
func denied(path string) error {
	if _, err := os.ReadFile(path); !errors.Is(err, os.ErrPermission) {
		return wrong(err, "reading another's file")
	}
	return nil
}

// locks takes a lock in this process by one mount, and tries others in other processes by
// the other mount: they get what is free, and nothing else.
func locks(s site) error {
	if err := put(join(s.a, "f"), "0123456789"); err != nil {
		return err
	}
	f, err := os.OpenFile(join(s.a, "f"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = all(
		func() error { return setLock(f, unix.F_SETLK, unix.F_WRLCK, 2, 4) },
		func() error { return tryLock(s.b, "3-1", false) },
		func() error { return tryLock(s.b, "0-2", true) },
		func() error { return tryLock(s.b, "6-0", true) },
		func() error { return setLock(f, unix.F_SETLK, unix.F_UNLCK, 2, 2) },
		func() error { return tryLock(s.b, "2-2", true) },
		func() error { return tryLock(s.b, "4-2", false) },
	)
	if err := errors.Join(err, f.Close()); err != nil { // which gives the rest up
		return err
	}
	return tryLock(s.b, "0-0", true)
}

// blockingLock waits for a lock that another process gives up meanwhile.
func blockingLock(s site) error {
	if err := put(join(s.a, "f"), "0123456789"); err != nil {
		return err
	}
	f, err := os.OpenFile(join(s.a, "f"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := setLock(f, unix.F_SETLK, unix.F_WRLCK, 0, 0); err != nil {
		return errors.Join(err, f.Close())
	}
	waiter := exec.Command("/init", "lock", join(s.b, "f"), "wait-0-0")
	if err := waiter.Start(); err != nil {
		return errors.Join(err, f.Close())
	}
	time.Sleep(2 * time.Second) // to give it time to wait; if it is late, it waits less
	// The server calls the client back, if it can. If not, the client asks again after 30
	// seconds.
	return errors.Join(f.Close(), waiter.Wait())
}

func setLock(f *os.File, how int, typ int16, start, length int64) error {
	return unix.FcntlFlock(f.Fd(), how, &unix.Flock_t{Type: typ, Whence: io.SeekStart, Start: start, Len: length})
}

// tryLock has another process try a range of the file in dir.
func tryLock(dir, span string, want bool) error {
	out, err := exec.Command("/init", "lock", join(dir, "f"), span).CombinedOutput()
	if refused := err != nil; refused == want {
		return fmt.Errorf("another process asks for %s: granted %v, want %v (%s)", span, !refused, want, out)
	}
	return nil
}

// holdLock is that other process: it takes the lock and ends.
func holdLock(path, span string) error {
	how := unix.F_SETLK
	if rest, ok := strings.CutPrefix(span, "wait-"); ok {
		how, span = unix.F_SETLKW, rest
	}
	var start, length int64
	if _, err := fmt.Sscanf(span, "%d-%d", &start, &length); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(setLock(f, how, unix.F_WRLCK, start, length), f.Close())
}

// renameStorm renames the same files in several goroutines, by both mounts: in the end every
// file is there, once.
func renameStorm(s site) error {
	const files, movers, moves = 16, 4, 60
	for i := range files {
		if err := put(join(s.a, fmt.Sprintf("f%d-0", i)), fmt.Sprint(i)); err != nil {
			return err
		}
	}
	errs := make(chan error, movers)
	var wg sync.WaitGroup
	for m := range movers {
		dir := []string{s.a, s.b}[m%2]
		wg.Go(func() {
			for n := range moves {
				i := (n*7 + m) % files
				from, to := fmt.Sprintf("f%d-%d", i, n%3), fmt.Sprintf("f%d-%d", i, (n+1)%3)
				// Another may have been faster.
				if err := os.Rename(join(dir, from), join(dir, to)); err != nil && !errors.Is(err, os.ErrNotExist) {
					errs <- err
					return
				}
			}
			errs <- nil
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	found, err := os.ReadDir(s.a)
	if err != nil {
		return err
	}
	if len(found) != files {
		return fmt.Errorf("%d files are left of %d", len(found), files)
	}
	for _, f := range found {
		number, _, _ := strings.Cut(strings.TrimPrefix(f.Name(), "f"), "-")
		if err := holds(join(s.a, f.Name()), number); err != nil {
			return err
		}
	}
	return nil
}
