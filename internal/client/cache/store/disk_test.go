package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// badDisk fails where a test says so.
type badDisk struct {
	System
	fault atomic.Pointer[func(op string) error]
}

func (d *badDisk) set(fault func(op string) error) { d.fault.Store(&fault) }

func (d *badDisk) do(op string) error {
	if f := d.fault.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}

func (d *badDisk) Create(name string) (*os.File, error) {
	if err := d.do("create"); err != nil {
		return nil, err
	}
	return d.System.Create(name)
}

// WriteAt writes a part of what there is no room for, as a disk does.
func (d *badDisk) WriteAt(f *os.File, p []byte, off int64) (int, error) {
	if err := d.do("write"); err != nil {
		n, _ := d.System.WriteAt(f, p[:len(p)/2], off)
		return n, err
	}
	return d.System.WriteAt(f, p, off)
}

func (d *badDisk) ReadAt(f *os.File, p []byte, off int64) (int, error) {
	if err := d.do("read"); err != nil {
		return 0, err
	}
	return d.System.ReadAt(f, p, off)
}

// TestFullDisk: a disk that is full in the middle of anything costs no byte that was kept, and is used again later.
func TestFullDisk(t *testing.T) {
	for _, after := range []int{0, 1, 3, 6, 11} {
		d := new(badDisk)
		var notes atomic.Int64
		o := Options{Dir: home(t), Disk: d, Note: func(string) { notes.Add(1) }}
		s := start(t, o)
		fill(t, s, 0, bytesOf(0, 3*MinGranule))
		left := atomic.Int64{}
		left.Store(int64(after))
		d.set(func(op string) error {
			if op == "read" || left.Add(-1) >= 0 {
				return nil
			}
			return syscall.ENOSPC
		})
		for n := range 4 {
			fill(t, s, n, bytesOf(n, 3*MinGranule))
		}
		if n := notes.Load(); n > 1 || after < 10 && n != 1 {
			t.Errorf("after %d: told %d times", after, n)
		}
		for n := range 4 {
			if got := check(t, s, n, bytesOf(n, 3*MinGranule)); n == 0 && got != 3*MinGranule {
				t.Errorf("after %d: %d bytes of what was kept before", after, got)
			}
		}
		d.set(func(string) error { return nil })
		s.wake()
		until(t, "it does not go on when there is room", func() bool { return s.Stats().State == "on" })
		for n := range 4 {
			fill(t, s, n, bytesOf(n, 3*MinGranule))
			if got := check(t, s, n, bytesOf(n, 3*MinGranule)); got != 3*MinGranule {
				t.Errorf("after %d: %d bytes of file %d when there is room", after, got, n)
			}
		}
		stop(t, s)
		s = start(t, Options{Dir: o.Dir})
		for n := range 4 {
			if got := check(t, s, n, bytesOf(n, 3*MinGranule)); got != 3*MinGranule {
				t.Errorf("after %d: %d bytes of file %d after a restart", after, got, n)
			}
		}
		if st := s.Stats(); st.BadChecksums+st.Damaged != 0 {
			t.Errorf("after %d: %+v", after, st)
		}
		stop(t, s)
	}
}

// TestReadError: a disk that cannot be read is left alone, and no byte of it is handed out.
func TestReadError(t *testing.T) {
	d := new(badDisk)
	o := Options{Dir: home(t), Disk: d}
	s := start(t, o)
	data := bytesOf(1, 2*MinGranule)
	fill(t, s, 1, data)
	d.set(func(op string) error {
		if op == "read" {
			return syscall.EIO
		}
		return nil
	})
	if n := check(t, s, 1, data); n != 0 || s.Stats().State != "broken" {
		t.Errorf("%d bytes, %+v", n, s.Stats())
	}
	d.set(func(string) error { return nil })
	if n := check(t, s, 1, data); n != 0 {
		t.Errorf("%d bytes of a broken disk", n)
	}
}

// TestPins: what is pinned by name or by hand is not culled, up to its share, and still pinned after a crash.
func TestPins(t *testing.T) {
	const size = 64 * MinGranule
	o := Options{Dir: home(t), Size: size, Pin: []string{"*.iso", "src/*/keep"}}
	s := start(t, o)
	put := func(n int, label string) uint64 {
		t.Helper()
		e := s.Open(key(n), version(n, MinGranule), label)
		if e == nil || !e.Has(0) && !e.Fill(0, bytesOf(n, MinGranule)) {
			t.Fatal("no room")
		}
		e.Release()
		return e.id
	}
	kept := []int{1, 2, 3}
	put(1, "dir/disk.iso")
	put(2, "src/a/keep")
	id3 := put(3, "by hand")
	if err := s.Pin(id3, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Pin(99, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("pinned what is not there: %v", err)
	}
	put(4, "keep")
	put(5, "src/a/b/keep")
	many := func(from int) {
		for n := range 100 {
			put(from+n, "other")
		}
	}
	there := func(n int) bool { return check(t, s, n, bytesOf(n, MinGranule)) == MinGranule }
	stays := func(when string) {
		t.Helper()
		for _, n := range kept {
			if !there(n) {
				t.Errorf("%s: file %d was pinned, and is gone", when, n)
			}
		}
	}
	many(1000)
	stays("many files later")
	for _, n := range []int{4, 5} {
		if there(n) {
			t.Errorf("file %d was not pinned, and is there", n)
		}
	}
	stop(t, s)
	o.Pin = nil
	s = start(t, o)
	stop(t, s)
	if err := os.Remove(filepath.Join(s.dir, indexName)); err != nil { // as after a crash
		t.Fatal(err)
	}
	s = start(t, o)
	many(2000)
	stays("after a crash")
	for n := range 60 {
		id := put(3000+n, "more")
		if err := s.Pin(id, true); err != nil && !errors.Is(err, ErrPinned) {
			t.Fatal(err)
		}
	}
	if p := s.index.pinned * block; p > size/2 {
		t.Errorf("%d bytes are pinned, of %d", p, size)
	}
	many(4000)
	if !there(4099) {
		t.Error("what was used last is not there, as all is pinned")
	}
	if err := s.Pin(id3, false); err != nil {
		t.Fatal(err)
	}
	many(5000)
	if there(3) {
		t.Error("what is no longer pinned stays")
	}
}

// TestPinsBeyondTheirShare: where patterns pin more than there may be, the oldest of that go.
func TestPinsBeyondTheirShare(t *testing.T) {
	const size = 32 * MinGranule
	s := start(t, Options{Dir: home(t), Size: size, Pin: []string{"*"}})
	for n := range 100 {
		e := s.Open(key(n), version(n, MinGranule), "any")
		if e == nil || !e.Fill(0, bytesOf(n, MinGranule)) {
			t.Fatalf("file %d: no room", n)
		}
		e.Release()
	}
	if check(t, s, 99, bytesOf(99, MinGranule)) == 0 || s.Stats().Bytes > size {
		t.Errorf("%+v", s.Stats())
	}
}

// TestPutBack: an entry that the index lacks, as somebody has put it back, is used and counted.
func TestPutBack(t *testing.T) {
	o := Options{Dir: home(t)}
	s := start(t, o)
	data := bytesOf(1, 2*MinGranule)
	fill(t, s, 1, data)
	took := s.Stats().Bytes
	name := s.file(key(1).id())
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	flush(t, s, 1)
	stop(t, s)
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s = start(t, o)
	if n := check(t, s, 1, data); n != len(data) || s.Stats().Bytes < took {
		t.Errorf("%d bytes are there, %+v; it took %d bytes before", n, s.Stats(), took)
	}
}

// TestLabels: an entry keeps the first name that it gets, of a long one the end, whatever bytes it has.
func TestLabels(t *testing.T) {
	o := Options{Dir: home(t)}
	s := start(t, o)
	open := func(label string) {
		e := s.Open(key(1), version(1, 100), label)
		if !e.Has(0) {
			e.Fill(0, bytesOf(1, 100))
		}
		e.Release()
	}
	label := func() (l string) {
		t.Helper()
		err := Entries(s.dir, false, func(f *Found) error {
			l = f.Label
			return f.Err
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	open("")
	long := strings.Repeat("d/", 300) + "\x1b]0;\xff name"
	open(long)
	open("another")
	if l := label(); l != long[len(long)-maxName:] {
		t.Errorf("%q", l)
	}
	stop(t, s)
	s = start(t, o)
	open("another")
	if l := label(); l != long[len(long)-maxName:] {
		t.Errorf("after a restart: %q", l)
	}
}

// TestStatsFile: the figures are there while the store is in use and later, whole at any time.
func TestStatsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "stats")
	if err := os.Symlink("elsewhere", name); err != nil { // is replaced, not followed
		t.Fatal(err)
	}
	s := start(t, Options{Dir: home(t), StatsFile: name})
	fill(t, s, 1, bytesOf(1, 1000))
	s.wake()
	read := func() (st Stats) {
		b, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(b, &st)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return st
	}
	until(t, "no figures while it is in use", func() bool { return read().Entries == 1 })
	fill(t, s, 2, bytesOf(2, 1000))
	stop(t, s)
	if st := read(); st.Entries != 2 || st.BytesFilled != 2000 || st.State != "on" {
		t.Errorf("%+v", st)
	}
	names, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}

// TestStatsFileFails: the user is told once, and the store does its work.
func TestStatsFileFails(t *testing.T) {
	var mu sync.Mutex
	var notes []string
	s := start(t, Options{Dir: home(t), StatsFile: filepath.Join(t.TempDir(), "gone", "stats"), Note: func(n string) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, n)
	}})
	s.report()
	s.report()
	if !fill(t, s, 1, bytesOf(1, 1000)) {
		t.Error("nothing is kept")
	}
	stop(t, s)
	mu.Lock()
	defer mu.Unlock()
	for _, n := range notes {
		if n != notes[0] || !strings.Contains(n, "statsfile") {
			t.Errorf("notes: %q", notes)
		}
	}
	if len(notes) == 0 || s.Stats().State != "on" {
		t.Errorf("notes: %q, %+v", notes, s.Stats())
	}
}

// TestOthersOnTheWay: a directory that others could exchange is none for a cache.
func TestOthersOnTheWay(t *testing.T) {
	top := home(t)
	above, dir := filepath.Join(top, "above"), filepath.Join(top, "above", "cache")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink(above, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		mode fs.FileMode
		want string
	}{
		{0o755, ""},
		{0o777, "can be written to by others (mode 0777)"},
		{0o777 | fs.ModeSticky, ""},
	} {
		if err := os.Chmod(above, tt.mode); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{dir, filepath.Join(link, "cache")} {
			s, err := Open(Options{Dir: dir, Space: roomy})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("%v: %v", tt.mode, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), above) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v: %v, want %q", tt.mode, err, tt.want)
			}
			if err == nil {
				stop(t, s)
			}
		}
	}
	if err := os.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "mode 1777") {
		t.Errorf("a sticky one: %v", err)
	}
}
