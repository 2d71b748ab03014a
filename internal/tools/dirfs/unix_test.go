//go:build linux || darwin

package dirfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestSwappedForLinks has somebody exchange directories and links to a place outside
// while it works below them: nothing outside may be seen, made or changed.
func TestSwappedForLinks(t *testing.T) {
	top, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "name"), []byte("secret"), 0o644))
	dir, link := filepath.Join(top, "dir"), filepath.Join(top, "link")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "name"), []byte("inside"), 0o644))
	must(t, os.Symlink(outside, link))
	f := open(t, top, Options{Descriptors: 9})
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		spare := filepath.Join(top, "spare")
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := errors.Join(os.Rename(dir, spare), os.Rename(link, dir), os.Rename(dir, link), os.Rename(spare, dir)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	until := time.Now().Add(time.Second)
	seen := 0
	for time.Now().Before(until) {
		ok, err := workBelow(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			seen++
		}
	}
	close(stop)
	swapping.Wait()
	if seen == 0 {
		t.Error("nothing was ever reached: the test has seen no race")
	}
	if b, err := os.ReadFile(filepath.Join(outside, "name")); err != nil || string(b) != "secret" {
		t.Errorf("outside: %q, %v", b, err)
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) != 1 {
		t.Errorf("outside are %v, %v", names, err)
	}
}

// workBelow reads, makes and changes below "dir". ok is true if it has come that far.
func workBelow(ctx context.Context, f *FS) (ok bool, err error) {
	f.slots.mu.Lock()
	for f.slots.open.Len() > 0 {
		f.slots.closeIdle(f.slots.open.Front().Value.(*slot)) // names are gone by again
	}
	f.slots.mu.Unlock()
	root, _, err := f.Root(ctx)
	if err != nil {
		return false, err
	}
	dir, _, _, err := f.Lookup(ctx, root, "dir")
	if err != nil {
		return false, nil
	}
	h, _, _, err := f.Lookup(ctx, dir, "name")
	if err != nil {
		return false, nil
	}
	how := &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked}
	if _, _, _, err := f.Create(ctx, dir, "made", how); err == nil {
		_, _ = f.Remove(ctx, dir, "made", false) // by then it may be elsewhere
	}
	_, _ = f.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 6}, nil)
	_, _, _ = f.Rename(ctx, dir, "name", dir, "name2")
	_, _, _ = f.Rename(ctx, dir, "name2", dir, "name")
	file, _, err := f.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return false, nil
	}
	p := make([]byte, 10)
	n, _, err := vfs.ReadFull(ctx, file, p, 0)
	if err = errors.Join(err, file.Close(ctx)); err == nil && string(p[:n]) != "inside" {
		err = fmt.Errorf("%q was read", p[:n])
	}
	return true, err
}

// TestFewDescriptors has more at work than there are descriptors for: all of it waits
// its turn, and no more than the share is open.
func TestFewDescriptors(t *testing.T) {
	before := descriptors(t)
	const share, workers = 20, 64
	f := open(t, t.TempDir(), Options{Descriptors: share})
	root, _, err := f.Root(t.Context())
	must(t, err)
	var most int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for j := range 10 {
				err := f.makeOne(t.Context(), root, fmt.Sprintf("dir-%d", i), fmt.Sprintf("file-%d", j), func() {
					mu.Lock()
					defer mu.Unlock()
					most = max(most, descriptors(t)-before-1) // and that to count them
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if most > share {
		t.Errorf("%d descriptors were open, and %d may be", most, share)
	}
}

// makeOne makes a file in a directory, reads it back and lists the directory, and calls
// look while the file is open.
func (f *FS) makeOne(ctx context.Context, root vfs.Handle, dirName, name string, look func()) error {
	dir, _, _, err := f.Create(ctx, root, dirName, &vfs.CreateHow{Type: vfs.TypeDir})
	if errors.Is(err, vfs.ErrExist) {
		dir, _, _, err = f.Lookup(ctx, root, dirName)
	}
	if err != nil {
		return err
	}
	file, _, err := f.Open(ctx, vfs.At{Dir: dir, Name: name},
		&vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg}})
	if err != nil {
		return err
	}
	_, err = file.WriteAt(ctx, []byte(name), 0, vfs.Unstable, new(vfs.Written))
	for _, lerr := range f.ReadDir(ctx, dir, vfs.Pos{}, vfs.MaskV3, 0) {
		err = errors.Join(err, lerr)
		look()
	}
	_, _, rerr := f.Rename(ctx, dir, name, dir, name+"-renamed")
	return errors.Join(err, rerr, file.Close(ctx))
}

func descriptors(t testing.TB) int {
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Error(err)
	}
	return len(names)
}

// TestOneTooManyOpen waits for a descriptor for as long as its context lasts.
func TestOneTooManyOpen(t *testing.T) {
	f := open(t, t.TempDir(), Options{Descriptors: minShare})
	root, _, err := f.Root(t.Context())
	must(t, err)
	_, _, _, err = f.Create(t.Context(), root, "file", &vfs.CreateHow{Type: vfs.TypeReg})
	must(t, err)
	at, how := vfs.At{Dir: root, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareRead}
	var all []vfs.File
	for range cap(f.files) {
		file, _, err := f.Open(t.Context(), at, how)
		must(t, err)
		all = append(all, file)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, _, err := f.Open(ctx, at, how)
		done <- err
	}()
	if _, _, _, err := f.Lookup(t.Context(), root, "file"); err != nil {
		t.Errorf("lookup beside it: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
	for _, file := range all {
		must(t, file.Close(t.Context()))
	}
}

// TestTimesAndNames keeps what POSIX has: times before 1970 to the nanosecond, names
// of any bytes, modes with all bits whatever the umask.
func TestTimesAndNames(t *testing.T) {
	f := open(t, t.TempDir(), Options{})
	root, _, err := f.Root(t.Context())
	must(t, err)
	for _, at := range []time.Time{time.Unix(-1, 1), time.Unix(-1_000_000_000, 123_456_789), time.Unix(1<<31, 999_999_999)} {
		name := fmt.Sprintf("\xff\xfe %d\n", at.Unix())
		h, _, _, err := f.Create(t.Context(), root, name, &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{
			Valid: vfs.MaskMode | vfs.MaskMtime | vfs.MaskAtime, Mode: 0o6777, Mtime: at, Atime: at,
		}})
		must(t, err)
		a, err := f.GetAttr(t.Context(), h, vfs.MaskV3)
		must(t, err)
		if !a.Mtime.Equal(at) || !a.Atime.Equal(at) || a.Mode != 0o6777 {
			t.Errorf("%v became %v and %v, mode %o", at, a.Mtime, a.Atime, a.Mode)
		}
	}
	link, _, _, err := f.Create(t.Context(), root, "link", &vfs.CreateHow{Type: vfs.TypeSymlink, Target: strings.Repeat("\xff", 4000)})
	must(t, err)
	set := &vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Unix(-5, 5)}
	wcc, err := f.SetAttr(t.Context(), link, set, nil)
	if must(t, err); !wcc.After.Mtime.Equal(set.Mtime) {
		t.Errorf("a link's time became %v", wcc.After.Mtime)
	}
}
