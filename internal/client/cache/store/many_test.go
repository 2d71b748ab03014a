package store

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
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
	for _, how := range []string{"listed", "by the index"} {
		before := heap()
		begin := time.Now()
		s = start(t, o)
		took := time.Since(begin)
		grown := heap() - before
		t.Logf("%d entries, %s: %v, %d MiB", n, how, took, grown>>20)
		if st := s.Stats(); st.Entries != n {
			t.Errorf("%s: %d entries of %d", how, st.Entries, n)
		}
		if soak && (grown > 128<<20 || how == "by the index" && took > 5*time.Second) { // the listing is the disk's
			t.Errorf("%s: %v, %d bytes", how, took, grown)
		}
		begin = time.Now()
		stop(t, s)
		t.Log(fmt.Sprint("closed in ", time.Since(begin)))
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
