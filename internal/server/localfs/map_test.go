//go:build linux

package localfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// reopenFS closes f and opens the same tree anew, with the same map.
func reopenFS(t *testing.T, f *FS, dir string, o Options) *FS {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	g, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func closeFS(t *testing.T, f *FS) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func mapOptions(t *testing.T) Options {
	return Options{Handles: HandlesMap, StateDir: t.TempDir()}
}

func TestHandlesSurviveRestart(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		f, err := New(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		r := root(t, f)
		a, b := mkdir(t, f, r, "a"), mkdir(t, f, r, "b")
		x := mkfile(t, f, a, "x", "content of x")
		y := mkfile(t, f, a, "y", "content of y")
		if _, _, err := f.Link(t.Context(), y, b, "y too"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Rename(t.Context(), a, "x", b, "x moved"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Rename(t.Context(), r, "b", a, "b below a"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Remove(t.Context(), a, "y", false); err != nil {
			t.Fatal(err)
		}
		f = reopenFS(t, f, dir, o)
		defer closeFS(t, f)
		if got := root(t, f); got != r {
			t.Errorf("the root's handle was %v and is %v", r, got)
		}
		if got := content(t, f, x); got != "content of x" {
			t.Errorf("x reads %q", got)
		}
		if got := content(t, f, y); got != "content of y" {
			t.Errorf("y reads %q", got)
		}
		if p, _, _, err := f.Lookup(t.Context(), b, ".."); err != nil || p != a {
			t.Errorf("b/.. is %v, %v; want a", p, err)
		}
	})
}

// TestRemovedIsStale checks that no handle comes to name another object.
func TestRemovedIsStale(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		f, err := New(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		r := root(t, f)
		var dead []vfs.Handle
		for i := range 50 {
			x := mkfile(t, f, r, "same name", fmt.Sprint(i))
			if _, err := f.Remove(t.Context(), r, "same name", false); err != nil {
				t.Fatal(err)
			}
			dead = append(dead, x)
		}
		mkfile(t, f, r, "same name", "alive")
		for range 2 {
			for i, x := range dead {
				if _, err := f.GetAttr(t.Context(), x, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
					t.Fatalf("removed file %d: %v, want ErrStale", i, err)
				}
			}
			f = reopenFS(t, f, dir, o)
		}
		closeFS(t, f)
	})
}

func TestMapFindsWhatWasRenamedBehindItsBack(t *testing.T) {
	dir, o := t.TempDir(), mapOptions(t)
	f, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	d := mkdir(t, f, root(t, f), "d")
	x := mkfile(t, f, d, "x", "x")
	z := mkfile(t, f, d, "z", "z")
	f = reopenFS(t, f, dir, o)
	defer func() { closeFS(t, f) }()
	must[bool](t)(true, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "e")))
	must[bool](t)(true, os.Rename(filepath.Join(dir, "e", "x"), filepath.Join(dir, "e", "y")))
	must[bool](t)(true, os.Rename(filepath.Join(dir, "e", "z"), filepath.Join(dir, "z")))
	must[bool](t)(true, os.WriteFile(filepath.Join(dir, "e", "z"), []byte("another"), 0o644))
	for range 2 {
		if got := content(t, f, x); got != "x" {
			t.Errorf("x reads %q", got)
		}
		_, err := readAll(t.Context(), f, z)
		wantErr(t, err, vfs.ErrStale) // it has left the directory
		f = reopenFS(t, f, dir, o)
	}
}

func TestMapIsLocked(t *testing.T) {
	o := mapOptions(t)
	open(t, t.TempDir(), o)
	if _, err := New(t.TempDir(), o); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second FS on the same state: %v", err)
	}
}

func TestMapNeedsItsPlace(t *testing.T) {
	dir := t.TempDir()
	_, err := New(dir, Options{Handles: HandlesMap})
	wantErr(t, err, vfs.ErrInval)
	_, err = New(dir, Options{Handles: HandlesMap, StateDir: dir})
	wantErr(t, err, vfs.ErrInval)
	_, err = New(dir, Options{Handles: HandlesMap, StateDir: filepath.Join(dir, "none")})
	wantErr(t, err, vfs.ErrNoEnt)
	f := open(t, dir, Options{Handles: HandlesMap, Volatile: true})
	x := mkfile(t, f, root(t, f), "x", "x")
	if got := content(t, f, x); got != "x" {
		t.Errorf("x reads %q", got)
	}
}

// mapHeader is the size of the header of a map's file.
const mapHeader = 52

// grown makes a map of some files, closed, and returns the handles.
func grown(t *testing.T, dir string, o Options) []vfs.Handle {
	t.Helper()
	f, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	var all []vfs.Handle
	for i := range 20 {
		all = append(all, mkfile(t, f, root(t, f), fmt.Sprint(i), fmt.Sprint(i)))
	}
	closeFS(t, f)
	return all
}

func TestMapTornTail(t *testing.T) {
	dir, o := t.TempDir(), mapOptions(t)
	all := grown(t, dir, o)
	file := filepath.Join(o.StateDir, handlemap.FileName)
	whole := must[[]byte](t)(os.ReadFile(file))
	for name, tail := range map[string][]byte{
		"half a record": whole[mapHeader : mapHeader+30],
		"zeros":         make([]byte, 5000),
		"noise":         []byte(strings.Repeat("noise", 1000)),
	} {
		t.Run(name, func(t *testing.T) {
			must[bool](t)(true, os.WriteFile(file, append(whole[:len(whole):len(whole)], tail...), 0o600))
			f, err := New(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range all {
				if got := content(t, f, x); got != fmt.Sprint(i) {
					t.Errorf("file %d reads %q", i, got)
				}
			}
			x := mkfile(t, f, root(t, f), name, name)
			f = reopenFS(t, f, dir, o)
			if got := content(t, f, x); got != name {
				t.Errorf("what was made after the cut reads %q", got)
			}
			closeFS(t, f)
		})
	}
}

func TestMapDamagedMiddle(t *testing.T) {
	dir, o := t.TempDir(), mapOptions(t)
	grown(t, dir, o)
	file := filepath.Join(o.StateDir, handlemap.FileName)
	whole := must[[]byte](t)(os.ReadFile(file))
	for _, off := range []int{0, 9, mapHeader - 1, mapHeader, mapHeader + 40, len(whole) / 2} {
		bad := append([]byte(nil), whole...)
		bad[off] ^= 0x40
		must[bool](t)(true, os.WriteFile(file, bad, 0o600))
		f, err := New(dir, o)
		if err == nil {
			closeFS(t, f)
			t.Errorf("damage at offset %d of %d went unnoticed", off, len(whole))
		}
	}
}

func TestMapCompacts(t *testing.T) {
	dir, o := t.TempDir(), mapOptions(t)
	f, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	r := root(t, f)
	a := mkdir(t, f, r, "a")
	x := mkfile(t, f, a, "name 0", "x")
	y := mkfile(t, f, r, "y", "y")
	if _, _, err := f.Link(t.Context(), y, a, "y"); err != nil {
		t.Fatal(err)
	}
	m := f.mapped
	dead := mkfile(t, f, r, "dead", "")
	if _, err := f.Remove(t.Context(), r, "dead", false); err != nil {
		t.Fatal(err)
	}
	// Renames need no sync here: the name is told to the map directly.
	d, err := f.object(a)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * handlemap.CompactSlack {
		if _, _, err := m.Expect(d, fmt.Sprint("name ", i+1), x); err != nil {
			t.Fatal(err)
		}
		m.Unbind(d, fmt.Sprint("name ", i), x, false)
	}
	last := fmt.Sprint("name ", 3*handlemap.CompactSlack)
	f.fds.Unpin(d)
	must[bool](t)(true, os.Rename(filepath.Join(dir, "a", "name 0"), filepath.Join(dir, "a", last)))
	if _, _, records := m.Size(); records > 2*handlemap.CompactSlack {
		t.Errorf("%d records and no compaction", records)
	}
	f = reopenFS(t, f, dir, o)
	defer closeFS(t, f)
	if got := content(t, f, x); got != "x" {
		t.Errorf("x reads %q", got)
	}
	if got := content(t, f, y); got != "y" {
		t.Errorf("y reads %q", got)
	}
	if _, err := f.Remove(t.Context(), r, "y", false); err != nil {
		t.Fatal(err)
	}
	if got := content(t, f, y); got != "y" {
		t.Errorf("y under its other name reads %q", got)
	}
	fresh := mkfile(t, f, r, "fresh", "")
	if fresh == dead {
		t.Error("a handle was given out twice")
	}
	_, err = f.GetAttr(t.Context(), dead, vfs.MaskV3)
	wantErr(t, err, vfs.ErrStale)
}

// syncCounter counts syncs of data, and lets tests make them fail.
type syncCounter struct {
	linux.OS
	mu    sync.Mutex
	n     int
	fails error
}

func (s *syncCounter) Fdatasync(fd int) error {
	s.mu.Lock()
	s.n++
	err := s.fails
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.OS.Fdatasync(fd)
}

func (s *syncCounter) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func TestMapListingSyncsByThePage(t *testing.T) {
	dir := t.TempDir()
	const files = 500
	for i := range files {
		must[bool](t)(true, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644))
	}
	var sys syncCounter
	o := mapOptions(t)
	o.Sys = &sys
	f := open(t, dir, o)
	before := sys.count()
	n := 0
	for e, err := range f.ReadDir(t.Context(), root(t, f), vfs.Pos{}, vfs.MaskHandle, 0) {
		if err != nil || e.Handle.IsZero() {
			t.Fatalf("%s: %v, %v", e.Name, e.Handle, err)
		}
		n++
	}
	if syncs := sys.count() - before; n != files || syncs > files/mapBatch+1 || syncs == 0 {
		t.Errorf("%d entries with %d syncs", n, syncs)
	}
}

func TestMapLostDiskGivesNoHandles(t *testing.T) {
	var sys syncCounter
	o := mapOptions(t)
	o.Sys = &sys
	dir := t.TempDir()
	f, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	x := mkfile(t, f, root(t, f), "x", "x")
	sys.mu.Lock()
	sys.fails = unix.EIO
	sys.mu.Unlock()
	for range 2 {
		_, _, _, err := f.Create(t.Context(), root(t, f), "y", &vfs.CreateHow{Type: vfs.TypeDir})
		wantErr(t, err, vfs.ErrIO)
		if _, err := os.Stat(filepath.Join(dir, "y")); err == nil {
			t.Error("a failed create has left something behind")
		}
		sys.mu.Lock()
		sys.fails = nil // the second time the disk is well, but the file is not
		sys.mu.Unlock()
	}
	if got := content(t, f, x); got != "x" {
		t.Errorf("x reads %q", got)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestMapHandleOutlivesRenames reads by handle while the file, and a directory
// above it, are renamed through the FS; too few descriptors are kept for the
// cache to be of help.
func TestMapHandleOutlivesRenames(t *testing.T) {
	f := volatileFS(t, Options{MaxOpen: 12})
	r := root(t, f)
	a, b := mkdir(t, f, r, "a"), mkdir(t, f, r, "b")
	x := mkfile(t, f, a, "x", "here")
	others := []vfs.Handle{mkfile(t, f, r, "0", ""), mkfile(t, f, r, "1", ""), mkfile(t, f, r, "2", ""), mkfile(t, f, r, "3", "")}
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() {
		defer close(over)
		rename := func(d1 vfs.Handle, n1 string, d2 vfs.Handle, n2 string) {
			if _, _, err := f.Rename(t.Context(), d1, n1, d2, n2); err != nil {
				t.Errorf("rename %s to %s: %v", n1, n2, err)
			}
		}
		for range 300 {
			rename(a, "x", b, "y")
			rename(r, "a", b, "a")
			rename(b, "y", a, "z")
			rename(b, "a", r, "a")
			rename(a, "z", a, "x")
		}
	})
	wg.Go(func() {
		for range 300 { // what is seen in passing must not displace what is known
			_, _, _, _ = f.Lookup(t.Context(), a, "x")
			_, _, _, _ = f.Lookup(t.Context(), b, "y")
		}
	})
	for running := true; running; {
		select {
		case <-over:
			running = false
		default:
		}
		if got, err := readAll(t.Context(), f, x); err != nil || got != "here" {
			t.Errorf("read %q, %v", got, err)
			break
		}
		for _, o := range others {
			if _, err := f.GetAttr(t.Context(), o, vfs.MaskV3); err != nil {
				t.Error(err)
			}
		}
		f.fds.Forget(x)
		f.fds.Forget(a)
		f.fds.Forget(b)
	}
	wg.Wait()
}
