package delta

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestPack: an entry comes out of its packed form as it went in, but for Next.
func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := func() uint64 { return r.Uint64() >> r.IntN(64) }
	at := func() time.Time { return time.Unix(r.Int64N(1<<40)-1<<39, r.Int64N(1e9)) }
	for range 10_000 {
		fsid := [2]uint64{n(), n()}
		e := vfs.Entry{Name: make([]byte, r.IntN(vfs.MaxName)), FileID: n(), Attr: vfs.Attr{
			Valid: vfs.Mask(n()), Type: vfs.Type(n()), Mode: uint32(n()), Nlink: uint32(n()), UID: uint32(n()), GID: uint32(n()),
			Size: n(), Used: n(), FileID: n(), Rdev: n(), Change: n(), FSID: [2]uint64{n(), n()},
		}}
		for i := range e.Name {
			e.Name[i] = byte(r.Uint32())
		}
		for _, f := range times(&e.Attr) {
			if e.Attr.Has(f.mask) {
				*f.at = at()
			}
		}
		if h := make([]byte, r.IntN(vfs.MaxHandle+1)); len(h) > 0 {
			h[0] = byte(r.Uint32())
			e.Handle, _ = vfs.MakeHandle(h)
		}
		e.Foreign = strings.Repeat("x", r.IntN(300))
		p := packed(packInto(nil, &e, fsid))
		if got := p.unpack(fsid); !reflect.DeepEqual(*got, e) || p.name() != string(e.Name) {
			t.Fatalf("%+v came out as %+v", e, *got)
		}
	}
}

// TestAttrFields: an attribute that is new in vfs.Attr has to be packed, too.
func TestAttrFields(t *testing.T) {
	if n := reflect.TypeFor[vfs.Attr]().NumField(); n != 16 {
		t.Errorf("vfs.Attr has %d fields; packInto and unpack know 16", n)
	}
	if n := reflect.TypeFor[vfs.Entry]().NumField(); n != 6 {
		t.Errorf("vfs.Entry has %d fields; packInto and unpack know 6", n)
	}
}

// TestBudget: many directories at once hold no more than there is, and minHeld each. All of it is
// given back.
func TestBudget(t *testing.T) {
	const all, dirs = 4 << 20, 40
	b := &budget{left: all}
	var tables []*table
	held := func() (n int) {
		for _, t := range tables {
			n += t.bytes
		}
		return n
	}
	for d := range dirs {
		tb := newTable(b)
		tables = append(tables, tb)
		for i := range 20_000 {
			e := vfs.Entry{Name: fmt.Appendf(nil, "%d", i), Handle: handle(1), Attr: attrs(1, vfs.TypeReg)}
			tb.add(rand.Uint64(), &e)
			if n := held(); n > all+dirs*minHeld {
				t.Fatalf("directory %d: %d bytes are held", d, n)
			}
		}
		if tb.bytes < minHeld/8 {
			t.Errorf("directory %d: it holds %d bytes", d, tb.bytes)
		}
	}
	for i, tb := range tables {
		switch tb.sort(); i % 3 {
		case 0:
			tb.clear()
		case 1:
			for len(tb.pop(100)) > 0 {
			}
		case 2:
			for _, s := range tb.slots {
				if tb.take(s.hash, s.e.name()) == nil {
					t.Fatal("an entry is not found")
				}
			}
		}
	}
	if b.left != all {
		t.Errorf("%d of %d bytes came back", b.left, all)
	}
}

// TestOneHash: entries that no range can divide are held, whatever room there is.
func TestOneHash(t *testing.T) {
	for _, hash := range []uint64{0, 1, math.MaxUint64} {
		b := &budget{}
		tb := newTable(b)
		tb.first = hash
		e := vfs.Entry{Name: []byte("one"), Attr: attrs(1, vfs.TypeReg)}
		for range 1000 {
			tb.add(hash, &e)
		}
		if tb.sort(); len(tb.slots) != 1 || tb.take(hash, "one") == nil || tb.take(hash, "one") != nil {
			t.Errorf("hash %d: %d entries", hash, len(tb.slots))
		}
		if tb.clear(); b.left != 0 {
			t.Errorf("%d bytes are missing", -b.left)
		}
	}
}

// TestNext: ranges follow each other without a gap, up to the last hash, and are as wide as what is
// known of the size allows.
func TestNext(t *testing.T) {
	for _, total := range []int{0, 1, 10_000, 1 << 30, 1 << 50} {
		tb := newTable(&budget{left: 1 << 20})
		tb.each = 1
		tb.last = math.MaxUint64 / 3
		n := 0
		for last := tb.last; tb.next(total) && n < 1000; last = tb.last {
			if n++; tb.first != last+1 || tb.last < tb.first {
				t.Fatalf("%d bytes: from %x to %x, behind %x", total, tb.first, tb.last, last)
			}
		}
		if want := 1 + total/3*2/(1<<20/3*2/8*7); n < 1000 && (n > want || n < want-1) {
			t.Errorf("%d bytes: %d ranges, want about %d", total, n, want)
		}
	}
}
