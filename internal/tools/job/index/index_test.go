package index

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// small has room for a few entries at each bound, and does not wait for the disk.
var small = bounds{inMemory: 4, perChunk: 8, atOnce: 3, sparse: 2, sync: noSync}

func noSync(*os.File) error { return nil }

var me = sha256.Sum256([]byte("this log"))

// keys is a log in memory.
type keys struct {
	all  []Key
	salt uint32
	bad  error // of Keys
	from []uint64
	sync func()
}

func (l *keys) Keys(from, to uint64, yield func(uint64, Key) error) error {
	l.from = append(l.from, from)
	for n := from; n < min(to, uint64(len(l.all))); n++ {
		if err := yield(n, l.all[n]); err != nil {
			return err
		}
	}
	return l.bad
}

func (l *keys) Mark(n uint64) (uint32, error) {
	if n >= uint64(len(l.all)) {
		return 0, io.ErrUnexpectedEOF
	}
	return binary.BigEndian.Uint32(l.all[n][:]) ^ l.salt, nil
}

func (l *keys) Sync() error {
	if l.sync != nil {
		l.sync()
	}
	return nil
}

// key is the n-th of all keys.
func key(n int) Key {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d", n))
	return Key(sum[:])
}

// add adds the keys from number from to number to.
func (l *keys) add(from, to int) {
	for n := from; n < to; n++ {
		l.all = append(l.all, key(n))
	}
}

func inDir(t testing.TB) *os.Root {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// files are the names in a directory.
func files(t testing.TB, dir *os.Root) (names []string) {
	t.Helper()
	d, err := dir.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	names, err = d.Readdirnames(0)
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// numbers are the entries that x finds by a key, the last first.
func numbers(t testing.TB, x *Index, k Key) (all []uint64) {
	t.Helper()
	if _, err := x.Find(k, func(n uint64) (bool, error) { all = append(all, n); return false, nil }); err != nil {
		t.Error(err)
	}
	return all
}

// finds opens the index of log, and demands that it finds the last entry of each of its keys, and
// of no other.
func finds(t testing.TB, dir *os.Root, log *keys, b bounds) {
	t.Helper()
	x, err := open(t.Context(), dir, me, log, b)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := x.Missing(); n != 0 || x.Entries() != uint64(len(log.all)) {
		t.Errorf("%d entries of %d, %d are missing: %v", x.Entries(), len(log.all), n, err)
	}
	checks(t, x, log)
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

func checks(t testing.TB, x *Index, log *keys) {
	t.Helper()
	last := make(map[Key]uint64)
	for n, k := range log.all {
		last[k] = uint64(n)
	}
	for k, n := range last {
		if got := numbers(t, x, k); len(got) == 0 || got[0] != n {
			t.Fatalf("entry %d: found %d", n, got)
		}
	}
	for n := range 20 {
		if got := numbers(t, x, key(-1-n)); len(got) > 0 {
			t.Errorf("a key that is not there: found %d", got)
		}
	}
}

// TestIndex: a log grows, and is opened after each step. All is found, by few segments, and what
// segments have is not read again.
func TestIndex(t *testing.T) {
	for _, step := range []int{1, 3, 4, 5, 8, 9, 50, 500} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			dir, log := inDir(t), &keys{}
			for n := 0; n < min(30*step, 600+step); n += step {
				log.add(n, n+step)
				log.add(n/2, n/2+1) // a key again
				finds(t, dir, log, small)
				names := files(t, dir)
				for _, name := range names {
					if !strings.HasPrefix(name, prefix) || name == temporary {
						t.Errorf("file %s", name)
					}
				}
				// Each segment has at least as many keys as all that follow it.
				if n, most := len(names), 2+log2(len(log.all)); n > most {
					t.Errorf("%d entries: %d segments, want up to %d: %q", len(log.all), n, most, names)
				}
			}
			before := log.from[len(log.from)-1]
			finds(t, dir, log, small)
			if from := log.from[len(log.from)-1]; from < before || int(from) < len(log.all)-small.inMemory {
				t.Errorf("of %d entries, those from %d were read again", len(log.all), from)
			}
		})
	}
}

func log2(n int) (l int) {
	for ; n > 1; n /= 2 {
		l++
	}
	return l
}

// TestSynced: before a segment gets its name its log and its file are synced.
func TestSynced(t *testing.T) {
	dir, log, b := inDir(t), &keys{}, small
	var done []string
	log.sync = func() { done = append(done, "log") }
	b.sync = func(f *os.File) error {
		if names := files(t, dir); len(names) != 1 || !strings.HasSuffix(f.Name(), temporary) {
			t.Errorf("%s is synced beside %q", f.Name(), names)
		}
		done = append(done, "segment")
		return f.Sync()
	}
	log.add(0, small.perChunk)
	finds(t, dir, log, b)
	if want := []string{"log", "segment"}; !slices.Equal(done, want) {
		t.Errorf("synced %q, want %q", done, want)
	}
}

// TestNothing: the index of a log that is empty or short has no files.
func TestNothing(t *testing.T) {
	dir, log := inDir(t), &keys{}
	finds(t, dir, log, small)
	log.add(0, small.inMemory)
	finds(t, dir, log, small)
	if names := files(t, dir); len(names) > 0 {
		t.Errorf("files %q", names)
	}
}

// TestInTheMeantime: entries that are added while an index is open are not found, also where it is
// completed meanwhile; they are when it is opened again.
func TestInTheMeantime(t *testing.T) {
	dir, log := inDir(t), &keys{}
	log.add(0, 30)
	x, err := open(t.Context(), dir, me, log, small)
	if err != nil {
		t.Fatal(err)
	}
	log.add(30, 60)
	damageBlock(t, dir, x.segments[0].name(), 0)
	if n := numbers(t, x, key(40)); len(n) > 0 || x.round != 1 {
		t.Errorf("found %d in round %d", n, x.round)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	finds(t, dir, log, small)
}

// damageBlock changes a byte of a block.
func damageBlock(t testing.TB, dir *os.Root, name string, no int64) {
	t.Helper()
	f, err := dir.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	at := (no+1)*blockSize + 5
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 4
	_, err = f.WriteAt(b[:], at)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDamaged: each part of a segment in turn is changed, cut off, or the whole exchanged. What was
// in it is found all the same, and the file is replaced.
func TestDamaged(t *testing.T) {
	log := &keys{}
	log.add(0, 3*blockKeys)
	big := bounds{inMemory: 4, perChunk: 3 * blockKeys, atOnce: 3, sparse: 2, sync: noSync}
	whole := func(t *testing.T) (*os.Root, string, []byte) {
		dir := inDir(t)
		finds(t, dir, log, big)
		name := files(t, dir)[0]
		b, err := dir.ReadFile(name)
		if err != nil || len(files(t, dir)) != 1 {
			t.Fatal(err, files(t, dir))
		}
		return dir, name, b
	}
	dir, name, good := whole(t)
	parts := []int{0, 9, 13, 17, 50, 58, 66, 74, 81, 85, 90, blockSize, 2*blockSize - 1, 2*blockSize - 6, 3*blockSize + 99, len(good) - 1}
	for _, at := range parts {
		bad := bytes.Clone(good)
		bad[at] ^= 1
		for what, b := range map[string][]byte{"changed": bad, "cut off": good[:at], "longer": append(bytes.Clone(good), bad[at])} {
			if err := dir.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			finds(t, dir, log, big)
			if after, err := dir.ReadFile(name); err != nil || !bytes.Equal(after, good) {
				t.Errorf("%s at %d: the file is not as it was, %v", what, at, err)
			}
		}
	}
	// Blocks that have changed places.
	bad := bytes.Clone(good)
	copy(bad[blockSize:], good[2*blockSize:3*blockSize])
	copy(bad[2*blockSize:], good[blockSize:2*blockSize])
	if err := dir.WriteFile(name, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	finds(t, dir, log, big)
	// The segment of a log that has other entries by now.
	other := &keys{salt: 1}
	other.add(7, 7+len(log.all))
	finds(t, dir, other, big)
	// A directory has the name.
	if err := errors.Join(dir.Remove(name), dir.Mkdir(name, 0o700)); err != nil {
		t.Fatal(err)
	}
	finds(t, dir, log, big)
}

// TestDamagedWhileMerged: a block is damaged when its segment is merged.
func TestDamagedWhileMerged(t *testing.T) {
	dir, log := inDir(t), &keys{}
	log.add(0, 6)
	finds(t, dir, log, small)
	damageBlock(t, dir, files(t, dir)[0], 0)
	log.add(6, 60)
	finds(t, dir, log, small)
}

// TestDamagedAgain: a disk that keeps nothing ends in an error, and not in a loop.
func TestDamagedAgain(t *testing.T) {
	dir, log := inDir(t), &keys{}
	log.add(0, 30)
	x, err := open(t.Context(), dir, me, log, small)
	if err != nil {
		t.Fatal(err)
	}
	for range maxRebuilt {
		damageBlock(t, dir, x.segments[0].name(), 0)
		x.cache.clear()
		numbers(t, x, key(3))
	}
	damageBlock(t, dir, x.segments[0].name(), 0)
	x.cache.clear()
	if _, err := x.Find(key(3), func(uint64) (bool, error) { return true, nil }); err == nil {
		t.Error("no error")
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// TestNoSpace: from each change of the directory on there is no space. What can be found is right,
// what cannot is counted, and later all is found.
func TestNoSpace(t *testing.T) {
	for changes := 0; ; changes++ {
		dir, log := inDir(t), &keys{}
		log.add(0, 10)
		finds(t, dir, log, small)
		log.add(5, 60)
		left, b := changes, small
		b.before = func() error {
			if left--; left < 0 {
				return syscall.ENOSPC
			}
			return nil
		}
		x, err := open(t.Context(), dir, me, log, b)
		if err != nil {
			t.Fatal(err)
		}
		missing, why := x.Missing()
		if missing > 0 && !errors.Is(why, syscall.ENOSPC) {
			t.Errorf("%d entries are missing, as %v", missing, why)
		}
		for n, k := range log.all[:len(log.all)-int(missing)] {
			if got := numbers(t, x, k); len(got) == 0 || got[0] < uint64(n) || log.all[got[0]] != k {
				t.Fatalf("%d changes: entry %d: found %d", changes, n, got)
			}
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		finds(t, dir, log, small)
		if left >= 0 {
			return
		}
		if changes > 1000 {
			t.Fatal("it does not end")
		}
	}
}

// TestKilled: the program ends at each change of the directory, in which a temporary may be left.
func TestKilled(t *testing.T) {
	for changes := 0; ; changes++ {
		dir, log := inDir(t), &keys{}
		log.add(0, 60)
		left, b := changes, small
		b.before = func() error {
			if left--; left < 0 {
				panic("killed")
			}
			return nil
		}
		func() {
			defer func() { _ = recover() }()
			x, err := open(t.Context(), dir, me, log, b)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err := dir.WriteFile(temporary, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		finds(t, dir, log, small)
		if slices.Contains(files(t, dir), temporary) {
			t.Error("the temporary is left")
		}
		if left >= 0 {
			return
		}
		if changes > 1000 {
			t.Fatal("it does not end")
		}
	}
}

// TestInterrupted: the run is interrupted at each change of the directory. Opening begins no other
// segment, and the next one finds all.
func TestInterrupted(t *testing.T) {
	for changes := 0; ; changes++ {
		dir, log := inDir(t), &keys{}
		log.add(0, 60)
		ctx, cancel := context.WithCancel(t.Context())
		left, b := changes, small
		b.before = func() error {
			if left--; left < 0 {
				cancel()
			}
			return nil
		}
		x, err := open(ctx, dir, me, log, b)
		if err == nil {
			err = x.Close()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if more := -1 - left; more > 1+small.atOnce { // the segment gets its name, and those that it replaces are removed
			t.Errorf("interrupted at %d, it made %d changes more", changes, more)
		}
		cancel()
		finds(t, dir, log, small)
		if left >= 0 {
			return
		}
		if changes > 1000 {
			t.Fatal("it does not end")
		}
	}
}

// TestLogFails: an error of reading the log is the index's.
func TestLogFails(t *testing.T) {
	log := &keys{bad: syscall.EIO}
	log.add(0, 20)
	if _, err := open(t.Context(), inDir(t), me, log, small); !errors.Is(err, syscall.EIO) {
		t.Errorf("error %v", err)
	}
}

// TestFindAtOnce: look-ups at once, while blocks are damaged.
func TestFindAtOnce(t *testing.T) {
	dir, log := inDir(t), &keys{}
	b := bounds{inMemory: 4, perChunk: 1000, atOnce: 8, sparse: 4, sync: noSync}
	log.add(0, 5000)
	x, err := open(t.Context(), dir, me, log, b)
	if err != nil {
		t.Fatal(err)
	}
	damageBlock(t, dir, x.segments[0].name(), 1)
	var all sync.WaitGroup
	for seed := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			for range 2000 {
				n := r.IntN(len(log.all))
				if got := numbers(t, x, log.all[n]); len(got) != 1 || got[0] != uint64(n) {
					t.Errorf("entry %d: found %d", n, got)
					return
				}
			}
		})
	}
	all.Wait()
	if x.round != 1 {
		t.Errorf("it was completed %d times", x.round)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzSegment opens arbitrary bytes as a segment, with and without a header that is right. They
// are refused or read, and what the log has is found.
func FuzzSegment(f *testing.F) {
	log := &keys{}
	log.add(0, 20)
	dir := inDir(f)
	x, err := open(f.Context(), dir, me, log, bounds{inMemory: 4, perChunk: 32, atOnce: 3, sparse: 2, sync: noSync})
	if err != nil {
		f.Fatal(err)
	}
	name := x.segments[0].name()
	if err := x.Close(); err != nil {
		f.Fatal(err)
	}
	good, err := dir.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(0), good[:headerSize])
	f.Add(uint16(blockSize), good[blockSize:blockSize+480])
	f.Add(uint16(2*blockSize-8), good[2*blockSize-8:])
	f.Fuzz(func(t *testing.T, at uint16, b []byte) {
		bad := bytes.Clone(good)
		if n := copy(bad[min(int(at), len(bad)):], b); n < len(b) {
			bad = append(bad, b[n:]...)
		}
		dir := inDir(t)
		if err := dir.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		finds(t, dir, log, bounds{inMemory: 4, perChunk: 32, atOnce: 3, sparse: 2, sync: noSync})
		// The header's decoder alone, whose checksum the engine does not find.
		if len(b) >= headerSize {
			head := bytes.Clone(b[:headerSize])
			binary.BigEndian.PutUint32(head[88:], crcOf(head[:88]))
			if s, _, err := parseHeader(head, [32]byte(head[16:48])); err == nil && (s.blocks() == 0 || s.sparseKeys() > maxSparse || s.to <= s.from) {
				t.Errorf("%+v", s)
			}
		}
	})
}

func crcOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// sparseLog is a log of n entries that is not in memory.
type sparseLog struct {
	n     int
	every func(n int)
}

func (l *sparseLog) Keys(from, to uint64, yield func(uint64, Key) error) error {
	for n := from; n < min(to, uint64(l.n)); n++ {
		l.every(int(n))
		if err := yield(n, key(int(n))); err != nil {
			return err
		}
	}
	return nil
}

func (l *sparseLog) Mark(uint64) (uint32, error) { return 0, nil }

func (l *sparseLog) Sync() error { return nil }

// TestMemory: the live heap has one bound for logs of any length.
func TestMemory(t *testing.T) {
	const bound = cacheBlocks*blockSize + 4*mergeBuffer + writeBuffer + 1<<20
	b := bounds{inMemory: 64, perChunk: 4096, atOnce: 4, sparse: 16, sync: noSync}
	live := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for _, n := range []int{50_000, 400_000} {
		before, most := live(), 0
		look := func(n int) {
			if n%40_000 == 0 {
				most = max(most, live()-before)
			}
		}
		b.before = func() error { most = max(most, live()-before); return nil }
		x, err := open(t.Context(), inDir(t), me, &sparseLog{n, look}, b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2000 {
			if got := numbers(t, x, key(i*(n/2000))); len(got) != 1 || got[0] != uint64(i*(n/2000)) {
				t.Fatalf("entry %d: found %d", i, got)
			}
		}
		if most = max(most, live()-before); most > bound {
			t.Errorf("%d entries take %d bytes, want up to %d", n, most, bound)
		}
		t.Logf("%d entries: %d bytes, %d segments", n, most, len(x.segments))
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
