//go:build linux

package localfs

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

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
	if f.flocks.open != 4 {
		t.Errorf("%d descriptions for two owners of two files", f.flocks.open)
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
	if f.flocks.open != 2 || len(f.flocks.files) != 2 {
		t.Errorf("%d descriptions of %d files are left", f.flocks.open, len(f.flocks.files))
	}
	if err := f.ReleaseLocks(t.Context(), func(o *vfs.Owner) bool { return o.Client == "b" }); err != nil {
		t.Fatal(err)
	}
	if f.flocks.open != 0 || len(f.flocks.files) != 0 {
		t.Errorf("%d descriptions of %d files are left", f.flocks.open, len(f.flocks.files))
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
	for i := range uint64(maxLockRanges - 1) {
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
	f := open(t, t.TempDir(), mapOptions(t))
	x := mkfile(t, f, f.root, "program", "")
	if _, err := f.SetAttr(t.Context(), x, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}, nil); err != nil {
		t.Fatal(err)
	}
	user := f.As(&vfs.Caller{UID: 4711, GID: 4711}).(vfs.Locker)
	opened := func(o vfs.Owner) int {
		t.Helper()
		flags, err := unix.FcntlInt(uintptr(f.flocks.files[x].owners[o].fd), unix.F_GETFL, 0)
		if err != nil {
			t.Fatal(err)
		}
		return flags & unix.O_ACCMODE
	}
	a, b := lockOwnerNamed("a", 1), lockOwnerNamed("b", 1)
	if err := user.Lock(t.Context(), x, &vfs.Lock{Owner: a, Len: 1}); err != nil {
		t.Fatal(err)
	}
	if err := f.Lock(t.Context(), x, &vfs.Lock{Owner: b, Len: 1}); err != nil {
		t.Fatal(err)
	}
	if opened(a) != unix.O_RDONLY || opened(b) != unix.O_RDWR {
		t.Errorf("the reader has it open as %#o, the writer as %#o", opened(a), opened(b))
	}
	wantErr(t, user.Lock(t.Context(), x, &vfs.Lock{Owner: a, Len: 1, Exclusive: true}), vfs.ErrAccess)
}

// TestLockShares: clients take all descriptions they can have, one after the other,
// whatever the files. One alone has half, and many that come later find some, too. A
// newcomer gets what has come back.
func TestLockShares(t *testing.T) {
	var table lockTable
	const most = 2048
	fill := func(share string) (n int) {
		for table.room(most, share) {
			n++
		}
		return n
	}
	if n := fill("0"); n != most/2 {
		t.Errorf("one alone has got %d of %d", n, most)
	}
	for share := 1; share < 20; share++ {
		if n := fill(strconv.Itoa(share)); n < most/lockFew || n > most/4 {
			t.Errorf("share %d has got %d, want %d at least", share, n, most/lockFew)
		}
	}
	for share := 20; table.open < most; share++ {
		if fill(strconv.Itoa(share)) == 0 {
			t.Fatalf("share %d has got none, and %d are taken", share, table.open)
		}
	}
	for range 16 {
		table.left("1")
	}
	if table.room(most, "0") || !table.room(most, "a newcomer") {
		t.Error("what has come back is not a newcomer's, or is the greediest one's")
	}
	table.left("a newcomer")
	for table.shares["1"] > 0 {
		table.left("1")
	}
	sum := 0
	for _, n := range table.shares {
		sum += n
	}
	if _, here := table.shares["1"]; here || table.open != sum {
		t.Errorf("%d are held, %v", table.open, table.shares)
	}
}

// TestLockSharesSmall: with few descriptions, too, a client that has none finds one as
// long as there is any.
func TestLockSharesSmall(t *testing.T) {
	for most := range 70 {
		var table lockTable
		for share := 0; table.open < most; share++ {
			n := 0
			for table.room(most, strconv.Itoa(share)) {
				n++
			}
			if n == 0 || n > (most+2)/2 {
				t.Fatalf("of %d share %d has got %d", most, share, n)
			}
		}
		if table.room(most, "one more") || table.room(most, "") {
			t.Errorf("there are more than %d", most)
		}
	}
}
