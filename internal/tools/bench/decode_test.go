package bench

import (
	"testing"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

// FuzzListPage decodes any bytes without trouble, and counts no more entries
// than they can hold.
func FuzzListPage(f *testing.F) {
	var plus nfs3.READDIRPLUS3res
	plus.Resok.Reply.Entries = []nfs3.Entryplus3{{Fileid: 1, Name: []byte("."), Cookie: 1}, {Fileid: 2, Name: []byte("x"), Cookie: 2}}
	plus.Resok.Reply.Eof = true
	var names nfs3.READDIR3res
	names.Resok.Reply.Entries = []nfs3.Entry3{{Fileid: 1, Name: []byte(".."), Cookie: 7}}
	for _, seed := range []xdr.Appender{&plus, &names, &nfs3.READDIRPLUS3res{Status: nfs3.NFS3ERR_IO}} {
		b, err := seed.AppendXDR(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, seed == xdr.Appender(&names))
	}
	f.Fuzz(func(t *testing.T, b []byte, names bool) {
		var d xdr.Decoder
		d.Reset(b)
		p := listPage{names: names}
		if err := p.DecodeXDR(&d); err != nil {
			return
		}
		if p.entries > uint64(len(b))/24 || p.dots > p.entries {
			t.Errorf("%d entries, %d of them dots, in %d bytes", p.entries, p.dots, len(b))
		}
	})
}

// TestListPage counts entries, but not those that every directory has.
func TestListPage(t *testing.T) {
	var res nfs3.READDIRPLUS3res
	res.Resok.Cookieverf = nfs3.Cookieverf3{9}
	res.Resok.Reply.Entries = []nfs3.Entryplus3{
		{Fileid: 1, Name: []byte("."), Cookie: 1}, {Fileid: 2, Name: []byte(".."), Cookie: 2}, {Fileid: 3, Name: []byte("..."), Cookie: 30},
	}
	b, err := res.AppendXDR(nil)
	if err != nil {
		t.Fatal(err)
	}
	var d xdr.Decoder
	d.Reset(b)
	var p listPage
	if err := p.DecodeXDR(&d); err != nil || p.entries != 3 || p.dots != 2 || p.cookie != 30 || p.eof || p.verf != (nfs3.Cookieverf3{9}) {
		t.Errorf("%+v, %v", p, err)
	}
}
