package xdr

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	rasky "github.com/rasky/go-xdr/xdr2"
	stellar "github.com/stellar/go-xdr/xdr3"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	ours "github.com/nfsbox/nfsbox/xdr"
)

// entries is the size of the page that is decoded.
const entries = 1000

// The peers' own types for the same messages. What RFC 1813 calls a union of
// one boolean is a tagged struct to the one and a pointer to the other.
type (
	args struct {
		Dir      []byte
		Cookie   uint64
		Verf     [8]byte
		DirCount uint32
		MaxCount uint32
	}
	times  struct{ Sec, Nsec uint32 }
	fattr3 struct {
		Type, Mode, Nlink, UID, GID uint32
		Size, Used                  uint64
		Rdev                        [2]uint32
		FSID, FileID                uint64
		Atime, Mtime, Ctime         times
	}
	raskyAttr struct {
		Set  bool   `xdr:"union"`
		Attr fattr3 `xdr:"unioncase=1"`
	}
	raskyHandle struct {
		Set bool   `xdr:"union"`
		FH  []byte `xdr:"unioncase=1"`
	}
	raskyEntry struct {
		FileID uint64
		Name   string
		Cookie uint64
		Attr   raskyAttr
		Handle raskyHandle
	}
	stellarHandle struct{ FH []byte }
	stellarEntry  struct {
		FileID uint64
		Name   string
		Cookie uint64
		Attr   *fattr3
		Handle *stellarHandle
	}
)

func ourArgs() *nfs3.READDIRPLUS3args {
	return &nfs3.READDIRPLUS3args{
		Dir: nfs3.NfsFh3{Data: bytes.Repeat([]byte{7}, 28)}, Cookie: 12345, Cookieverf: [8]byte{1, 2},
		Dircount: 32768, Maxcount: 1 << 20,
	}
}

func peerArgs() args {
	return args{Dir: bytes.Repeat([]byte{7}, 28), Cookie: 12345, Verf: [8]byte{1, 2}, DirCount: 32768, MaxCount: 1 << 20}
}

// page is entries entries as they stand on the wire, behind one another, and
// the end of their list.
func page(tb testing.TB) []byte {
	var b []byte
	for i := range uint64(entries) {
		e := nfs3.Entryplus3{Fileid: i, Name: fmt.Appendf(nil, "file%08d", i), Cookie: i + 1}
		e.NameAttributes.AttributesFollow = true
		e.NameAttributes.Attributes = nfs3.Fattr3{Type: nfs3.NF3REG, Mode: 0o644, Nlink: 1, Size: i, Fileid: i}
		e.NameHandle.HandleFollows = true
		e.NameHandle.Handle.Data = bytes.Repeat([]byte{9}, 28)
		var err error
		if b, err = e.AppendNext(b); err != nil {
			tb.Fatal(err)
		}
	}
	return ours.AppendBool(b, false)
}

func TestSameBytes(t *testing.T) {
	want, err := ourArgs().AppendXDR(nil)
	if err != nil {
		t.Fatal(err)
	}
	peers := map[string]func(io.Writer, any) (int, error){
		"rasky":   func(w io.Writer, v any) (int, error) { return rasky.Marshal(w, v) },
		"stellar": func(w io.Writer, v any) (int, error) { return stellar.Marshal(w, v) },
	}
	for name, marshal := range peers {
		var buf bytes.Buffer
		if _, err := marshal(&buf, peerArgs()); err != nil || !bytes.Equal(buf.Bytes(), want) {
			t.Errorf("%s encodes %x, %v; we encode %x", name, buf.Bytes(), err, want)
		}
	}
	p := page(t)
	for name, decode := range map[string]func([]byte) (int, uint64, error){"ours": decodeOurs, "rasky": decodeRasky, "stellar": decodeStellar} {
		n, sum, err := decode(p)
		if err != nil || n != entries || sum != entries*(entries-1)/2 {
			t.Errorf("%s decodes %d entries of %d bytes in all, %v", name, n, sum, err)
		}
	}
}

func decodeOurs(page []byte) (n int, sum uint64, err error) {
	d := ours.NewDecoder(page)
	var e nfs3.Entryplus3
	for e.Next(&d) {
		n++
		sum += e.NameAttributes.Attributes.Size
	}
	return n, sum, d.Finish()
}

func decodeRasky(page []byte) (n int, sum uint64, err error) {
	d := rasky.NewDecoder(bytes.NewReader(page))
	for {
		follows, _, err := d.DecodeBool()
		if err != nil || !follows {
			return n, sum, err
		}
		var e raskyEntry
		if _, err := d.Decode(&e); err != nil {
			return n, sum, err
		}
		n++
		sum += e.Attr.Attr.Size
	}
}

func decodeStellar(page []byte) (n int, sum uint64, err error) {
	d := stellar.NewDecoder(bytes.NewReader(page))
	for {
		follows, _, err := d.DecodeBool()
		if err != nil || !follows {
			return n, sum, err
		}
		var e stellarEntry
		if _, err := d.Decode(&e); err != nil {
			return n, sum, err
		}
		n++
		sum += e.Attr.Size
	}
}

func BenchmarkEncodeArgs(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		a, buf := ourArgs(), make([]byte, 0, 128)
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if buf, err = a.AppendXDR(buf[:0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	peer := func(name string, marshal func(io.Writer, any) (int, error)) {
		b.Run(name, func(b *testing.B) {
			a := peerArgs()
			var buf bytes.Buffer
			b.ReportAllocs()
			for b.Loop() {
				buf.Reset()
				if _, err := marshal(&buf, &a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	peer("rasky", func(w io.Writer, v any) (int, error) { return rasky.Marshal(w, v) })
	peer("stellar", func(w io.Writer, v any) (int, error) { return stellar.Marshal(w, v) })
}

// BenchmarkDecodePage reports the time of one entry, in a page of 1000.
func BenchmarkDecodePage(b *testing.B) {
	p := page(b)
	for _, c := range []struct {
		name   string
		decode func([]byte) (int, uint64, error)
	}{{"ours", decodeOurs}, {"rasky", decodeRasky}, {"stellar", decodeStellar}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n, _, err := c.decode(p); err != nil || n != entries {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
		})
	}
}
