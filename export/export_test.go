package export

import (
	"bytes"
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
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
	for i := range exports {
		if exports[i].FS == nil {
			exports[i].FS = memfs.New(memfs.Options{})
		}
	}
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
		sealed, err := numbered(table, table.Exports()[1].ID).seal(&inner)
		if err != nil || sealed.Len() > vfs.MaxHandleV3 {
			t.Fatalf("%d bytes: %v, %d bytes sealed", n, err, sealed.Len())
		}
		e, h, err := table.state.Load().open(&sealed)
		if err != nil || e.Path != "/b" || h != inner {
			t.Fatalf("%d bytes: opened %v, %v", n, h, err)
		}
	}
	long, _ := vfs.MakeHandle(make([]byte, MaxInner+1))
	if _, err := numbered(table, 1).seal(&long); !errors.Is(err, vfs.ErrBadHandle) {
		t.Errorf("a handle that does not fit: %v", err)
	}
}

// TestForgedHandles flips every bit, cuts and grows a sealed handle, and opens
// it under another key: none of it opens anything.
func TestForgedHandles(t *testing.T) {
	table := testTable(t, testKey(), Export{Path: "/a"})
	inner, _ := vfs.MakeHandle([]byte("inner handle"))
	sealed, err := numbered(table, table.Exports()[0].ID).seal(&inner)
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
		if _, _, err := table.state.Load().open(&h); !errors.Is(err, vfs.ErrStale) && !errors.Is(err, vfs.ErrBadHandle) {
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
	if _, _, err := other.state.Load().open(&sealed); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("another key: %v", err)
	}
	elsewhere := testTable(t, testKey(), Export{Path: "/b"})
	if _, _, err := elsewhere.state.Load().open(&sealed); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("an export that is gone: %v", err)
	}
}

// TestHandlesOfOthers opens handles that are sealed well, or nearly, but not for this
// table. Those without our structure are ErrBadHandle, all others ErrStale.
func TestHandlesOfOthers(t *testing.T) {
	exports := []Export{{Path: "/a", ID: 1}, {Path: "/b", ID: 2, ReadOnly: true}}
	table := testTable(t, testKey(), exports...)
	restarted := testTable(t, testKey(), exports...)
	foreign := testTable(t, Key{9}, exports...)
	more := testTable(t, testKey(), Export{Path: "/c", ID: 3})
	inner, _ := vfs.MakeHandle([]byte("inner handle"))
	good, err := numbered(table, 1).seal(&inner)
	if err != nil {
		t.Fatal(err)
	}
	if e, h, err := restarted.state.Load().open(&good); err != nil || e.Path != "/a" || h != inner {
		t.Errorf("after a restart: %v", err)
	}
	sealed := func(t *Table, id uint32) []byte {
		h, _ := numbered(t, id).seal(&inner)
		return h.Bytes()
	}
	swapped := sealed(table, 1)
	swapped[4] = 2 // into the other export
	long := make([]byte, vfs.MaxHandle)
	long[0] = sealPlain
	for _, x := range []struct {
		what string
		h    []byte
		want error
	}{
		{"another server's", sealed(foreign, 1), vfs.ErrStale},
		{"of an export that is not there", sealed(more, 3), vfs.ErrStale},
		{"moved into another export", swapped, vfs.ErrStale},
		{"cut by a byte", good.Bytes()[:good.Len()-1], vfs.ErrStale},
		{"grown by a byte", append(good.Bytes(), 0), vfs.ErrStale},
		{"all zeros but the version", append([]byte{sealPlain}, make([]byte, 40)...), vfs.ErrStale},
		{"of the smallest size", append([]byte{sealPlain}, make([]byte, sealHead+sealSum)...), vfs.ErrStale},
		{"smaller", append([]byte{sealPlain}, make([]byte, sealHead+sealSum-1)...), vfs.ErrBadHandle},
		{"one byte", []byte{sealPlain}, vfs.ErrBadHandle},
		{"larger than NFSv3's", long[:vfs.MaxHandleV3+1], vfs.ErrBadHandle},
		{"of the largest size", long, vfs.ErrBadHandle},
		{"of another version", append([]byte{sealTree + 1}, good.Bytes()[1:]...), vfs.ErrBadHandle},
		{"the file system's own", inner.Bytes(), vfs.ErrBadHandle},
		{"none", nil, vfs.ErrBadHandle},
	} {
		var h vfs.Handle
		if x.h != nil {
			if h, err = vfs.MakeHandle(x.h); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := table.As(nil).GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.what, err, x.want)
		}
		if _, _, err := table.As(nil).Rename(t.Context(), good, "x", h, "y"); !errors.Is(err, x.want) {
			t.Errorf("%s, as the second of two: %v, want %v", x.what, err, x.want)
		}
	}
}

func fuzzTable(f *testing.F) *Table {
	table, err := NewTable(testKey(), Export{Path: "/a", FS: memory()})
	if err != nil {
		f.Fatal(err)
	}
	return table
}

// FuzzOpen opens any bytes: only what was sealed opens.
func FuzzOpen(f *testing.F) {
	table := fuzzTable(f)
	inner, _ := vfs.MakeHandle([]byte("inner"))
	sealed, _ := numbered(table, table.Exports()[0].ID).seal(&inner)
	f.Add(sealed.Bytes())
	f.Fuzz(func(t *testing.T, p []byte) {
		h, err := vfs.MakeHandle(p)
		if err != nil {
			return
		}
		_, got, err := table.state.Load().open(&h)
		if err == nil && got != inner {
			t.Errorf("a forged handle was opened: %x", p)
		}
		if err != nil && !errors.Is(err, vfs.ErrStale) && !errors.Is(err, vfs.ErrBadHandle) {
			t.Errorf("%x: %v", p, err)
		}
	})
}

// FuzzSeal seals anything that fits and opens it again, but not with a flipped bit.
func FuzzSeal(f *testing.F) {
	table := fuzzTable(f)
	f.Add([]byte("inner"), uint16(3))
	f.Add(make([]byte, MaxInner), uint16(500))
	f.Fuzz(func(t *testing.T, p []byte, bit uint16) {
		inner, err := vfs.MakeHandle(p)
		if err != nil {
			return
		}
		e := table.Exports()[0]
		sealed, err := numbered(table, e.ID).seal(&inner)
		if len(p) > MaxInner {
			if !errors.Is(err, vfs.ErrBadHandle) {
				t.Errorf("%d bytes: %v", len(p), err)
			}
			return
		}
		got, h, err := table.state.Load().open(&sealed)
		if err != nil || got.ID != e.ID || h != inner {
			t.Fatalf("%x comes back as %v, %v", p, h, err)
		}
		b := sealed.Bytes()
		b[int(bit/8)%len(b)] ^= 1 << (bit % 8)
		if _, _, err := table.state.Load().open(&sealed); err == nil {
			t.Errorf("%x with bit %d turned is opened", p, bit)
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
		e, rest, err := table.state.Load().find(in)
		if err != nil || e.Path != want[0] || (rest != want[1] && in != "" && in != "/") {
			t.Errorf("find(%q): %v, %q, %v; want %q", in, e, rest, err, want)
		}
	}
	one := testTable(t, Key{}, Export{Path: "/srv"})
	if e, _, err := one.state.Load().find("/"); err != nil || e.Path != "/srv" {
		t.Errorf("the only export is not found under /: %v", err)
	}
	if _, _, err := one.state.Load().find("/srv2"); !errors.Is(err, vfs.ErrNoEnt) {
		t.Errorf("a path under no export: %v", err)
	}
}

// numbered is an export of t where only the number matters.
func numbered(t *Table, id uint32) *entry { return &entry{Export: &Export{ID: id}, key: t.key} }

// TestOtherTree checks that handles of a former tree with the same path and number are
// stale, even if the file system knows them. When the tree is back, so are they.
func TestOtherTree(t *testing.T) {
	fs := memory()
	one, two := Export{Path: "/", FS: fs, Tree: []byte("one")}, Export{Path: "/", FS: fs, Tree: []byte("two")}
	table := testTable(t, Key{1}, one)
	v := table.For(remote("192.0.2.1:700"), nil)
	root, _, err := v.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, _, _, err := v.Create(t.Context(), root, "dir", &vfs.CreateHow{Type: vfs.TypeDir})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what string
		now  Export
		want error
	}{{"another tree", two, vfs.ErrStale}, {"no tree named", Export{Path: "/", FS: fs}, vfs.ErrStale}, {"the first tree", one, nil}} {
		if err := table.Replace(x.now); err != nil {
			t.Fatal(err)
		}
		if _, err := v.GetAttr(t.Context(), dir, vfs.MaskV3); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.what, err, x.want)
		}
		again, _, err := table.For(remote("192.0.2.2:700"), nil).Root(t.Context())
		if err != nil || (again == root) != (x.want == nil) || again.Len() != root.Len() {
			t.Errorf("%s: the root is %v, was %v, %v", x.what, again, root, err)
		}
	}
}
