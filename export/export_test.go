package export

import (
	"bytes"
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

func testKey() (k Key) {
	for i := range k {
		k[i] = byte(i)
	}
	return k
}

// TestSipHash checks vectors of the reference implementation (key 00..0f, input
// 00..n-1).
func TestSipHash(t *testing.T) {
	k := testKey()
	var in []byte
	want := map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 7: 0xab0200f58b01d137, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5}
	for n := range 16 {
		if w, ok := want[n]; ok && k.sum(in) != w {
			t.Errorf("%d bytes: %#x, want %#x", n, k.sum(in), w)
		}
		in = append(in, byte(n))
	}
}

func testTable(t *testing.T, key Key, exports ...Export) *Table {
	t.Helper()
	table, err := NewTable(key, exports...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestSeal(t *testing.T) {
	table := testTable(t, testKey(), Export{Path: "/a"}, Export{Path: "/b"})
	for n := 1; n <= MaxInner; n++ {
		inner, _ := vfs.MakeHandle(bytes.Repeat([]byte{byte(n)}, n))
		sealed, err := table.seal(table.exports[1].ID, &inner)
		if err != nil || sealed.Len() > vfs.MaxHandleV3 {
			t.Fatalf("%d bytes: %v, %d bytes sealed", n, err, sealed.Len())
		}
		e, h, err := table.open(&sealed)
		if err != nil || e.Path != "/b" || h != inner {
			t.Fatalf("%d bytes: opened %v, %v", n, h, err)
		}
	}
	long, _ := vfs.MakeHandle(make([]byte, MaxInner+1))
	if _, err := table.seal(1, &long); !errors.Is(err, vfs.ErrBadHandle) {
		t.Errorf("a handle that does not fit: %v", err)
	}
}

// TestForgedHandles flips every bit, cuts and grows a sealed handle, and opens
// it under another key: none of it opens anything.
func TestForgedHandles(t *testing.T) {
	table := testTable(t, testKey(), Export{Path: "/a"})
	inner, _ := vfs.MakeHandle([]byte("inner handle"))
	sealed, err := table.seal(table.exports[0].ID, &inner)
	if err != nil {
		t.Fatal(err)
	}
	b := sealed.Bytes()
	try := func(what string, p []byte) {
		t.Helper()
		h, err := vfs.MakeHandle(p)
		if err != nil {
			return
		}
		if _, _, err := table.open(&h); !errors.Is(err, vfs.ErrStale) && !errors.Is(err, vfs.ErrBadHandle) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for bit := range len(b) * 8 {
		f := bytes.Clone(b)
		f[bit/8] ^= 1 << (bit % 8)
		try("a flipped bit", f)
	}
	for n := range len(b) {
		try("cut", b[:n])
	}
	try("grown", append(bytes.Clone(b), 0))
	other := testTable(t, Key{1}, Export{Path: "/a"})
	if _, _, err := other.open(&sealed); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("another key: %v", err)
	}
	elsewhere := testTable(t, testKey(), Export{Path: "/b"})
	if _, _, err := elsewhere.open(&sealed); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("an export that is gone: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	table, err := NewTable(testKey(), Export{Path: "/a"})
	if err != nil {
		f.Fatal(err)
	}
	inner, _ := vfs.MakeHandle([]byte("inner"))
	sealed, _ := table.seal(table.exports[0].ID, &inner)
	f.Add(sealed.Bytes())
	f.Fuzz(func(t *testing.T, p []byte) {
		h, err := vfs.MakeHandle(p)
		if err != nil {
			return
		}
		if _, got, err := table.open(&h); err == nil && got != inner {
			t.Errorf("a forged handle was opened: %x", p)
		}
	})
}

func TestNewTableRefuses(t *testing.T) {
	for _, exports := range [][]Export{
		{},
		{{Path: ""}},
		{{Path: "a"}},
		{{Path: "/a/../b"}},
		{{Path: "/a/"}},
		{{Path: "/a\x00"}},
		{{Path: "/a"}, {Path: "/a"}},
		{{Path: "/a", ID: 7}, {Path: "/b", ID: 7}},
	} {
		if _, err := NewTable(Key{}, exports...); err == nil {
			t.Errorf("%+v: accepted", exports)
		}
	}
}

func TestFind(t *testing.T) {
	table := testTable(t, Key{}, Export{Path: "/"}, Export{Path: "/home"}, Export{Path: "/home/ann"})
	for in, want := range map[string][2]string{
		"":                   {"/", "/"},
		"/":                  {"/", "/"},
		"/etc":               {"/", "etc"},
		"/homes":             {"/", "homes"},
		"/home":              {"/home", ""},
		"/home/":             {"/home", ""},
		"/home/bob/x":        {"/home", "/bob/x"},
		"/home/ann/x":        {"/home/ann", "/x"},
		"/home/../home/ann/": {"/home/ann", ""},
		"/../../etc":         {"/", "etc"},
	} {
		e, rest, err := table.find(in)
		if err != nil || e.Path != want[0] || (rest != want[1] && in != "" && in != "/") {
			t.Errorf("find(%q): %v, %q, %v; want %q", in, e, rest, err, want)
		}
	}
	one := testTable(t, Key{}, Export{Path: "/srv"})
	if e, _, err := one.find("/"); err != nil || e.Path != "/srv" {
		t.Errorf("the only export is not found under /: %v", err)
	}
	if _, _, err := one.find("/srv2"); !errors.Is(err, vfs.ErrNoEnt) {
		t.Errorf("a path under no export: %v", err)
	}
}
