package v3

import (
	"fmt"
	"testing"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// record is a page of a READDIRPLUS of n entries with attributes and handles,
// each of 164 bytes.
func record(tb testing.TB, n int) []byte {
	tb.Helper()
	var res nfs3.READDIRPLUS3res
	for i := range n {
		res.Resok.Reply.Entries = append(res.Resok.Reply.Entries, nfs3.Entryplus3{
			Fileid: uint64(i), Cookie: uint64(i) + 1, Name: fmt.Appendf(nil, "file-%09d", i),
			NameAttributes: nfs3.PostOpAttr{AttributesFollow: true},
			NameHandle:     nfs3.PostOpFh3{HandleFollows: true, Handle: nfs3.NfsFh3{Data: make([]byte, 28)}},
		})
	}
	b, err := res.AppendXDR(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// turn decodes a page and delivers it to l. It counts as one behind which others
// follow, which nobody fetches.
func (l *listing) turn(tb testing.TB, b []byte) {
	d := xdr.NewDecoder(b)
	p := page{plus: true}
	if err := p.DecodeXDR(&d); err != nil {
		tb.Fatal(err)
	}
	if err := p.scan(); err != nil {
		tb.Fatal(err)
	}
	l.ahead.busy = true
	if !l.page(&p) {
		tb.Fatal(l.err)
	}
}

// TestEntriesLean: an entry costs no allocation, but for the chunks in which
// names are remembered.
func TestEntriesLean(t *testing.T) {
	const entries = 1000
	b, n := record(t, entries), 0
	l := &listing{want: vfs.MaskV3 | vfs.MaskHandle, yield: func(*vfs.Entry, error) bool { n++; return true }}
	if allocs := testing.AllocsPerRun(100, func() { l.turn(t, b) }); allocs > 3 {
		t.Errorf("%.1f allocations for a page of %d entries", allocs, entries)
	}
	if n != 101*entries {
		t.Errorf("%d entries", n)
	}
}

// BenchmarkEntry is what an entry costs beside the connection.
func BenchmarkEntry(b *testing.B) {
	const entries = 1000
	page, n := record(b, entries), 0
	l := &listing{want: vfs.MaskV3 | vfs.MaskHandle, yield: func(e *vfs.Entry, _ error) bool { n += len(e.Name); return true }}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.turn(b, page)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*entries), "ns/entry")
}

// TestMoved weighs a page by its bytes, of which nothing is decoded yet.
func TestMoved(t *testing.T) {
	res := nfs3.READDIR3res{}
	for range 10 {
		res.Resok.Reply.Entries = append(res.Resok.Reply.Entries, nfs3.Entry3{Name: []byte("name")})
	}
	b, err := res.AppendXDR(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := new(page)
	d := xdr.NewDecoder(b)
	if err := p.DecodeXDR(&d); err != nil {
		t.Fatal(err)
	}
	const entry, end = 4 + 8 + 4 + 4 + 8, 8
	if n := moved(p, nil); n != 10*entry+end {
		t.Errorf("%d bytes", n)
	}
}
