//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// items are the workload, in the order in which it is done. Every item has a
// directory of its own.
var items = []item{
	{name: "create", run: create},
	{name: "rename", run: rename},
	{name: "link", run: link},
	{name: "chmod", run: chmod},
	{name: "chown", run: chown, root: true},
	{name: "truncate", run: truncate},
	{name: "mmap", run: mmap},
	{name: "append", run: appending},
	{name: "exclusive", run: exclusive},
	{name: "special", run: special},
	{name: "silly-rename", run: sillyRename},
	{name: "direct", run: direct},
	{name: "close-to-open", run: closeToOpen},
	{name: "locks", run: locks, locks: true},
	{name: "blocking-lock", run: blockingLock, locks: true},
	{name: "rename-storm", run: renameStorm},
	{name: "many-entries", run: manyEntries},
	{name: "tar", run: tarTree},
	{name: "git", run: gitTree},
	{name: "sqlite", run: sqlite},
}

func join(parts ...string) string { return filepath.Join(parts...) }

func holds(path, want string) error {
	got, err := os.ReadFile(path)
	if err == nil && string(got) != want {
		err = fmt.Errorf("%s holds %.60q (%d bytes), want %.60q (%d bytes)", path, got, len(got), want, len(want))
	}
	return err
}

func put(path, data string) error { return os.WriteFile(path, []byte(data), 0o644) }

func gone(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return wrong(err, "%s: want ENOENT", path)
	}
	return nil
}

func wrong(err error, format string, args ...any) error {
	return errors.Join(fmt.Errorf(format, args...), err)
}

func all(steps ...func() error) error {
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func create(s site) error {
	for i := range 50 {
		path := join(s.a, fmt.Sprintf("file-%d", i))
		if err := put(path, path); err != nil {
			return err
		}
	}
	for i := range 50 {
		if err := holds(join(s.b, fmt.Sprintf("file-%d", i)), join(s.a, fmt.Sprintf("file-%d", i))); err != nil {
			return err
		}
	}
	return all(
		func() error { return os.MkdirAll(join(s.a, "x/y/z"), 0o755) },
		func() error { return os.RemoveAll(join(s.a, "x")) },
		func() error { return gone(join(s.a, "x")) },
	)
}

func rename(s site) error {
	return all(
		func() error { return put(join(s.a, "one"), "1") },
		func() error { return put(join(s.a, "two"), "2") },
		func() error { return os.Rename(join(s.a, "one"), join(s.a, "two")) },
		func() error { return holds(join(s.a, "two"), "1") },
		func() error { return gone(join(s.a, "one")) },
		func() error { return os.Mkdir(join(s.a, "d"), 0o755) },
		func() error { return os.Rename(join(s.a, "two"), join(s.a, "d/three")) },
		func() error { return os.Rename(join(s.a, "d"), join(s.a, "e")) },
		func() error { return holds(join(s.b, "e/three"), "1") },
		func() error {
			if err := os.Rename(join(s.a, "e"), join(s.a, "e/f")); !errors.Is(err, unix.EINVAL) {
				return wrong(err, "a directory into itself")
			}
			return nil
		},
	)
}

func link(s site) error {
	return all(
		func() error { return put(join(s.a, "f"), "data") },
		func() error { return os.Link(join(s.a, "f"), join(s.a, "g")) },
		func() error { return os.Symlink("g", join(s.a, "s")) },
		func() error { return holds(join(s.b, "s"), "data") },
		func() error {
			var st unix.Stat_t
			if err := unix.Stat(join(s.a, "f"), &st); err != nil || st.Nlink != 2 {
				return wrong(err, "nlink %d", st.Nlink)
			}
			return nil
		},
		func() error { return os.Remove(join(s.a, "f")) },
		func() error { return holds(join(s.a, "g"), "data") },
		func() error {
			if got, err := os.Readlink(join(s.a, "s")); err != nil || got != "g" {
				return wrong(err, "target %q", got)
			}
			return nil
		},
	)
}

func modeIs(path string, want uint32) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Mode&0o7777 != want {
		return wrong(err, "mode %#o, want %#o", st.Mode&0o7777, want)
	}
	return nil
}

func chmod(s site) error {
	f := join(s.a, "f")
	when := time.Unix(1_000_000_000, 0)
	return all(
		func() error { return put(f, "data") },
		func() error { return unix.Chmod(f, 0o4751) },
		func() error { return modeIs(f, 0o4751) },
		func() error { return unix.Chmod(f, 0o600) },
		func() error { return modeIs(join(s.b, "f"), 0o600) },
		func() error { return os.Chtimes(f, when, when) },
		func() error {
			st, err := os.Stat(f)
			if err == nil && !st.ModTime().Equal(when) {
				err = fmt.Errorf("modified %v, want %v", st.ModTime(), when)
			}
			return err
		},
	)
}

func truncate(s site) error {
	f := join(s.a, "f")
	return all(
		func() error { return put(f, "0123456789") },
		func() error { return os.Truncate(f, 4) },
		func() error { return holds(f, "0123") },
		func() error { return os.Truncate(f, 6) },
		func() error { return holds(join(s.b, "f"), "0123\x00\x00") },
		func() error { return os.Truncate(f, 5<<30) },
		func() error {
			st, err := os.Stat(f)
			if err == nil && st.Size() != 5<<30 {
				err = fmt.Errorf("size %d", st.Size())
			}
			return err
		},
		func() error { return os.Truncate(f, 0) },
		func() error { return holds(f, "") },
	)
}

// mmap writes through a mapping and reads through another.
func mmap(s site) error {
	const size = 256 << 10
	f, err := os.Create(join(s.a, "f"))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is closed below
	if err := f.Truncate(size); err != nil {
		return err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	for i := range m {
		m[i] = byte(i >> 8)
	}
	want := bytes.Clone(m)
	if err := errors.Join(unix.Msync(m, unix.MS_SYNC), unix.Munmap(m), f.Close()); err != nil {
		return err
	}
	g, err := os.Open(join(s.b, "f"))
	if err != nil {
		return err
	}
	defer g.Close() //nolint:errcheck // it was read alone
	if m, err = unix.Mmap(int(g.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return err
	}
	if !bytes.Equal(m, want) {
		return errors.New("what was written through one mapping is not what another shows")
	}
	return unix.Munmap(m)
}

// appending adds by turns from both mounts.
func appending(s site) error {
	want := ""
	for i := range 20 {
		dir := s.a
		if i%2 == 1 {
			dir = s.b
		}
		f, err := os.OpenFile(join(dir, "f"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("line %d\n", i)
		want += line
		_, err = io.WriteString(f, line)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return holds(join(s.a, "f"), want)
}

// exclusive creates one name in many goroutines: one of them succeeds.
func exclusive(s site) error {
	for i := range 10 {
		var made atomic.Int32
		var wg sync.WaitGroup
		errs := make(chan error, 8)
		for j := range 8 {
			dir := []string{s.a, s.b}[j%2]
			wg.Go(func() {
				f, err := os.OpenFile(join(dir, fmt.Sprintf("f%d", i)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
				if err == nil {
					made.Add(1)
					err = f.Close()
				} else if errors.Is(err, os.ErrExist) {
					err = nil
				}
				errs <- err
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				return err
			}
		}
		if n := made.Load(); n != 1 {
			return fmt.Errorf("%d made a file that one can make", n)
		}
	}
	return nil
}

func special(s site) error {
	return all(
		func() error { return unix.Mkfifo(join(s.a, "p"), 0o644) },
		func() error {
			var st unix.Stat_t
			if err := unix.Lstat(join(s.b, "p"), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
				return wrong(err, "mode %#o", st.Mode)
			}
			return nil
		},
		func() error { return put(join(s.a, "name \xff\xfe\n and more"), "x") },
		func() error { return holds(join(s.b, "name \xff\xfe\n and more"), "x") },
		func() error {
			var st unix.Statfs_t
			if err := unix.Statfs(s.a, &st); err != nil || st.Blocks == 0 || st.Bavail > st.Blocks {
				return wrong(err, "statfs: %+v", st)
			}
			return nil
		},
	)
}
