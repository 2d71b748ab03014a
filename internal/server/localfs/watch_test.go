//go:build linux

package localfs

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/inotify"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// hearing is what somebody who watches has been told.
type hearing struct {
	mu   sync.Mutex
	was  vfs.Change
	news chan struct{}
}

// hear watches x until the test ends, if it is not stopped before.
func hear(t *testing.T, f *FS, x vfs.Handle) (*hearing, func()) {
	t.Helper()
	w := &hearing{news: make(chan struct{}, 1)}
	stop, err := f.Watch(x, func(c vfs.Change) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.was |= c
		select {
		case w.news <- struct{}{}:
		default:
		}
	})
	if errors.Is(err, vfs.ErrNotSupp) {
		t.Skip("NOT TESTED: no inotify here")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return w, stop
}

// take returns what was told until now.
func (w *hearing) take() vfs.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.news:
	default:
	}
	defer func() { w.was = 0 }()
	return w.was
}

// wait waits until something is told.
func (w *hearing) wait(t *testing.T) vfs.Change {
	t.Helper()
	select {
	case <-w.news:
	case <-time.After(time.Minute):
		t.Error("nothing is heard of it")
	}
	return w.take()
}

// usePoller opens what the runtime needs to wait for descriptors, and keeps.
func usePoller(t *testing.T) {
	t.Helper()
	r, w, err := os.Pipe()
	if err == nil {
		err = errors.Join(r.Close(), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWatchLocal has a local program change what is watched.
func TestWatchLocal(t *testing.T) {
	usePoller(t)
	bothModes(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		path := filepath.Join(dir, "x")
		f := open(t, dir, o)
		r := root(t, f)
		x, last := mkfile(t, f, r, "x", "hello"), mkfile(t, f, r, "last", "")
		for _, c := range []struct {
			what string
			do   func() error
			want vfs.Change
		}{
			{"mode", func() error { return os.Chmod(path, 0o640) }, vfs.ChangeRights},
			{"the same mode", func() error { return os.Chmod(path, 0o640) }, 0},
			{"times", func() error { return os.Chtimes(path, time.Now(), time.Unix(1, 0)) }, 0},
			{"data", func() error { return os.WriteFile(path, []byte("other"), 0) }, 0},
			{"another name", func() error { return os.Link(path, path+"2") }, 0},
			{"its place", func() error { return os.Rename(path, path+"3") }, 0},
			{"its place again", func() error { return os.Rename(path+"3", path) }, 0},
			{"list", func() error {
				// version 2; user rw, bob r, group r, mask r, other none
				return unix.Setxattr(path, linux.XattrAccess, []byte("\x02\x00\x00\x00"+
					"\x01\x00\x06\x00\xff\xff\xff\xff"+"\x02\x00\x04\x00\x16\x2f\x00\x00"+"\x04\x00\x04\x00\xff\xff\xff\xff"+
					"\x10\x00\x04\x00\xff\xff\xff\xff"+"\x20\x00\x00\x00\xff\xff\xff\xff"), 0)
			}, vfs.ChangeRights},
			{"one name less", func() error { return os.Remove(path + "2") }, vfs.ChangeGone},
			{"no name", func() error { return os.Remove(path) }, vfs.ChangeGone},
		} {
			w, stop := hear(t, f, x)
			end, stopEnd := hear(t, f, last)
			err := c.do()
			if errors.Is(err, unix.EOPNOTSUPP) {
				continue // no lists here
			}
			if err != nil {
				t.Fatal(err)
			}
			// What comes after it is heard after it.
			if err := flip(filepath.Join(dir, "last")); err != nil {
				t.Fatal(err)
			}
			end.wait(t)
			if got := w.take(); got != c.want {
				t.Errorf("%s: %b is heard, want %b", c.what, got, c.want)
			}
			stop()
			stopEnd()
		}
		if n, inodes := f.watches.Count(); n != 0 || inodes != 0 {
			t.Errorf("%d watches are left, of %d inodes", n, inodes)
		}
	})
}

// flip gives a file another mode.
func flip(path string) error {
	i, err := os.Stat(path)
	if err == nil {
		err = os.Chmod(path, i.Mode()^0o100)
	}
	return err
}

// TestWatchOwn is told of what is changed through the FS when that returns.
func TestWatchOwn(t *testing.T) {
	usePoller(t)
	bothModes(t, func(t *testing.T, o Options) {
		f := open(t, t.TempDir(), o)
		r := root(t, f)
		ctx := t.Context()
		var x vfs.Handle
		mkfile(t, f, r, "y", "")
		for _, c := range []struct {
			what string
			do   func() error
			want vfs.Change
		}{
			{"mode", func() error { return chmod(t, f, x, 0o640) }, vfs.ChangeRights},
			{"list", func() error {
				a, err := f.ACL(ctx, x)
				if err == nil {
					err = f.SetACL(ctx, x, a)
				}
				return err
			}, vfs.ChangeRights},
			{"remove", func() error { _, err := f.Remove(ctx, r, "x", false); return err }, vfs.ChangeGone},
			{"rename over", func() error { _, _, err := f.Rename(ctx, r, "y", r, "x"); return err }, vfs.ChangeGone},
		} {
			x = mkfile(t, f, r, "x", "")
			w, _ := hear(t, f, x)
			if err := c.do(); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			if got := w.take(); got&c.want == 0 {
				t.Errorf("%s: told %b, want %b", c.what, got, c.want)
			}
			if _, err := f.Remove(ctx, r, "x", false); err != nil && !errors.Is(err, vfs.ErrNoEnt) {
				t.Fatal(err)
			}
		}
		// A caller who is refused does not disturb others.
		x = mkfile(t, f, r, "z", "")
		w, _ := hear(t, f, x)
		wantErr(t, chmod(t, f.As(bob()), x, 0o777), vfs.ErrPerm)
		if got := w.take(); got != 0 {
			t.Errorf("told %b of what was refused", got)
		}
	})
}

// TestWatchEnds stops watching with the object, and after Close.
func TestWatchEnds(t *testing.T) {
	usePoller(t)
	f := volatileFS(t, Options{})
	x := mkfile(t, f, f.root, "x", "")
	_, err := f.Watch(must[vfs.Handle](t)(vfs.MakeHandle([]byte("bad"))), nil)
	wantErr(t, err, vfs.ErrBadHandle)
	_, stop := hear(t, f, x)
	t.Cleanup(stop) // once more, before Close
	if _, err := f.Remove(t.Context(), f.root, "x", false); err != nil {
		t.Fatal(err)
	}
	_, err = f.Watch(x, nil)
	wantErr(t, err, vfs.ErrStale)

	other, err := New(t.TempDir(), Options{Handles: HandlesMap, Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	_, late := hear(t, other, other.root)
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	late()
}

// TestWatchBetween has a local program give rights and take them back before the
// events are read: a watcher that was granted something in between is told, whether it is the
// first to watch the file or not.
func TestWatchBetween(t *testing.T) {
	usePoller(t)
	for _, watched := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x")
		f := open(t, dir, mapOptions(t))
		x := mkfile(t, f, root(t, f), "x", "hello")
		chmod := func(mode os.FileMode) {
			t.Helper()
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		chmod(0o600)
		// Events are not looked at yet.
		read, look := make(chan struct{}), f.watches.Look
		f.watches.Look = func(x vfs.Handle) (inotify.State, error) {
			<-read
			return look(x)
		}
		if watched {
			hear(t, f, x)
		}
		w, _ := hear(t, f, x)
		chmod(0o604)
		hostOpen(t, f.As(bob()).(*FS), x, vfs.HostOpen{Access: vfs.ShareRead})
		chmod(0o600)
		close(read)
		if got := w.wait(t); got&vfs.ChangeRights == 0 {
			t.Errorf("watched before %t: told %b", watched, got)
		}
	}
}

// TestWatchWithoutDescriptors watches without inotify while this process can have no
// descriptors, and with it afterwards.
func TestWatchWithoutDescriptors(t *testing.T) {
	usePoller(t)
	f := open(t, t.TempDir(), mapOptions(t))
	x := mkfile(t, f, root(t, f), "x", "")
	if _, err := f.GetAttr(t.Context(), x, vfs.MaskV3); err != nil { // which keeps it open
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	_, err := f.Watch(x, func(vfs.Change) {})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	wantErr(t, err, vfs.ErrNotSupp)
	if _, err := f.Watch(x, func(vfs.Change) {}); err != nil {
		t.Errorf("there is no inotify any more: %v", err)
	}
}
