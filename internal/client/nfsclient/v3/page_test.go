package v3

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// FuzzPage goes over pages of listings. What scan lets pass, and nothing else, is
// what the generated decoders find well formed, and it is delivered without an
// error.
func FuzzPage(f *testing.F) {
	res := nfs3.READDIRPLUS3res{}
	res.Resok.Reply.Entries = []nfs3.Entryplus3{
		{Name: []byte("a"), Cookie: 1, NameAttributes: nfs3.PostOpAttr{AttributesFollow: true}},
		{Name: []byte(".."), Cookie: 2, NameHandle: nfs3.PostOpFh3{HandleFollows: true, Handle: nfs3.NfsFh3{Data: []byte("12345")}}},
	}
	plus, err := res.AppendXDR(nil)
	if err != nil {
		f.Fatal(err)
	}
	plain, err := (&nfs3.READDIR3res{Resok: nfs3.READDIR3resok{Reply: nfs3.Dirlist3{
		Entries: []nfs3.Entry3{{Name: []byte("abcde"), Cookie: 7}}, Eof: true,
	}}}).AppendXDR(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plus, true)
	f.Add(plain, false)
	f.Add(plus[:40], false)
	f.Fuzz(func(t *testing.T, b []byte, plus bool) {
		p := &page{plus: plus}
		d := xdr.NewDecoder(b)
		if p.DecodeXDR(&d) != nil || p.status != nfs3.NFS3_OK {
			return
		}
		names, last, eof, err := decodePage(b, plus)
		if scanned := p.scan(); (scanned == nil) != (err == nil) {
			t.Fatalf("scan says %v, the decoders say %v", scanned, err)
		}
		if err != nil {
			return
		}
		if p.entries != len(names) || p.eof != eof || p.entries > 0 && p.last != last {
			t.Fatalf("%d entries up to %d, eof %v; want %d, %d, %v", p.entries, p.last, p.eof, len(names), last, eof)
		}
		p.eof = true // nobody is there who could be asked for more
		l := &listing{want: vfs.MaskV3 | vfs.MaskHandle, yield: func(e *vfs.Entry, err error) bool {
			for len(names) > 0 && (names[0] == "." || names[0] == "..") {
				names = names[1:]
			}
			if err != nil || len(names) == 0 || string(e.Name) != names[0] {
				t.Fatalf("%q, %v", e.Name, err)
			}
			names = names[1:]
			return true
		}}
		if !l.page(p) {
			t.Fatal(l.err)
		}
		for _, name := range names {
			if name != "." && name != ".." {
				t.Fatalf("%q was not delivered", name)
			}
		}
	})
}

// decodePage is what the generated decoders find in a page.
func decodePage(b []byte, plus bool) (names []string, last uint64, eof bool, err error) {
	d := xdr.NewDecoder(b)
	if !plus {
		var res nfs3.READDIR3res
		err = errors.Join(res.DecodeXDR(&d), d.Finish())
		for _, e := range res.Resok.Reply.Entries {
			names, last = append(names, string(e.Name)), e.Cookie
		}
		return names, last, res.Resok.Reply.Eof, err
	}
	var res nfs3.READDIRPLUS3res
	err = errors.Join(res.DecodeXDR(&d), d.Finish())
	for _, e := range res.Resok.Reply.Entries {
		names, last = append(names, string(e.Name)), e.Cookie
	}
	return names, last, res.Resok.Reply.Eof, err
}

// TestLoopGuard finds circles of every size, wherever they begin, and none where
// there is none.
func TestLoopGuard(t *testing.T) {
	for _, start := range []uint64{0, 1, 5, 100} {
		for _, size := range []uint64{1, 2, 3, 7, 50} {
			var g loopGuard
			found := false
			for i := uint64(1); i < 4*(start+size)+8 && !found; i++ {
				at := i
				if i > start {
					at = start + 1 + (i-start-1)%size
				}
				found = g.back(at)
				if found && i <= start+size {
					t.Errorf("start %d, size %d: found at %d, before there was one", start, size, i)
				}
			}
			if !found {
				t.Errorf("start %d, size %d: not found", start, size)
			}
		}
	}
	var g loopGuard
	for i := range uint64(100000) {
		if g.back(i + 1) {
			t.Fatalf("found at %d, and there is none", i)
		}
	}
}
