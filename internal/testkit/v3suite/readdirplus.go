package v3suite

import (
	"fmt"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

var readdirplusTests = []test{
	{name: "every-page-size", run: func(e *env) {
		want := e.manyNames(e.dir)
		for count := uint32(smallPage); count <= 128<<10; count += count/2 + 1 {
			e.sameNames(fmt.Sprintf("READDIRPLUS by %d bytes", count), e.listPlus(e.dir, count, count), want)
		}
	}},
	{name: "dircount", run: func(e *env) {
		want := e.manyNames(e.dir)
		for _, dircount := range []uint32{512, 1000, 4096} {
			e.sameNames(fmt.Sprintf("READDIRPLUS with dircount %d", dircount), e.listPlus(e.dir, dircount, 32<<10), want)
		}
	}},
	{name: "attributes-and-handles", run: func(e *env) {
		made := map[string]handle{
			"f": e.file(e.dir, "f", "x"), "d": e.mustMkdir(e.dir, "d"), "l": e.mustSymlink(e.dir, "l", "f"),
			".": e.dir, "..": e.suite.dir,
		}
		res := e.readdirplus(nfs3.READDIRPLUS3args{Dir: fh(e.dir), Dircount: 4096, Maxcount: 16384})
		e.ok(res.Status)
		e.post("READDIRPLUS", &res.Resok.DirAttributes, e.dir)
		seen := 0
		for _, entry := range res.Resok.Reply.Entries {
			name := string(entry.Name)
			seen++
			h := made[name]
			if h == nil {
				e.Errorf("an entry %q", name)
				continue
			}
			if id := e.attr(h).Fileid; entry.Fileid != id {
				e.Errorf("%q: file id %d, GETATTR says %d", name, entry.Fileid, id)
			}
			if entry.NameHandle.HandleFollows {
				e.same(name, entry.NameHandle.Handle.Data, h)
			}
			e.postIfAny("entry "+name, &entry.NameAttributes, h)
			if name != "." && name != ".." && !(entry.NameHandle.HandleFollows && entry.NameAttributes.AttributesFollow) {
				e.Errorf("%q: handle %v, attributes %v", name, entry.NameHandle.HandleFollows, entry.NameAttributes.AttributesFollow)
			}
		}
		if seen < 3 || !res.Resok.Reply.Eof {
			e.Errorf("%d entries, eof %v", seen, res.Resok.Reply.Eof)
		}
	}},
	{name: "too-small", run: func(e *env) {
		e.file(e.dir, name(255), "")
		for _, count := range []uint32{0, 1, 100} {
			res := e.readdirplus(nfs3.READDIRPLUS3args{Dir: fh(e.dir), Dircount: count, Maxcount: count})
			e.gotStatus(res.Status, nfs3.NFS3ERR_TOOSMALL)
			e.postIfAny("a failed READDIRPLUS", &res.Resfail.DirAttributes, e.dir)
		}
	}},
	{name: "cookies-of-either", run: func(e *env) {
		// A client may begin with one procedure and go on with the other.
		want := e.manyNames(e.dir)
		res := e.readdir(nfs3.READDIR3args{Dir: fh(e.dir), Count: smallPage})
		e.ok(res.Status)
		found := make(map[string]uint64)
		args := nfs3.READDIRPLUS3args{Dir: fh(e.dir), Dircount: 32 << 10, Maxcount: 32 << 10, Cookieverf: res.Resok.Cookieverf}
		for _, entry := range res.Resok.Reply.Entries {
			e.found(found, entry.Name, entry.Fileid)
			args.Cookie = entry.Cookie
		}
		e.goOnPlus(args, found)
		e.sameNames("READDIR, then READDIRPLUS", found, want)
	}},
	{name: "bad-cookie", run: func(e *env) {
		e.manyNames(e.dir)
		res := e.readdirplus(nfs3.READDIRPLUS3args{
			Dir: fh(e.dir), Dircount: 4096, Maxcount: 4096, Cookie: 1<<64 - 1, Cookieverf: nfs3.Cookieverf3{1, 2, 3},
		})
		e.gotStatus(res.Status, nfs3.NFS3ERR_BAD_COOKIE, nfs3.NFS3_OK, nfs3.NFS3ERR_INVAL)
	}},
}

func (e *env) listPlus(dir handle, dircount, maxcount uint32) map[string]uint64 {
	found := make(map[string]uint64)
	e.goOnPlus(nfs3.READDIRPLUS3args{Dir: fh(dir), Dircount: dircount, Maxcount: maxcount}, found)
	return found
}

// goOnPlus lists from a cookie to the end.
func (e *env) goOnPlus(args nfs3.READDIRPLUS3args, found map[string]uint64) {
	for range maxPages {
		res := e.readdirplus(args)
		e.ok(res.Status)
		e.withinBytes("READDIRPLUS", &res.Resok, args.Maxcount)
		names := 0
		for i, entry := range res.Resok.Reply.Entries {
			e.found(found, entry.Name, entry.Fileid)
			args.Cookie = entry.Cookie
			// fileid, name and cookie. One entry always goes: a page without any
			// would be the end.
			names += 8 + 4 + len(entry.Name) + xdr.Pad(len(entry.Name)) + 8
			if i > 0 && names > int(args.Dircount) {
				e.Fatalf("READDIRPLUS: %d bytes of names, asked for at most %d", names, args.Dircount)
			}
		}
		if res.Resok.Reply.Eof {
			return
		}
		if len(res.Resok.Reply.Entries) == 0 {
			e.Fatalf("READDIRPLUS of %d bytes: a page without entries that is not the last", args.Maxcount)
		}
		args.Cookieverf = res.Resok.Cookieverf
	}
	e.Fatalf("READDIRPLUS comes to no end in %d pages", maxPages)
}
