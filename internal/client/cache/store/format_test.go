package store

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"
)

func FuzzHeader(f *testing.F) {
	page := make([]byte, block)
	h := header{key: *key(1), version: *version(1, 1<<20), granule: MinGranule, salt: 7, label: "name"}
	h.put(page)
	f.Add(page)
	f.Add(page[:headerSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		again := make([]byte, headerSize)
		h.put(again)
		if !bytes.Equal(again, b[:headerSize]) {
			g, err := parseHeader(again)
			if err != nil || g.key != h.key || !g.version.Equal(&h.version) {
				t.Errorf("%+v is %+v, %v when it is written and read", h, g, err)
			}
		}
		if h.granules() > maxGranules {
			t.Errorf("%d granules", h.granules())
		}
	})
}

func FuzzTable(f *testing.F) {
	tab := newTable(2 * perPage)
	tab.bits[0], tab.sums[3] = 9, 1234
	page := make([]byte, block)
	tab.putPage(page, 0, 5)
	f.Add(page, 2*perPage, 0)
	f.Fuzz(func(_ *testing.T, b []byte, granules, n int) {
		if granules < 1 || granules > 4*perPage || n < 0 || n >= (granules+perPage-1)/perPage {
			return
		}
		tab := newTable(granules)
		_ = tab.takePage(b, n, 5)
	})
}

func FuzzIndex(f *testing.F) {
	x := newIndex(0)
	for i := range uint64(5) {
		x.resize(x.use(i), uint32(i))
	}
	f.Add(x.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := parseIndex(b)
		if err == nil && !bytes.Equal(x.append(nil), b) {
			t.Error("not what is written again")
		}
	})
}

func FuzzStats(f *testing.F) {
	var c Counters
	c.Hits.Store(5)
	f.Add(c.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Counters
		if c.parse(b) == nil && !bytes.Equal(c.append(nil), b) {
			t.Error("not what is written again")
		}
	})
}

// TestHeader: all that an entry says of itself comes back.
func TestHeader(t *testing.T) {
	page := make([]byte, block)
	h := header{key: *key(5), version: *version(5, 12345), label: "a file", granule: 128 << 10, salt: 99, flags: unchecked}
	h.key.Mark = "mark"
	h.version.Mtime = time.Unix(-5, 7)
	h.put(page)
	g, err := parseHeader(page)
	if err != nil || g.key != h.key || !g.version.Equal(&h.version) || g.label != h.label || g.granule != h.granule || g.salt != h.salt || g.flags != h.flags {
		t.Errorf("%+v, %v; want %+v", g, err, h)
	}
	for i := range headerSize {
		page[i] ^= 4
		if _, err := parseHeader(page); err == nil {
			t.Fatalf("byte %d is wrong, and nobody notices", i)
		}
		page[i] ^= 4
	}
}

// TestManyGranules: the table of a large file has several pages.
func TestManyGranules(t *testing.T) {
	o := Options{Dir: home(t)}
	s := start(t, o)
	const size = 3*perPage*MinGranule - 5
	e := s.Open(key(1), version(1, size), "")
	for _, g := range []int{2*perPage + 1, perPage - 1, perPage, 3*perPage - 1} {
		if !e.Fill(g, bytesOf(g, e.length(g))) {
			t.Fatal("no room")
		}
	}
	e.Release()
	stop(t, s)
	s = start(t, o)
	e = s.Open(key(1), version(1, size), "")
	defer e.Release()
	p := make([]byte, MinGranule)
	for g := range 3 * perPage {
		want := g == 2*perPage+1 || g == perPage-1 || g == perPage || g == 3*perPage-1
		n := e.ReadAt(p, uint64(g)*MinGranule)
		if n > 0 != want || want && !bytes.Equal(p[:n], bytesOf(g, n)) {
			t.Errorf("granule %d: %d bytes", g, n)
		}
	}
}

// TestManyEntries: the index of a million entries takes less than 128 MiB.
func TestManyEntries(t *testing.T) {
	n := 100_000
	if os.Getenv("NFSBOX_SOAK") != "" {
		n = 1_000_000
	}
	x := newIndex(0)
	for i := range uint64(n) { //nolint:gosec // It is positive.
		x.resize(x.use(i*0x9e3779b97f4a7c15), 3)
	}
	b := x.append(nil)
	x = nil
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x, err := parseIndex(b)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int64(after.HeapAlloc-before.HeapAlloc) / int64(n)
	t.Logf("%d bytes an entry", each)
	if each > 100 || x.blocks != 3*int64(n) {
		t.Errorf("%d bytes an entry, %d blocks", each, x.blocks)
	}
	// The order of use is that of the uses.
	x.use(0)
	for range n / 2 {
		x.remove(x.records[x.oldest].id)
	}
	if x.get(0) == nil || len(x.at) != n/2 || x.blocks != 3*int64(n)/2 {
		t.Errorf("%d entries, %d blocks", len(x.at), x.blocks)
	}
}
