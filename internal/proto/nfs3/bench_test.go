package nfs3

import (
	"testing"

	"github.com/nfsbox/nfsbox/xdr"
)

func benchEntry() *Entryplus3 {
	return &Entryplus3{
		Fileid: 1 << 40, Name: []byte("file-000.dat"), Cookie: 77,
		NameAttributes: PostOpAttr{AttributesFollow: true, Attributes: Fattr3{Type: NF3REG, Mode: 0o644, Size: 1 << 20, Fileid: 1 << 40}},
		NameHandle:     PostOpFh3{HandleFollows: true, Handle: NfsFh3{Data: make([]byte, 28)}},
	}
}

func BenchmarkReaddirplusArgsEncode(b *testing.B) {
	args := &READDIRPLUS3args{Dir: NfsFh3{Data: make([]byte, 32)}, Cookie: 1, Dircount: 4096, Maxcount: 65536}
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := args.AppendXDR(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEntryplusEncode(b *testing.B) {
	e := benchEntry()
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.AppendNext(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEntryplusDecode(b *testing.B) {
	var list []byte
	for range 100 {
		list, _ = benchEntry().AppendNext(list)
	}
	list = xdr.AppendBool(list, false)
	b.ReportAllocs()
	var e Entryplus3
	b.ResetTimer()
	for i := 0; i < b.N; i += 100 {
		d := xdr.NewDecoder(list)
		for e.Next(&d) {
		}
		if d.Finish() != nil {
			b.Fatal(d.Err())
		}
	}
}
