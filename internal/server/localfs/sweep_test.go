//go:build linux

package localfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/vfs"
)

// openedBelow lists what this process has open below dir, as /proc tells it.
func openedBelow(t *testing.T, dir string) (all []string) {
	t.Helper()
	names := must[[]os.DirEntry](t)(os.ReadDir("/proc/self/fd"))
	for _, e := range names {
		path, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && strings.HasPrefix(path, dir+"/") {
			all = append(all, path)
		}
	}
	return all
}

// writable reports whether somebody has name open to be written: a process that gets a
// lease to read it knows that nobody has (fcntl(2)), as one that executes it does (ETXTBSY).
func writable(t *testing.T, name string) bool {
	t.Helper()
	fd := must[int](t)(unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0))
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	return err != nil
}

// TestIdleDescriptorsClose uploads files, with a COMMIT and without, and waits.
func TestIdleDescriptorsClose(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			f := must[*FS](t)(New(dir, o))
			r := root(t, f)
			program, left := mkfile(t, f, r, "program", "#!/bin/true\n"), mkfile(t, f, r, "left", "no COMMIT")
			mkfile(t, f, r, "removed", "locally")
			if err := f.Sync(t.Context(), program); err != nil {
				t.Fatal(err)
			}
			if !writable(t, filepath.Join(dir, "program")) {
				t.Error("what was just written is not open: this test shows nothing")
			}
			must[bool](t)(true, os.Remove(filepath.Join(dir, "removed")))
			time.Sleep((fdcache.IdleWriter + 1) * fdcache.SweepEvery)
			synctest.Wait()
			if writable(t, filepath.Join(dir, "program")) {
				t.Error("a clean file is still open to be written")
			}
			for _, path := range openedBelow(t, dir) {
				if strings.HasSuffix(path, "(deleted)") {
					t.Errorf("%s keeps its blocks", path)
				}
			}
			if s := f.Snapshot(); s.Dirty != 1 || !writable(t, filepath.Join(dir, "left")) {
				t.Errorf("%d dirty files, want the one that nobody has committed", s.Dirty)
			}
			// What is used stays open.
			for range 2 * fdcache.IdleOther {
				if got := content(t, f, left); got != "no COMMIT" {
					t.Errorf("reads %q", got)
				}
				time.Sleep(fdcache.SweepEvery)
			}
			if s := f.Snapshot(); s.Dirty != 0 || s.Cleaned != 1 || s.Open == 0 {
				t.Errorf("dirty %d, synced for their age %d, open %d; want 0, 1 and some", s.Dirty, s.Cleaned, s.Open)
			}
			time.Sleep((fdcache.IdleOther + 2) * fdcache.SweepEvery)
			synctest.Wait()
			if s := f.Snapshot(); s.Open != 0 || f.sweeper.Due() {
				t.Errorf("%d descriptors are open, looked after: %v", s.Open, f.sweeper.Due())
			}
			if got := content(t, f, left); got != "no COMMIT" || !f.sweeper.Due() {
				t.Errorf("reads %q after all was closed", got)
			}
			closeFS(t, f)
		})
	})
}

// TestAgedSyncFails has the disk fail where nobody has asked for a sync.
func TestAgedSyncFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sys faulty
		f := must[*FS](t)(New(t.TempDir(), Options{Handles: HandlesMap, Volatile: true, Sys: &sys}))
		sys.breakDown("fdatasync")
		verf := f.verifier()
		mkfile(t, f, root(t, f), "name", "content")
		time.Sleep((fdcache.IdleDirty + 2) * fdcache.SweepEvery)
		synctest.Wait()
		if f.verifier() == verf {
			t.Error("the write verifier is the same")
		}
		closeFS(t, f)
	})
}

// TestLocksAndDirtLeaveRoom has one caller lock and dirty all the files that he may, and
// another go on: with few descriptors, and with those that a process has by default.
func TestLocksAndDirtLeaveRoom(t *testing.T) {
	for _, most := range []int{64, 512} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			o := mapOptions(t)
			o.MaxOpen = most
			f := open(t, t.TempDir(), o)
			r := root(t, f)
			locked, all := 0, []vfs.Handle(nil)
			for i := range most {
				x := mkfile(t, f, r, fmt.Sprintf("locked %d", i), "")
				all = append(all, x)
				err := f.Lock(t.Context(), x, &vfs.Lock{Owner: vfs.Owner{}, Exclusive: true, Len: 1})
				if errors.Is(err, vfs.ErrBusy) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				locked++
			}
			for i := range most {
				all = append(all, mkfile(t, f, r, fmt.Sprintf("dirty %d", i), "unstable"))
			}
			// What is dirty by more than its share, as it may become for a moment.
			for _, x := range all {
				if d := f.fds.Get(x, fdcache.Write); d != nil {
					f.fds.Dirty.Add(d)
					f.fds.Unpin(d)
				}
			}
			if locked != most/lockShare {
				t.Errorf("%d locks, want %d", locked, most/lockShare)
			}
			for i := range most {
				name := fmt.Sprintf("other %d", i)
				if got := content(t, f, mkfile(t, f, r, name, name)); got != name {
					t.Errorf("%s reads %q", name, got)
				}
			}
			if s := f.Snapshot(); s.Open > most {
				t.Errorf("%d descriptors are open, more than %d", s.Open, most)
			}
		})
	}
}
