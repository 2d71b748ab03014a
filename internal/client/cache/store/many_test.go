package store

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/rusage"
)

// TestManyFiles opens a store of many entries: with its index, and after a crash, when the directory is listed.
func TestManyFiles(t *testing.T) {
	n := 2000
	soak := os.Getenv("NFSBOX_SOAK") != ""
	if soak {
		n = 1_000_000
	}
	o := Options{Dir: home(t)}
	s := start(t, o)
	stop(t, s)
	for i := range 256 {
		if err := os.MkdirAll(filepath.Join(s.dir, dataDir, hex2(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(n) { //nolint:gosec // It is positive.
		if err := os.WriteFile(s.file(i*0x9e3779b97f4a7c15), binary.BigEndian.AppendUint64(nil, i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(s.dir, indexName)); err != nil {
		t.Fatal(err)
	}
	const listed, again, indexed = "listed", "listed, with the order of an index", "by the index"
	for _, how := range []string{listed, again, indexed} {
		if how == again { // as a crash leaves it
			if err := os.Rename(filepath.Join(s.dir, indexName), filepath.Join(s.dir, oldName)); err != nil {
				t.Fatal(err)
			}
		}
		before, busy := heap(), processor(t)
		begin := time.Now()
		s = start(t, o)
		took, busy := time.Since(begin), processor(t)-busy
		grown := heap() - before
		t.Logf("%d entries, %s: %v, %v of the processors, %d MiB", n, how, took, busy, grown>>20)
		if st := s.Stats(); st.Entries != n {
			t.Errorf("%s: %d entries of %d", how, st.Entries, n)
		}
		if soak && (grown > 128<<20 || busy > 5*time.Second) { // what else runs here makes took as long as it likes
			t.Errorf("%s: %v, %d bytes", how, busy, grown)
		}
		begin = time.Now()
		stop(t, s)
		t.Log(fmt.Sprint("closed in ", time.Since(begin)))
	}
}

// TestListedOrder: after a crash what is listed has the order and the pins of the index before it, what that lacks is newer, and
// what takes room is counted as it is now.
func TestListedOrder(t *testing.T) {
	o := Options{Dir: home(t)}
	s := start(t, o)
	stop(t, s)
	old := newIndex(0)
	for _, id := range []uint64{5, 3, 1 << 60, 4} {
		old.resize(old.use(id), 100)
	}
	old.pin(old.get(3), true)
	for _, id := range []uint64{3, 1 << 60, 4, 1} { // 5 is lost
		if err := os.MkdirAll(filepath.Dir(s.file(id)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.file(id), make([]byte, 2*block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, oldName), old.append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.dir, indexName)); err != nil {
		t.Fatal(err)
	}
	s = start(t, o)
	var got []uint64
	var blocks, pins int64
	for i := s.index.oldest; i >= 0; i = s.index.records[i].next {
		r := &s.index.records[i]
		got = append(got, r.id)
		blocks += int64(r.blocks)
		if r.flags&pinned != 0 {
			pins += int64(r.blocks)
		}
	}
	if want := []uint64{3, 1 << 60, 4, 1}; !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	if r := s.index.get(3); s.index.blocks != blocks || blocks >= 100 || s.index.pinned != pins || r == nil || pins != int64(r.blocks) {
		t.Errorf("%d blocks, and %d of those that are there; %d of them pinned, and %d", s.index.blocks, blocks, s.index.pinned, pins)
	}
}

func processor(t *testing.T) time.Duration {
	used, err := rusage.CPU()
	if err != nil {
		t.Fatal(err)
	}
	return used.User + used.System
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
