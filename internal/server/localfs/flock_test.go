//go:build linux

package localfs

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/ofd"
	"github.com/nfsbox/nfsbox/vfs"
)

func lockOwnerNamed(client string, id byte) (o vfs.Owner) {
	o.Client, o.N = client, 1
	o.ID[0] = id
	return o
}

// local is a program of this host that has a file open. It locks for itself
// (classic) or for its description.
type local struct {
	t *testing.T
	f *os.File
}

func openLocal(t *testing.T, path string) local {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return local{t, f}
}

func (l local) lock(cmd int, kind int16, off, n int64) error {
	return unix.FcntlFlock(l.f.Fd(), cmd, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: off, Len: n})
}

// TestLocksAndLocalPrograms has locks of ours and of local programs, of both
// kinds, meet.
func TestLocksAndLocalPrograms(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		for name, cmd := range map[string]int{"classic": unix.F_SETLK, "of a description": unix.F_OFD_SETLK} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				f := open(t, dir, o.anew(t))
				x := mkfile(t, f, f.root, "file", "content")
				me := lockOwnerNamed("client", 1)
				l := openLocal(t, filepath.Join(dir, "file"))
				if err := l.lock(cmd, unix.F_WRLCK, 10, 5); err != nil {
					t.Fatal(err)
				}
				holder, free, err := f.TestLock(t.Context(), x, &vfs.Lock{Owner: me, Exclusive: true})
				if want := (vfs.Lock{Exclusive: true, Off: 10, Len: 5}); err != nil || free || holder != want {
					t.Errorf("in the way: %+v, %t, %v; want %+v", holder, free, err, want)
				}
				// The refusal closes a descriptor, by which this process loses its
				// classic locks: what comes here is the last that l has of them.
				wantErr(t, f.Lock(t.Context(), x, &vfs.Lock{Owner: me, Off: 14, Len: 1}), vfs.ErrLocked)
				mine := &vfs.Lock{Owner: me, Exclusive: true, Off: 15}
				if err := f.Lock(t.Context(), x, mine); err != nil {
					t.Fatal(err)
				}
				// A classic lock of this process would be lost by this.
				if s := content(t, f, x); s != "content" {
					t.Errorf("content %q", s)
				}
				again := openLocal(t, filepath.Join(dir, "file"))
				if err := again.f.Close(); err != nil {
					t.Fatal(err)
				}
				if err := l.lock(cmd, unix.F_RDLCK, 1<<40, 1); !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
					t.Errorf("a local program takes what is locked: %v", err)
				}
				if err := f.Unlock(t.Context(), x, mine); err != nil {
					t.Fatal(err)
				}
				if err := l.lock(cmd, unix.F_RDLCK, 0, 0); err != nil {
					t.Errorf("a local program, when all is free: %v", err)
				}
				if err := f.Lock(t.Context(), x, &vfs.Lock{Owner: me}); err != nil {
					t.Errorf("a lock to be shared with a local program: %v", err)
				}
			})
		}
	})
}

// anew is o with another state directory, on a disk that does not keep others
// waiting.
func (o Options) anew(t *testing.T) Options {
	t.Helper()
	if o.StateDir != "" {
		o.StateDir = inMemory(t)
	}
	return o
}

// TestLocksEnd looks for what is left of locks that are freed, with their files
// gone or not, and of those that nobody frees.
func TestLocksEnd(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir, mapOptions(t))
	x, y := mkfile(t, f, f.root, "x", ""), mkfile(t, f, f.root, "y", "")
	a, b := lockOwnerNamed("a", 1), lockOwnerNamed("b", 1)
	for _, o := range []vfs.Owner{a, b} {
		for i := range uint64(3) {
			if err := errors.Join(f.Lock(t.Context(), x, &vfs.Lock{Owner: o, Off: 2 * i, Len: 1}),
				f.Lock(t.Context(), y, &vfs.Lock{Owner: o, Off: i, Len: 1})); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, _ := f.flocks.Held(); n != 4 {
		t.Errorf("%d descriptions for two owners of two files", n)
	}
	if _, err := f.Remove(t.Context(), f.root, "x", false); err != nil {
		t.Fatal(err)
	}
	for _, x := range []vfs.Handle{x, y} {
		if err := f.Unlock(t.Context(), x, &vfs.Lock{Owner: a, Off: 0, Len: 1}); err != nil {
			t.Error(err)
		}
		if err := f.Unlock(t.Context(), x, &vfs.Lock{Owner: a}); err != nil {
			t.Error(err)
		}
	}
	if n, files := f.flocks.Held(); n != 2 || files != 2 {
		t.Errorf("%d descriptions of %d files are left", n, files)
	}
	if err := f.ReleaseLocks(t.Context(), func(o *vfs.Owner) bool { return o.Client == "b" }); err != nil {
		t.Fatal(err)
	}
	if n, files := f.flocks.Held(); n != 0 || files != 0 {
		t.Errorf("%d descriptions of %d files are left", n, files)
	}
	// This one is for Close, which open looks after.
	if err := f.Lock(t.Context(), y, &vfs.Lock{Owner: a, Exclusive: true}); err != nil {
		t.Fatal(err)
	}
}

func TestLockBounds(t *testing.T) {
	dir := t.TempDir()
	o := mapOptions(t)
	o.MaxOpen = 16
	f := open(t, dir, o)
	x := mkfile(t, f, f.root, "x", "")
	for i := range byte(16 / lockShare) {
		if err := f.Lock(t.Context(), x, &vfs.Lock{Owner: lockOwnerNamed("many", i)}); err != nil {
			t.Fatal(err)
		}
	}
	last := &vfs.Lock{Owner: lockOwnerNamed("one more", 0)}
	wantErr(t, f.Lock(t.Context(), x, last), vfs.ErrBusy)
	if got := content(t, f, x); got != "" {
		t.Errorf("content %q", got)
	}
	if err := f.Unlock(t.Context(), x, &vfs.Lock{Owner: lockOwnerNamed("many", 3)}); err != nil {
		t.Fatal(err)
	}
	if err := f.Lock(t.Context(), x, last); err != nil {
		t.Error(err)
	}
	for i := range uint64(ofd.MaxRanges - 1) {
		if err := f.Unlock(t.Context(), x, &vfs.Lock{Owner: last.Owner, Off: 2 * i, Len: 1}); err != nil {
			t.Fatal(err)
		}
	}
	// The first took no byte from the middle: one more is possible.
	if err := f.Unlock(t.Context(), x, &vfs.Lock{Owner: last.Owner, Off: 1 << 20, Len: 1}); err != nil {
		t.Error(err)
	}
	wantErr(t, f.Unlock(t.Context(), x, &vfs.Lock{Owner: last.Owner, Off: 1 << 21, Len: 1}), vfs.ErrBusy)
	wantErr(t, f.Lock(t.Context(), x, &vfs.Lock{Owner: last.Owner, Off: math.MaxUint64}), vfs.ErrFBig)
	if err := f.Unlock(t.Context(), x, &vfs.Lock{Owner: last.Owner}); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyLocks locks where nothing can be written.
func TestReadOnlyLocks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	o := mapOptions(t)
	o.ReadOnly = true
	f := open(t, dir, o)
	x, _, _, err := f.Lookup(t.Context(), f.root, "file")
	if err != nil {
		t.Fatal(err)
	}
	me := lockOwnerNamed("me", 1)
	if err := f.Lock(t.Context(), x, &vfs.Lock{Owner: me}); err != nil {
		t.Error(err)
	}
	wantErr(t, f.Lock(t.Context(), x, &vfs.Lock{Owner: me, Exclusive: true}), vfs.ErrROFS)
	if _, free, err := f.TestLock(t.Context(), x, &vfs.Lock{Owner: lockOwnerNamed("other", 1), Exclusive: true}); err != nil || free {
		t.Errorf("free: %t, %v", free, err)
	}
}

// TestLockedProgramRuns has a user lock a program that he may read, and not write to:
// this host must be able to execute it all the same.
func TestLockedProgramRuns(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "program")
	f := open(t, dir, mapOptions(t))
	x := mkfile(t, f, f.root, "program", "")
	if _, err := f.SetAttr(t.Context(), x, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}, nil); err != nil {
		t.Fatal(err)
	}
	user := f.As(&vfs.Caller{UID: 4711, GID: 4711}).(vfs.Locker)
	a, b := lockOwnerNamed("a", 1), lockOwnerNamed("b", 1)
	if err := user.Lock(t.Context(), x, &vfs.Lock{Owner: a, Len: 1}); err != nil {
		t.Fatal(err)
	}
	if got, want := lockedBy(t, path), []int{unix.O_RDONLY}; !slices.Equal(got, want) {
		t.Errorf("the reader has it open as %#o, want %#o", got, want)
	}
	if err := f.Lock(t.Context(), x, &vfs.Lock{Owner: b, Len: 1}); err != nil {
		t.Fatal(err)
	}
	if got, want := lockedBy(t, path), []int{unix.O_RDONLY, unix.O_RDWR}; !slices.Equal(got, want) {
		t.Errorf("reader and writer have it open as %#o, want %#o", got, want)
	}
	wantErr(t, user.Lock(t.Context(), x, &vfs.Lock{Owner: a, Len: 1, Exclusive: true}), vfs.ErrAccess)
}

// lockedBy is how this process has path open wherever a lock belongs to the description,
// as /proc tells it (proc_pid_fdinfo(5)): O_RDONLY, O_WRONLY or O_RDWR, sorted.
func lockedBy(t *testing.T, path string) (how []int) {
	t.Helper()
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir("/proc/self/fd")) {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil || to != path {
			continue
		}
		info := string(must[[]byte](t)(os.ReadFile("/proc/self/fdinfo/" + e.Name())))
		_, flags, ok := strings.Cut(info, "flags:")
		if !ok || !strings.Contains(info, "OFDLCK") {
			continue
		}
		n := must[int64](t)(strconv.ParseInt(strings.Fields(flags)[0], 8, 64))
		how = append(how, int(n)&unix.O_ACCMODE)
	}
	slices.Sort(how)
	return how
}
