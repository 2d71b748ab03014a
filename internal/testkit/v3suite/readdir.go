package v3suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	// maxPages bounds a listing: a server that never comes to an end fails.
	maxPages = 10_000

	// smallPage holds the largest entry that there can be, of either procedure.
	smallPage = 1024
)

var readdirTests = []test{
	{name: "empty", run: func(e *env) {
		res := e.readdir(nfs3.READDIR3args{Dir: fh(e.dir), Count: 4096})
		e.ok(res.Status)
		e.post("READDIR", &res.Resok.DirAttributes, e.dir)
		for _, entry := range res.Resok.Reply.Entries {
			if s := string(entry.Name); s != "." && s != ".." {
				e.Errorf("an entry %q in an empty directory", s)
			}
		}
		if !res.Resok.Reply.Eof {
			e.Errorf("an empty directory without an end")
		}
	}},
	{name: "every-page-size", run: func(e *env) {
		want := e.manyNames(e.dir)
		for count := uint32(smallPage); count <= 64<<10; count += count/3 + 1 {
			e.sameNames(fmt.Sprintf("READDIR by %d bytes", count), e.list(e.dir, count), want)
		}
	}},
	{name: "file-ids", run: func(e *env) {
		want := e.manyNames(e.dir)
		list := e.list(e.dir, 8192)
		for name, h := range want {
			if id := e.attr(h).Fileid; list[name] != id {
				e.Errorf("%.20q: file id %d, GETATTR says %d", name, list[name], id)
			}
		}
		if id, listed := list["."]; listed && id != e.attr(e.dir).Fileid {
			e.Errorf("file id %d of \".\", GETATTR says %d", id, e.attr(e.dir).Fileid)
		}
		if id, listed := list[".."]; listed && id != e.attr(e.suite.dir).Fileid {
			e.Errorf("file id %d of \"..\", GETATTR says %d", id, e.attr(e.suite.dir).Fileid)
		}
	}},
	{name: "too-small", run: func(e *env) {
		e.file(e.dir, name(255), "")
		for _, count := range []uint32{0, 1, 16, 100} {
			res := e.readdir(nfs3.READDIR3args{Dir: fh(e.dir), Count: count})
			e.gotStatus(res.Status, nfs3.NFS3ERR_TOOSMALL)
			e.postIfAny("a failed READDIR", &res.Resfail.DirAttributes, e.dir)
		}
	}},
	{name: "behind-the-end", run: func(e *env) {
		e.file(e.dir, "f", "")
		res := e.readdir(nfs3.READDIR3args{Dir: fh(e.dir), Count: 4096})
		e.ok(res.Status)
		entries := res.Resok.Reply.Entries
		res = e.readdir(nfs3.READDIR3args{Dir: fh(e.dir), Count: 4096,
			Cookie: entries[len(entries)-1].Cookie, Cookieverf: res.Resok.Cookieverf})
		e.ok(res.Status)
		if n := len(res.Resok.Reply.Entries); n != 0 || !res.Resok.Reply.Eof {
			e.Errorf("behind the last cookie: %d entries, eof %v", n, res.Resok.Reply.Eof)
		}
	}},
	{name: "goes-on-after-removal", run: func(e *env) { e.removeWhileListing(1) }},
	{name: "goes-on-behind-removed", run: func(e *env) { e.removeWhileListing(-1) }},
	{name: "bad-cookie", run: func(e *env) {
		e.manyNames(e.dir)
		// Not every server can tell a cookie that never was.
		res := e.readdir(nfs3.READDIR3args{Dir: fh(e.dir), Count: 4096, Cookie: 1<<64 - 1, Cookieverf: nfs3.Cookieverf3{1, 2, 3}})
		e.gotStatus(res.Status, nfs3.NFS3ERR_BAD_COOKIE, nfs3.NFS3_OK, nfs3.NFS3ERR_INVAL)
	}},
}

func name(n int) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	return strings.Repeat(digits, n/len(digits)+1)[:n]
}

// manyNames makes files with names of all lengths, and returns their handles.
func (e *env) manyNames(dir handle) map[string]handle {
	made := make(map[string]handle)
	for n := 1; n <= 255; n += 1 + n/16 {
		made[name(n)] = e.file(dir, name(n), "")
	}
	return made
}

func (e *env) list(dir handle, count uint32) map[string]uint64 {
	found := make(map[string]uint64)
	args := nfs3.READDIR3args{Dir: fh(dir), Count: count}
	for range maxPages {
		res := e.readdir(args)
		e.ok(res.Status)
		e.withinBytes("READDIR", &res.Resok, count)
		list := &res.Resok.Reply
		for _, entry := range list.Entries {
			e.found(found, entry.Name, entry.Fileid)
			args.Cookie = entry.Cookie
		}
		if list.Eof {
			return found
		}
		if len(list.Entries) == 0 {
			e.Fatalf("READDIR of %d bytes: a page without entries that is not the last", count)
		}
		args.Cookieverf = res.Resok.Cookieverf
	}
	e.Fatalf("READDIR comes to no end in %d pages", maxPages)
	return nil
}

func (e *env) found(all map[string]uint64, name []byte, id uint64) {
	if _, twice := all[string(name)]; twice {
		e.Errorf("%.40q is listed twice", name)
	}
	all[string(name)] = id
}

// withinBytes checks the size of a result as it went over the wire.
func (e *env) withinBytes(what string, resok xdr.Appender, limit uint32) {
	b, err := resok.AppendXDR(nil)
	if err != nil {
		e.Fatalf("%s: %v", what, err)
	}
	if len(b) > int(limit) {
		e.Errorf("%s: %d bytes, asked for at most %d", what, len(b), limit)
	}
}

func (e *env) sameNames(what string, got map[string]uint64, want map[string]handle) {
	delete(got, ".")
	delete(got, "..")
	for name := range want {
		if _, listed := got[name]; !listed {
			e.Errorf("%s: %.20q (%d bytes) is missing", what, name, len(name))
		}
	}
	if len(got) > len(want) {
		e.Errorf("%s: %d entries, want %d", what, len(got), len(want))
	}
}

// removeWhileListing reads one page, removes a name of it (counted from the
// front, or the back: that one's cookie is where the listing goes on), and then
// all others must still be found, each once.
func (e *env) removeWhileListing(which int) {
	want := e.manyNames(e.dir)
	first := e.readdir(nfs3.READDIR3args{Dir: fh(e.dir), Count: smallPage})
	e.ok(first.Status)
	entries := slices.Clone(first.Resok.Reply.Entries)
	found := make(map[string]uint64)
	for _, entry := range entries {
		e.found(found, entry.Name, entry.Fileid)
	}
	at := len(entries) - 1
	if which > 0 {
		at = slices.IndexFunc(entries, func(x nfs3.Entry3) bool { return want[string(x.Name)] != nil })
	}
	if at < 0 || want[string(entries[at].Name)] == nil {
		e.Fatalf("a page of %d bytes has none of the files: %q", smallPage, slices.Collect(maps.Keys(found)))
	}
	e.ok(e.remove(e.dir, string(entries[at].Name)).Status)
	args := nfs3.READDIR3args{Dir: fh(e.dir), Count: 2048, Cookie: entries[len(entries)-1].Cookie, Cookieverf: first.Resok.Cookieverf}
	for range maxPages {
		res := e.readdir(args)
		e.ok(res.Status)
		for _, entry := range res.Resok.Reply.Entries {
			e.found(found, entry.Name, entry.Fileid)
			args.Cookie = entry.Cookie
		}
		if res.Resok.Reply.Eof {
			e.sameNames("READDIR during a REMOVE", found, want)
			return
		}
		args.Cookieverf = res.Resok.Cookieverf
	}
	e.Fatalf("READDIR comes to no end in %d pages", maxPages)
}
