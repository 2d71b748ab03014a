package nfs3

import (
	"testing"

	"github.com/nfsbox/nfsbox/xdr"
)

// The calls that a walk of millions of files makes: none of them may allocate.

func hotArgs() *READDIRPLUS3args {
	return &READDIRPLUS3args{Dir: NfsFh3{Data: make([]byte, 32)}, Cookie: 1, Dircount: 4096, Maxcount: 65536}
}

func hotEntry() *Entryplus3 {
	return &Entryplus3{
		Fileid: 1 << 40, Name: []byte("file-000.dat"), Cookie: 77,
		NameAttributes: PostOpAttr{AttributesFollow: true, Attributes: attr},
		NameHandle:     PostOpFh3{HandleFollows: true, Handle: NfsFh3{Data: make([]byte, 28)}},
	}
}

// hotList is a list of n entries.
func hotList(tb testing.TB, n int) []byte {
	tb.Helper()
	var list []byte
	for range n {
		var err error
		if list, err = hotEntry().AppendNext(list); err != nil {
			tb.Fatal(err)
		}
	}
	return xdr.AppendBool(list, false)
}

func TestAllocs(t *testing.T) {
	args, entry, list := hotArgs(), hotEntry(), hotList(t, 10)
	reply, err := (&READDIRPLUS3res{Resok: READDIRPLUS3resok{Reply: Dirlistplus3{Entries: make([]Entryplus3, 10)}}}).AppendXDR(nil)
	if err != nil {
		t.Fatal(err)
	}
	read := &READ3res{Resok: READ3resok{FileAttributes: postAttr, Data: make([]byte, 512)}}
	answer, err := read.AppendXDR(nil)
	if err != nil {
		t.Fatal(err)
	}
	var into Entryplus3
	var whole READDIRPLUS3res
	buf := make([]byte, 0, 4096)
	for name, f := range map[string]func() error{
		"READDIRPLUS3args": func() error { _, err := args.AppendXDR(buf); return err },
		"one entry":        func() error { _, err := entry.AppendNext(buf); return err },
		"a list by entry": func() error {
			d := xdr.NewDecoder(list)
			for into.Next(&d) {
			}
			return d.Finish()
		},
		"a list into the same slice": func() error {
			d := xdr.NewDecoder(reply)
			return whole.DecodeXDR(&d)
		},
		"READ3res around its data": func() error {
			d := xdr.NewDecoder(answer)
			if _, _, err := read.DecodeHead(&d); err != nil {
				return err
			}
			var tail xdr.Decoder
			return read.DecodeTail(&tail)
		},
	} {
		n := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

func BenchmarkReaddirplusArgsEncode(b *testing.B) {
	args, buf := hotArgs(), make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := args.AppendXDR(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEntryplusEncode(b *testing.B) {
	entry, buf := hotEntry(), make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := entry.AppendNext(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEntryplusDecode takes lists of 100; the time is that of one entry.
func BenchmarkEntryplusDecode(b *testing.B) {
	const n = 100
	list := hotList(b, n)
	var into Entryplus3
	b.ReportAllocs()
	for i := 0; i < b.N; i += n {
		d := xdr.NewDecoder(list)
		for into.Next(&d) {
		}
		if err := d.Finish(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetattrDecode(b *testing.B) {
	reply, err := (&GETATTR3res{Resok: GETATTR3resok{ObjAttributes: attr}}).AppendXDR(nil)
	if err != nil {
		b.Fatal(err)
	}
	var into GETATTR3res
	b.ReportAllocs()
	for b.Loop() {
		d := xdr.NewDecoder(reply)
		if err := into.DecodeXDR(&d); err != nil {
			b.Fatal(err)
		}
	}
}
