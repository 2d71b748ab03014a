package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

func roomy(string) (Space, error) {
	return Space{Bytes: 1 << 40, FreeBytes: 1 << 40, Files: 1 << 30, FreeFiles: 1 << 30}, nil
}

// home makes a directory that will do for a cache.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // A directory.
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Space == nil {
		o.Space = roomy
	}
	if o.Granule == 0 {
		o.Granule = MinGranule
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func key(n int) *Key {
	h, err := vfs.MakeHandle(fmt.Appendf(nil, "handle %d", n))
	if err != nil {
		panic(err)
	}
	return &Key{Server: "server:2049", FSID: [2]uint64{1, 2}, Handle: h}
}

// version is the version of file n with so many bytes.
func version(n, size int) *Version {
	at := time.Unix(1e9+int64(n), int64(n))
	return &Version{Size: uint64(size), Change: uint64(n), Mtime: at, Ctime: at.Add(1)}
}

// bytesOf are the bytes of file n.
func bytesOf(n, size int) []byte {
	p := make([]byte, size)
	rnd := rand.New(rand.NewPCG(uint64(n), 1))
	for i := 0; i < size; i += 8 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], rnd.Uint64())
		copy(p[i:], b[:])
	}
	return p
}

// fill puts file n there, all of it. It reports whether there was room.
func fill(t *testing.T, s *Store, n int, data []byte) bool {
	t.Helper()
	e := s.Open(key(n), version(n, len(data)), "label")
	if e == nil {
		return false
	}
	defer e.Release()
	for g := 0; g*e.Granule() < len(data); g++ {
		at := g * e.Granule()
		if !e.Has(g) && !e.Fill(g, data[at:min(at+e.Granule(), len(data))]) {
			return false
		}
	}
	return true
}

// check reads what is there of file n, and returns how much that is. A wrong byte is an error.
func check(t *testing.T, s *Store, n int, data []byte) (got int) {
	t.Helper()
	e := s.Open(key(n), version(n, len(data)), "label")
	if e == nil {
		return 0
	}
	defer e.Release()
	p := make([]byte, len(data))
	for off := 0; off < len(data); {
		k := e.ReadAt(p, uint64(off))
		if !bytes.Equal(p[:k], data[off:off+k]) {
			t.Fatalf("file %d: wrong bytes in [%d, %d)", n, off, off+k)
		}
		got += k
		if off += k; k == 0 {
			off = (off/e.Granule() + 1) * e.Granule()
		}
	}
	return got
}

// TestSurvives: what was filled is there after a restart, after a crash, and for no other key or version.
func TestSurvives(t *testing.T) {
	for _, unchecked := range []bool{false, true} {
		o := Options{Dir: home(t), NoChecksum: unchecked}
		s := start(t, o)
		data := bytesOf(1, 3*MinGranule+17)
		if !fill(t, s, 1, data) {
			t.Fatal("no room")
		}
		other := *key(1)
		other.Mark = "other"
		if e := s.Open(&other, version(1, len(data)), ""); e == nil || e.Has(0) {
			t.Error("an entry of another mark")
		} else {
			e.Release()
		}
		stop(t, s)
		s = start(t, o)
		if n := check(t, s, 1, data); n != len(data) {
			t.Errorf("%d of %d bytes after a restart", n, len(data))
		}
		stop(t, s)
		if err := os.Remove(filepath.Join(s.dir, indexName)); err != nil { // as after a crash
			t.Fatal(err)
		}
		s = start(t, o)
		if n := check(t, s, 1, data); n != len(data) {
			t.Errorf("%d of %d bytes after a crash", n, len(data))
		}
		before := s.Stats()
		changed := *version(1, len(data))
		changed.Ctime = changed.Ctime.Add(1)
		e := s.Open(key(1), &changed, "")
		if e == nil || e.Has(0) || s.Stats().Stale != before.Stale+1 || s.Stats().Entries != 0 {
			t.Errorf("another version: %+v", s.Stats())
		}
		e.Release()
		stop(t, s)
	}
}

// TestDamage flips bytes, cuts and exchanges files: never a wrong byte, and what is wrong is counted.
func TestDamage(t *testing.T) {
	const files, size = 6, 2*MinGranule + 1000
	seeds := 12
	if os.Getenv("NFSBOX_SOAK") != "" {
		seeds = 400
	}
	for seed := range uint64(seeds) {
		o := Options{Dir: home(t)}
		s := start(t, o)
		for n := range files {
			fill(t, s, n, bytesOf(n, size))
		}
		stop(t, s)
		rnd := rand.New(rand.NewPCG(seed, 3))
		names := entries(t, s.dir)
		for range 1 + rnd.IntN(4) {
			damage(t, rnd, names)
		}
		s = start(t, o)
		missing := 0
		for n := range files {
			missing += size - check(t, s, n, bytesOf(n, size))
		}
		st := s.Stats()
		if missing > 0 && st.BadChecksums+st.Damaged+st.Stale == 0 {
			t.Errorf("seed %d: %d bytes are missing, and %+v", seed, missing, st)
		}
		for n := range files { // and it can be filled again
			fill(t, s, n, bytesOf(n, size))
			if got := check(t, s, n, bytesOf(n, size)); got != size {
				t.Errorf("seed %d: %d of %d bytes after filling again", seed, got, size)
			}
		}
		stop(t, s)
	}
}

// entries are the files of all entries.
func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, dataDir), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("%d entries, %v", len(names), err)
	}
	return names
}

// damage does something to files.
func damage(t *testing.T, rnd *rand.Rand, names []string) {
	t.Helper()
	name, other := names[rnd.IntN(len(names))], names[rnd.IntN(len(names))]
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	o, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	switch rnd.IntN(6) {
	case 0:
		if len(b) > 0 {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
	case 1:
		b = b[:rnd.IntN(len(b)+1)]
	case 2: // another entry's file
		b = o
	case 3: // another entry's granule
		if at := block; len(b) >= at+MinGranule && len(o) >= at+MinGranule {
			copy(b[at:at+MinGranule], o[at:])
		}
	case 4: // granules exchanged
		if at := block; len(b) >= at+2*MinGranule {
			copy(b[at:], bytes.Clone(b[at+MinGranule:at+2*MinGranule]))
		}
	case 5: // another entry's table
		if len(b) >= block && len(o) >= block {
			copy(b[headerSize:block], o[headerSize:block])
		}
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCrash copies the directory while it is in use, file by file, as a crash might leave it.
func TestCrash(t *testing.T) {
	need.Speed(t, "one goroutine")
	crashes := 10
	if os.Getenv("NFSBOX_SOAK") != "" {
		crashes = 200
	}
	o := Options{Dir: home(t), Size: 40 * MinGranule}
	s := start(t, o)
	var work sync.WaitGroup
	end := make(chan struct{})
	for w := range 2 {
		work.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 4))
			for {
				select {
				case <-end:
					return
				default:
				}
				n := rnd.IntN(30)
				size := 1 + n*MinGranule/7
				fill(t, s, n, bytesOf(n, size))
			}
		})
	}
	for range crashes {
		dir := home(t)
		copyTree(t, s.dir, Path(dir, ""))
		after := start(t, Options{Dir: dir, Size: o.Size})
		for n := range 30 {
			check(t, after, n, bytesOf(n, 1+n*MinGranule/7))
		}
		stop(t, after)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	close(end)
	work.Wait()
}

// copyTree copies what is there. Files that go meanwhile are left out.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		dest := to + strings.TrimPrefix(name, from)
		if d.IsDir() {
			return os.MkdirAll(dest, 0o700)
		}
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, os.WriteFile(dest, b, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSize: the files never take more than they may, and what was used last stays.
func TestSize(t *testing.T) {
	const size = 32 * MinGranule
	s := start(t, Options{Dir: home(t), Size: size})
	data := func(n int) []byte { return bytesOf(n, 1+n%5*MinGranule/2) }
	for n := range 100 {
		fill(t, s, n, data(n))
		check(t, s, 3, data(3)) // is always in use
		if n%5 == 0 {
			if took := taken(t, s.dir); took > size {
				t.Fatalf("the files take %d bytes, of %d", took, size)
			}
		}
	}
	if got := check(t, s, 3, data(3)); got != len(data(3)) {
		t.Error("what was used all the time has gone")
	}
	if got := check(t, s, 99, data(99)); got != len(data(99)) {
		t.Error("what was used last has gone")
	}
	if got := check(t, s, 4, data(4)); got != 0 {
		t.Error("what was used long ago is there")
	}
	if st := s.Stats(); st.Culled == 0 || st.Bytes > size || st.BadChecksums+st.Damaged != 0 {
		t.Errorf("%+v", st)
	}
}

// taken is what the files below data and trash take on the disk.
func taken(t *testing.T, dir string) (sum int64) {
	t.Helper()
	for _, d := range []string{dataDir, trashDir} {
		err := filepath.WalkDir(filepath.Join(dir, d), func(_ string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				sum += int64(blocksOf(info)) * block
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return sum
}

// disk is one that others fill, too.
type disk struct {
	mu    sync.Mutex
	space Space
	err   error
}

func (d *disk) ask(string) (Space, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.space, d.err
}

func (d *disk) set(percent uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.space = Space{Bytes: 100 << 30, FreeBytes: percent << 30, Files: 100, FreeFiles: 100}
	d.err = err
}

// until waits for a condition that the culling goroutine brings about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(what)
}

// TestCulling: below cull entries go, the oldest first, and below stop nothing is kept.
func TestCulling(t *testing.T) {
	d := new(disk)
	d.set(50, nil)
	var mu sync.Mutex
	var notes []string
	s := start(t, Options{Dir: home(t), Space: d.ask, Note: func(n string) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, n)
	}})
	for n := range 100 {
		fill(t, s, n, bytesOf(n, 1000))
	}
	d.set(6, nil)
	s.wake()
	until(t, "nothing is culled below bcull", func() bool { return s.Stats().Culled >= cullBatch })
	until(t, "it does not cull until brun", func() bool { return s.Stats().Entries == 0 })
	if st := s.Stats(); st.State != "on" {
		t.Errorf("%+v", st)
	}
	if !fill(t, s, 1, bytesOf(1, 1000)) {
		t.Error("nothing is kept above bstop")
	}
	d.set(2, nil)
	for n := range 3 {
		if fill(t, s, 200+n, bytesOf(n, 1000)) {
			t.Error("something is kept below bstop")
		}
	}
	if st := s.Stats(); st.State != "full" || st.Refused == 0 {
		t.Errorf("%+v", st)
	}
	mu.Lock()
	if len(notes) != 1 || !strings.Contains(notes[0], "bstop") {
		t.Errorf("notes: %q", notes)
	}
	mu.Unlock()
	d.set(50, nil)
	s.wake()
	until(t, "it does not go on", func() bool { return s.Stats().State == "on" })
	if !fill(t, s, 300, bytesOf(300, 1000)) {
		t.Error("nothing is kept when there is room again")
	}
}

// TestBrokenDisk: the store is empty to its users, and says so once.
func TestBrokenDisk(t *testing.T) {
	d := new(disk)
	d.set(50, nil)
	notes := make(chan string, 10)
	s := start(t, Options{Dir: home(t), Space: d.ask, Note: func(n string) { notes <- n }})
	fill(t, s, 1, bytesOf(1, 1000))
	d.set(50, syscall.EIO)
	for n := range 5 {
		if fill(t, s, 2+n, bytesOf(2, 1000)) {
			t.Error("filled")
		}
	}
	if st := s.Stats(); st.State != "broken" || len(notes) != 1 {
		t.Errorf("%+v, %d notes", st, len(notes))
	}
	if n := check(t, s, 1, bytesOf(1, 1000)); n != 0 {
		t.Error("a broken disk is read")
	}
}

// TestDoubt: what is doubtful nobody else gets, and it does not stay.
func TestDoubt(t *testing.T) {
	s := start(t, Options{Dir: home(t)})
	data := bytesOf(1, 1000)
	e := s.Open(key(1), version(1, 1000), "")
	e.Doubt()
	if !e.Fill(0, data) || e.ReadAt(make([]byte, 1000), 0) != 1000 {
		t.Error("its own user does not get it")
	}
	if n := check(t, s, 1, data); n != 0 {
		t.Error("another user gets it")
	}
	e.Release()
	if st := s.Stats(); st.Entries != 0 || taken(t, s.dir) != 0 {
		t.Errorf("%+v, %d bytes on the disk", st, taken(t, s.dir))
	}
}

// TestOneOwner: a directory has one owner at a time.
func TestOneOwner(t *testing.T) {
	o := Options{Dir: home(t)}
	s := start(t, o)
	if _, err := Open(o); !errors.Is(err, ErrInUse) {
		t.Errorf("a second owner: %v", err)
	}
	tagged := o
	tagged.Tag = "other"
	stop(t, start(t, tagged))
	stop(t, s)
	stop(t, start(t, o))
}

// TestForeignDirectories are refused, in words.
func TestForeignDirectories(t *testing.T) {
	mode := func(m fs.FileMode) func(string) error {
		return func(dir string) error { return os.Chmod(dir, m) }
	}
	for _, tt := range []struct {
		name string
		make func(dir string) error
		want string
	}{
		{"missing", os.Remove, "does not exist"},
		{"of everybody", mode(0o777), "others may write"},
		{"of a group", mode(0o770), "others may write"},
		{"not empty", func(dir string) error {
			return errors.Join(os.Mkdir(Path(dir, ""), 0o700), os.WriteFile(filepath.Join(Path(dir, ""), "x"), nil, 0o600))
		}, "not a cache of nfsbox"},
		{"a link", func(dir string) error { return os.Symlink("/", Path(dir, "")) }, "symbolic link"},
		{"of another version", func(dir string) error {
			return errors.Join(os.Mkdir(Path(dir, ""), 0o700), os.WriteFile(filepath.Join(Path(dir, ""), headName), []byte("nfsbox-c\x00\x00\x00\x09"), 0o600))
		}, "format 9"},
		{"a file", func(dir string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)) }, "not a directory"},
	} {
		dir := home(t)
		if err := tt.make(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if os.Geteuid() == 0 {
		dir := home(t)
		if err := os.Chown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
			t.Errorf("another user's: %v", err)
		}
	}
}

// TestLook: what others may know of a store, while it is in use and afterwards.
func TestLook(t *testing.T) {
	o := Options{Dir: home(t)}
	s := start(t, o)
	data := bytesOf(1, 2*MinGranule)
	fill(t, s, 1, data)
	fill(t, s, 2, data[:100])
	if err := s.Pin(key(1).id(), true); err != nil {
		t.Error(err)
	}
	if st, used, err := Look(s.dir); err != nil || !used || st.Entries != 2 {
		t.Errorf("in use: %+v, %v, %v", st, used, err)
	}
	stop(t, s)
	if st, used, err := Look(s.dir); err != nil || used || st.Entries != 2 || st.BytesFilled != 2*MinGranule+100 {
		t.Errorf("later: %+v, %v, %v", st, used, err)
	}
	e := s.file(key(1).id())
	b, err := os.ReadFile(e)
	if err != nil {
		t.Fatal(err)
	}
	b[block+MinGranule+7] ^= 1
	if err := os.WriteFile(e, b, 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	err = Entries(s.dir, true, func(f *Found) error {
		first := f.ID == key(1).id()
		if n++; f.Err != nil || f.Pinned != first || f.There != f.Granules || f.Bad != map[bool]int{true: 1}[first] || f.Server != key(1).Server {
			t.Errorf("%+v", f)
		}
		return nil
	})
	if n != 2 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
	s = start(t, o)
	if flush(t, s, 1, key(1).id(), 99); s.Stats().Entries != 1 {
		t.Errorf("%d stay", s.Stats().Entries)
	}
	if flush(t, s, 1); taken(t, s.dir) != 0 {
		t.Errorf("%d bytes stay", taken(t, s.dir))
	}
	if _, _, err := Look(o.Dir); err == nil || !strings.Contains(err.Error(), "no cache of nfsbox") {
		t.Errorf("another directory: %v", err)
	}
}
