package v3_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// pageOf is a page of a READDIR of entries with these cookies, named by them.
func pageOf(eof bool, cookies ...uint64) *nfs3.READDIR3res {
	res := &nfs3.READDIR3res{}
	res.Resok.Cookieverf = nfs3.Cookieverf3{'v'}
	for _, c := range cookies {
		res.Resok.Reply.Entries = append(res.Resok.Reply.Entries, nfs3.Entry3{Fileid: c, Name: fmt.Appendf(nil, "n%d", c), Cookie: c})
	}
	res.Resok.Reply.Eof = eof
	return res
}

// plusOf is the same of a READDIRPLUS.
func plusOf(eof bool, names ...string) *nfs3.READDIRPLUS3res {
	res := &nfs3.READDIRPLUS3res{}
	for i, name := range names {
		res.Resok.Reply.Entries = append(res.Resok.Reply.Entries, nfs3.Entryplus3{
			Fileid:         uint64(i) + 1,
			Name:           []byte(name),
			Cookie:         uint64(i) + 1,
			NameAttributes: sized(uint64(len(name))),
			NameHandle:     nfs3.PostOpFh3{HandleFollows: true, Handle: nfs3.NfsFh3{Data: []byte(name)}},
		})
	}
	res.Resok.Reply.Eof = eof
	return res
}

func (st *stage) list(t testing.TB, from vfs.Pos, want vfs.Mask, maxBytes uint32) (names []string, last vfs.Pos, err error) {
	t.Helper()
	for e, err := range st.fs.ReadDir(t.Context(), handle(t, "dir"), from, want, maxBytes) {
		if err != nil {
			return names, last, err
		}
		if names = append(names, string(e.Name)); len(names) > 1000 {
			t.Fatal("no end of entries")
		}
		last = e.Next
	}
	return names, last, nil
}

// TestReadDirPages goes through pages, and takes up again in the middle of one.
func TestReadDirPages(t *testing.T) {
	st := play(t, script{nfs3.NFSPROC3_READDIR: func(_ int, c *oncrpc.Call) xdr.Appender {
		var args nfs3.READDIR3args
		if args.DecodeXDR(&c.Args) != nil || args.Cookie != 0 && args.Cookieverf != (nfs3.Cookieverf3{'v'}) {
			return &nfs3.READDIR3res{Status: nfs3.NFS3ERR_BAD_COOKIE}
		}
		switch args.Cookie {
		case 0:
			return pageOf(false, 1, 2)
		case 1:
			return pageOf(false, 2, 30)
		case 2:
			return pageOf(false, 30, 4)
		case 30:
			return pageOf(true, 4)
		}
		return pageOf(true)
	}}, v3.Options{})
	all := []string{"n1", "n2", "n30", "n4"}
	names, _, err := st.list(t, vfs.Pos{}, 0, 0)
	if !slices.Equal(names, all) || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	for i, cookie := range []uint64{1, 2, 30, 4} {
		names, _, err := st.list(t, vfs.Pos{Cookie: cookie, Verf: vfs.Verifier{'v'}}, 0, 0)
		if !slices.Equal(names, all[i+1:]) || err != nil {
			t.Errorf("behind %d: %q, %v", cookie, names, err)
		}
	}
	if _, _, err := st.list(t, vfs.Pos{Cookie: 2}, 0, 0); !errors.Is(err, vfs.ErrBadCookie) {
		t.Errorf("with another verifier: %v", err)
	}
	for e, err := range st.fs.ReadDir(t.Context(), handle(t, "dir"), vfs.Pos{}, vfs.MaskFileID, 0) {
		if err != nil || !e.Attr.Has(vfs.MaskFileID) || e.Attr.FileID != 1 || e.FileID != 1 {
			t.Errorf("%+v, %v", e, err)
		}
		break
	}
}

// TestReadDirCircles meets listings that never end.
func TestReadDirCircles(t *testing.T) {
	for name, next := range map[string]func(n int, after uint64) *nfs3.READDIR3res{
		"the same place":   func(_ int, after uint64) *nfs3.READDIR3res { return pageOf(false, 7, after) },
		"the first page":   func(int, uint64) *nfs3.READDIR3res { return pageOf(false, 1, 2) },
		"back to zero":     func(int, uint64) *nfs3.READDIR3res { return pageOf(false, 1, 2, 0) },
		"a late circle":    func(n int, _ uint64) *nfs3.READDIR3res { return pageOf(false, 100+uint64(max(n, 20)%7)) },
		"empty pages":      func(int, uint64) *nfs3.READDIR3res { return pageOf(false) },
		"empty in the end": func(n int, _ uint64) *nfs3.READDIR3res { return pageOf(false, []uint64{5, 6}[:max(0, 3-n)]...) },
	} {
		t.Run(name, func(t *testing.T) {
			st := play(t, script{nfs3.NFSPROC3_READDIR: func(n int, c *oncrpc.Call) xdr.Appender {
				var args nfs3.READDIR3args
				if args.DecodeXDR(&c.Args) != nil {
					return nil
				}
				return next(n, args.Cookie)
			}}, v3.Options{})
			_, _, err := st.list(t, vfs.Pos{}, 0, 0)
			isUntrue(t, err)
			if n := st.called(nfs3.NFSPROC3_READDIR); n > 100 {
				t.Errorf("it took %d pages to notice", n)
			}
		})
	}
}

// TestReadDirBeginsAnew lists a server whose READDIR has no regard for the cookie:
// by READDIRPLUS, each name once.
func TestReadDirBeginsAnew(t *testing.T) {
	st := play(t, script{
		nfs3.NFSPROC3_READDIR: always(pageOf(false, 1, 2)),
		nfs3.NFSPROC3_READDIRPLUS: func(_ int, c *oncrpc.Call) xdr.Appender {
			var args nfs3.READDIRPLUS3args
			if args.DecodeXDR(&c.Args) != nil {
				return nil
			}
			all := plusOf(true, "n1", "n2", "n3", "n4", "n5")
			rest := &all.Resok.Reply
			rest.Entries = rest.Entries[args.Cookie:]
			if len(rest.Entries) > 2 {
				rest.Entries, rest.Eof = rest.Entries[:2], false
			}
			return all
		},
	}, v3.Options{})
	names, _, err := st.list(t, vfs.Pos{}, vfs.MaskFileID, 0)
	if !slices.Equal(names, []string{"n1", "n2", "n3", "n4", "n5"}) || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	if n := st.called(nfs3.NFSPROC3_READDIR); n != 2 {
		t.Errorf("READDIR was called %d times", n)
	}
}

// TestReadDirTooSmall asks for larger pages, up to a bound, unless the caller
// has said how large.
func TestReadDirTooSmall(t *testing.T) {
	var enough uint32
	st := play(t, script{nfs3.NFSPROC3_READDIR: func(_ int, c *oncrpc.Call) xdr.Appender {
		var args nfs3.READDIR3args
		if args.DecodeXDR(&c.Args) != nil || args.Count < enough {
			return &nfs3.READDIR3res{Status: nfs3.NFS3ERR_TOOSMALL}
		}
		return pageOf(true, 1)
	}}, v3.Options{MaxCount: 8192})
	enough = 50000
	if names, _, err := st.list(t, vfs.Pos{}, 0, 0); len(names) != 1 || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	if _, _, err := st.list(t, vfs.Pos{}, 0, 8192); !errors.Is(err, vfs.ErrTooSmall) {
		t.Errorf("with a size: %v", err)
	}
	enough = 1 << 30
	if _, _, err := st.list(t, vfs.Pos{}, 0, 0); !errors.Is(err, vfs.ErrTooSmall) {
		t.Errorf("endless growth: %v", err)
	}
	enough = 1000
	if _, _, err := st.list(t, vfs.Pos{}, 0, 1); err != nil {
		t.Errorf("a page of one byte: %v", err)
	}
}

// TestReadDirPlus has handles, attributes, and names as they come.
func TestReadDirPlus(t *testing.T) {
	names := []string{".", "..", "a", "../x", "", "nul\x00", "\xff", strings.Repeat("x", 60)}
	page := plusOf(true, names...)
	page.Resok.Reply.Entries[2].NameHandle.Handle.Data = nil
	page.Resok.Reply.Entries[3].NameAttributes.AttributesFollow = false
	st := play(t, script{nfs3.NFSPROC3_READDIRPLUS: always(page)}, v3.Options{})
	i := 2
	for e, err := range st.fs.ReadDir(t.Context(), handle(t, "dir"), vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if string(e.Name) != names[i] || e.FileID != uint64(i)+1 || e.Next.Cookie != uint64(i)+1 {
			t.Errorf("%q, want %q: %+v", e.Name, names[i], e)
		}
		if sent := i != 3; e.Attr.Has(vfs.MaskV3) != sent || sent && e.Attr.Size != uint64(len(names[i])) {
			t.Errorf("%q: %+v", e.Name, e.Attr)
		}
		if sent := i != 2 && names[i] != ""; e.Handle.IsZero() == sent || sent && string(e.Handle.Bytes()) != names[i] {
			t.Errorf("%q: handle %v", e.Name, e.Handle)
		}
		i++
	}
	if i != len(names) {
		t.Errorf("%d entries", i)
	}
}

// TestReadDirWithoutPlus goes on by READDIR, and does not ask again.
func TestReadDirWithoutPlus(t *testing.T) {
	for name, plus := range map[string]func(int, *oncrpc.Call) xdr.Appender{
		"NOTSUPP":      always(&nfs3.READDIRPLUS3res{Status: nfs3.NFS3ERR_NOTSUPP}),
		"PROC_UNAVAIL": nil,
	} {
		t.Run(name, func(t *testing.T) {
			st := play(t, script{nfs3.NFSPROC3_READDIRPLUS: plus, nfs3.NFSPROC3_READDIR: always(pageOf(true, 1, 2))}, v3.Options{})
			for range 2 {
				if names, _, err := st.list(t, vfs.Pos{}, vfs.MaskV3, 0); len(names) != 2 || err != nil {
					t.Errorf("%q, %v", names, err)
				}
			}
			if n := st.called(nfs3.NFSPROC3_READDIRPLUS); plus != nil && n != 1 {
				t.Errorf("READDIRPLUS was called %d times", n)
			}
		})
	}
}

// TestReadDirCut delivers nothing of a page that was cut.
func TestReadDirCut(t *testing.T) {
	full, err := pageOf(true, 1, 2).AppendXDR(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := 4; n < len(full); n += 4 {
		st := play(t, script{nfs3.NFSPROC3_READDIR: always(raw(full[:n]))}, v3.Options{})
		if names, _, err := st.list(t, vfs.Pos{}, 0, 0); err == nil || len(names) > 0 {
			t.Errorf("cut at %d: %q, %v", n, names, err)
		}
	}
	st := play(t, script{nfs3.NFSPROC3_READDIR: always(raw(append(full, 0, 0, 0, 0)))}, v3.Options{})
	_, _, err = st.list(t, vfs.Pos{}, 0, 0)
	isUntrue(t, err)
}

// TestReadDirMemory lists a directory of many pages with the garbage of few:
// what is allocated does not grow with the number of entries.
func TestReadDirMemory(t *testing.T) {
	const perPage = 500
	names := make([]string, perPage)
	for i := range names {
		names[i] = fmt.Sprintf("file-%06d", i)
	}
	var pages int
	res := plusOf(false, names...)
	st := play(t, script{nfs3.NFSPROC3_READDIRPLUS: func(_ int, c *oncrpc.Call) xdr.Appender {
		var args nfs3.READDIRPLUS3args
		if args.DecodeXDR(&c.Args) != nil {
			return nil
		}
		for i := range res.Resok.Reply.Entries {
			res.Resok.Reply.Entries[i].Cookie = args.Cookie + uint64(i) + 1
		}
		res.Resok.Reply.Eof = args.Cookie >= uint64(pages-1)*perPage
		return res
	}}, v3.Options{})
	dir := handle(t, "dir")
	list := func(n int) float64 {
		pages = n
		return testing.AllocsPerRun(3, func() {
			entries := 0
			for _, err := range st.fs.ReadDir(t.Context(), dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
				if err != nil {
					t.Fatal(err)
				}
				entries++
			}
			if entries != n*perPage {
				t.Fatalf("%d entries, want %d", entries, n*perPage)
			}
		})
	}
	few, many := list(2), list(42)
	// Client and server together allocate some for each call, and nothing for
	// each of the 500 entries in it.
	if perCall := (many - few) / 40; perCall > 60 {
		t.Errorf("%.0f allocations for each further page", perCall)
	} else {
		t.Logf("%.1f allocations for each further page of %d entries, the server's included", perCall, perPage)
	}
}
