package job

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
)

// filesPerDir is how many files a directory of a made-up record has.
const filesPerDir = 50

// madeUp writes a record of n files.
func madeUp(t testing.TB, dir *os.Root, n int) {
	t.Helper()
	f, err := dir.Create(recordName)
	if err != nil {
		t.Fatal(err)
	}
	r := record{identity: sha256.Sum256([]byte("id")), version: recordVersion}
	w := bufio.NewWriterSize(f, 1<<20)
	_, err = w.Write(r.header())
	var entry []byte
	for i := 0; i < n && err == nil; i++ {
		e := recorded{key: r.madeUpKey(i), size: uint64(i), mtime: epoch, ctime: epoch, fileID: uint64(i), copied: epoch, copyID: uint64(i)}
		entry = e.append(entry[:0], entrySize)
		_, err = w.Write(entry)
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func (r *record) madeUpKey(i int) pathKey {
	dir := rootKey(true).child(fmt.Sprint("directory ", i/filesPerDir))
	return r.fileKey(dir, fmt.Sprint("file ", i%filesPerDir))
}

// lookUp finds n files of a made-up record, the i-th of which is which(i).
func lookUp(t testing.TB, r *record, n int, which func(int) int) time.Duration {
	t.Helper()
	begin := time.Now()
	for i := range n {
		want := which(i)
		e, ok, err := r.find(r.madeUpKey(want))
		if err != nil || !ok || e.fileID != uint64(want) {
			t.Fatalf("file %d: %+v, %v, %v", want, e, ok, err)
		}
	}
	return time.Since(begin)
}

// TestManyFiles makes up a record, of 100,000,000 files if NFSBOX_SOAK is set (13 GB), and finds
// files in it. The index of any number of files takes less than 64 MiB.
func TestManyFiles(t *testing.T) {
	n, looks := 300_000, 20_000
	if os.Getenv("NFSBOX_SOAK") != "" {
		n, looks = 100_000_000, 1_000_000
	}
	if s := os.Getenv("NFSBOX_SOAK_FILES"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			t.Fatal(err)
		}
	}
	dir := recordDir(t)
	begin := time.Now()
	madeUp(t, dir, n)
	before := resident(t)
	t.Logf("%d files: made up in %v, %d KiB", n, time.Since(begin).Round(time.Millisecond), before)
	for _, what := range []string{"first", "second"} {
		begin = time.Now()
		r, err := openRecord(t.Context(), dir, nil, "id")
		if err != nil {
			t.Fatal(err)
		}
		if missing, err := r.index.Missing(); missing > 0 || r.index.Entries() != uint64(n) {
			t.Fatalf("%d entries, %d are missing: %v", r.index.Entries(), missing, err)
		}
		t.Logf("%s opening: %v, %d KiB", what, time.Since(begin).Round(time.Millisecond), resident(t))
		took := lookUp(t, r, looks, func(i int) int { return (n/3 + i) % n })
		t.Logf("%d look-ups in order: %v each", looks, took/time.Duration(looks))
		chance := rand.New(rand.NewPCG(1, 2))
		took = lookUp(t, r, looks/10, func(int) int { return chance.IntN(n) })
		t.Logf("%d look-ups at random: %v each", looks/10, took/time.Duration(looks/10))
		if _, ok, err := r.find(r.madeUpKey(n)); ok || err != nil {
			t.Errorf("a file that is not recorded: %v, %v", ok, err)
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
	}
	if peak := resident(t); peak > 0 && peak-before > 64<<10 {
		t.Errorf("it took %d KiB more than the %d KiB before", peak-before, before)
	}
}

// resident is the most memory that the process has had, in KiB; 0: not known.
func resident(t testing.TB) (kib int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			return kib
		}
	}
	return 0
}

// TestNoIndex: the index of a long record cannot be written. The job says so, finds what it can,
// and goes on; once there is room it finds all.
func TestNoIndex(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	few(src)
	dir := recordDir(t)
	run := func() (Summary, *events) {
		t.Helper()
		o, v := options(t, src, dst, "copy")
		o.Record, o.ID = dir, "id"
		s, err := Copy(t.Context(), o)
		if s.ExitCode(err) != ExitDone {
			t.Fatalf("%v, %+v\n%s", err, s, v)
		}
		return s, v
	}
	all, _ := run()
	r, err := openRecord(t.Context(), dir, nil, "id")
	if err != nil {
		t.Fatal(err)
	}
	const more = 600_000 // the job's own files are in the first chunk
	many := make([]recorded, more)
	for i := range many {
		many[i] = recorded{key: r.madeUpKey(i)}
	}
	if err := errors.Join(r.append(many...), r.close(), dir.MkdirAll("index.tmp/in the way", 0o700)); err != nil {
		t.Fatal(err)
	}
	if s, v := run(); s.Skipped != all.Files || !strings.Contains(v.String(), "index could not be completed") {
		t.Errorf("%+v\n%s", s, v)
	}
	if err := dir.RemoveAll("index.tmp"); err != nil {
		t.Fatal(err)
	}
	if s, v := run(); s.Skipped != all.Files || strings.Contains(v.String(), "index") {
		t.Errorf("%+v\n%s", s, v)
	}
}
