package server

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// listed is an entry as either procedure sends it.
type listed struct {
	name   string
	cookie uint64
	fileid uint64
	attr   nfs3.PostOpAttr
	handle []byte
}

// page is what one call answered.
type page struct {
	status  nfs3.Nfsstat3
	dir     nfs3.PostOpAttr
	verf    [8]byte
	eof     bool
	entries []listed
	size    int // of the result, without the status
	names   int // what READDIRPLUS counts as information on names
}

func (r *rig) readdir(dir []byte, cookie uint64, verf [8]byte, count uint32) (p page) {
	r.t.Helper()
	var res nfs3.READDIR3res
	r.call(nfs3.NFSPROC3_READDIR, &nfs3.READDIR3args{Dir: fh(dir), Cookie: cookie, Cookieverf: verf, Count: count}, &res)
	if p.status = res.Status; p.status != nfs3.NFS3_OK {
		p.dir = res.Resfail.DirAttributes
		return p
	}
	p.dir, p.verf, p.eof = res.Resok.DirAttributes, res.Resok.Cookieverf, res.Resok.Reply.Eof
	for _, e := range res.Resok.Reply.Entries {
		p.entries = append(p.entries, listed{name: string(e.Name), cookie: e.Cookie, fileid: e.Fileid})
	}
	b, err := res.Resok.AppendXDR(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	p.size = len(b)
	return p
}

func (r *rig) readdirplus(dir []byte, cookie uint64, verf [8]byte, dircount, maxcount uint32) (p page) {
	r.t.Helper()
	var res nfs3.READDIRPLUS3res
	r.call(nfs3.NFSPROC3_READDIRPLUS, &nfs3.READDIRPLUS3args{
		Dir: fh(dir), Cookie: cookie, Cookieverf: verf, Dircount: dircount, Maxcount: maxcount,
	}, &res)
	if p.status = res.Status; p.status != nfs3.NFS3_OK {
		p.dir = res.Resfail.DirAttributes
		return p
	}
	p.dir, p.verf, p.eof = res.Resok.DirAttributes, res.Resok.Cookieverf, res.Resok.Reply.Eof
	for _, e := range res.Resok.Reply.Entries {
		p.entries = append(p.entries, listed{string(e.Name), e.Cookie, e.Fileid, e.NameAttributes, e.NameHandle.Handle.Data})
		p.names += 8 + 4 + (len(e.Name)+3)&^3 + 8
	}
	b, err := res.Resok.AppendXDR(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	p.size = len(b)
	return p
}

// all lists dir to its end, page by page, and returns the entries.
func (r *rig) all(one func(cookie uint64, verf [8]byte) page) (out []listed) {
	r.t.Helper()
	var cookie uint64
	var verf [8]byte
	for range 10_000 {
		p := one(cookie, verf)
		if p.status != nfs3.NFS3_OK {
			r.t.Fatalf("behind cookie %d: %v", cookie, p.status)
		}
		if !p.dir.AttributesFollow {
			r.t.Fatal("a page without attributes of the directory")
		}
		out = append(out, p.entries...)
		if p.eof {
			return out
		}
		if len(p.entries) == 0 {
			r.t.Fatal("an empty page that is not the last")
		}
		cookie, verf = p.entries[len(p.entries)-1].cookie, p.verf
	}
	r.t.Fatal("the listing does not end")
	return nil
}

func names(l []listed) (out []string) {
	for _, e := range l {
		out = append(out, e.name)
	}
	return out
}

// fill makes n files, with names of all lengths, and returns what a listing shows.
func (r *rig) fill(n int) []string {
	want := []string{".", ".."}
	for i := range n {
		name := fmt.Sprintf("%03d", i) + strings.Repeat("n", i*7%250)
		r.put("/"+name, nil)
		want = append(want, name)
	}
	return want
}

// TestReaddirEverySize lists a directory in pages of every size. No result is
// larger than asked for, and every entry comes once.
func TestReaddirEverySize(t *testing.T) {
	r := newRig(t, memfs.Options{})
	want := r.fill(40)
	for count := uint32(0); count < 3000; count += 1 + count/100 {
		p := r.readdir(r.root, 0, [8]byte{}, count)
		if p.status == nfs3.NFS3ERR_TOOSMALL {
			if count > 140 {
				t.Fatalf("count %d is said to be too small for %q", count, ".")
			}
			continue
		}
		if count < 400 {
			continue // some name in the middle does not fit
		}
		got := r.all(func(cookie uint64, verf [8]byte) page {
			p := r.readdir(r.root, cookie, verf, count)
			if p.size > int(count) {
				t.Fatalf("a result of %d bytes, %d were asked for", p.size, count)
			}
			return p
		})
		if !slices.Equal(names(got), want) {
			t.Fatalf("count %d: %q", count, names(got))
		}
	}
}

// TestReaddirTooSmall meets, in the middle of a listing, a name for which the
// client's limit is too small.
func TestReaddirTooSmall(t *testing.T) {
	r := newRig(t, memfs.Options{})
	r.put("/a", nil)
	r.put("/"+strings.Repeat("l", 255), nil)
	p := r.readdir(r.root, 0, [8]byte{}, 300)
	r.status(p.status, nfs3.NFS3_OK)
	if got := names(p.entries); p.eof || !slices.Equal(got, []string{".", "..", "a"}) {
		t.Fatalf("the first page: %q, eof %v", got, p.eof)
	}
	p = r.readdir(r.root, p.entries[2].cookie, p.verf, 300)
	r.status(p.status, nfs3.NFS3ERR_TOOSMALL)
	r.post(&p.dir, r.root)
}

// TestReaddirplusEverySize is the same with both of READDIRPLUS's limits.
func TestReaddirplusEverySize(t *testing.T) {
	r := newRig(t, memfs.Options{})
	want := r.fill(40)
	for _, dircount := range []uint32{0, 1, 50, 300, 1000, 100_000} {
		for maxcount := uint32(600); maxcount < 4000; maxcount += 113 {
			got := r.all(func(cookie uint64, verf [8]byte) page {
				p := r.readdirplus(r.root, cookie, verf, dircount, maxcount)
				if p.size > int(maxcount) {
					t.Fatalf("a result of %d bytes, %d were asked for", p.size, maxcount)
				}
				if len(p.entries) > 1 && p.names > int(dircount) {
					t.Fatalf("%d bytes of names, %d were asked for", p.names, dircount)
				}
				return p
			})
			if !slices.Equal(names(got), want) {
				t.Fatalf("dircount %d, maxcount %d: %q", dircount, maxcount, names(got))
			}
		}
	}
	r.status(r.readdirplus(r.root, 0, [8]byte{}, 1000, 50).status, nfs3.NFS3ERR_TOOSMALL)
}

// TestReaddirCookies goes on behind each entry in turn, as seekdir(3) does, and
// finds exactly what followed it.
func TestReaddirCookies(t *testing.T) {
	r := newRig(t, memfs.Options{})
	want := r.fill(10)
	whole := r.readdir(r.root, 0, [8]byte{}, 1<<20)
	r.status(whole.status, nfs3.NFS3_OK)
	if !whole.eof || !slices.Equal(names(whole.entries), want) {
		t.Fatalf("%q, eof %v", names(whole.entries), whole.eof)
	}
	seen := map[uint64]bool{0: true}
	for i, e := range whole.entries {
		if seen[e.cookie] {
			t.Errorf("%q has cookie %d, as another has", e.name, e.cookie)
		}
		seen[e.cookie] = true
		rest := r.readdir(r.root, e.cookie, whole.verf, 1<<20)
		r.status(rest.status, nfs3.NFS3_OK)
		if !rest.eof || !slices.Equal(names(rest.entries), want[i+1:]) {
			t.Errorf("behind %q: %q, eof %v", e.name, names(rest.entries), rest.eof)
		}
	}
}

func TestReaddirBadCookie(t *testing.T) {
	r := newRig(t, memfs.Options{})
	r.fill(3)
	p := r.readdir(r.root, 0, [8]byte{}, 4096)
	verf := p.verf
	verf[0]++
	r.status(r.readdir(r.root, p.entries[2].cookie, verf, 4096).status, nfs3.NFS3ERR_BAD_COOKIE)
	bad := r.readdir(r.root, 1<<63, p.verf, 4096)
	r.status(bad.status, nfs3.NFS3ERR_BAD_COOKIE)
	r.post(&bad.dir, r.root)
	r.status(r.readdirplus(r.root, 1<<63, p.verf, 4096, 4096).status, nfs3.NFS3ERR_BAD_COOKIE)
}

func TestReaddirFails(t *testing.T) {
	r := newRig(t, memfs.Options{})
	f := r.file(r.root, "f", 0o644, "")
	closed := r.dir(r.root, "closed", 0o700)
	for h, want := range map[string]nfs3.Nfsstat3{string(f): nfs3.NFS3ERR_NOTDIR, string(closed): nfs3.NFS3ERR_ACCES} {
		r.as(alice).status(r.readdir([]byte(h), 0, [8]byte{}, 4096).status, want)
		p := r.readdirplus([]byte(h), 0, [8]byte{}, 4096, 4096)
		r.status(p.status, want)
		r.post(&p.dir, []byte(h))
	}
}

// TestReaddirplusEntries compares every entry with LOOKUP and GETATTR.
func TestReaddirplusEntries(t *testing.T) {
	r := newRig(t, memfs.Options{})
	d := r.dir(r.root, "d", 0o755)
	r.file(d, "f", 0o640, "hello")
	r.dir(d, "sub", 0o700)
	r.status(r.symlink(d, "l", "f").Status, nfs3.NFS3_OK)
	r.readdir(d, 0, [8]byte{}, 8192) // moves the access time, which then stays
	p := r.readdirplus(d, 0, [8]byte{}, 8192, 8192)
	r.status(p.status, nfs3.NFS3_OK)
	if !slices.Equal(names(p.entries), []string{".", "..", "f", "sub", "l"}) {
		t.Fatalf("%q", names(p.entries))
	}
	for _, e := range p.entries {
		h := r.find(d, e.name)
		if string(h) != string(e.handle) {
			t.Errorf("%q: another handle than LOOKUP's", e.name)
		}
		r.post(&e.attr, h)
		if e.fileid != e.attr.Attributes.Fileid {
			t.Errorf("%q: fileid %d, attributes say %d", e.name, e.fileid, e.attr.Attributes.Fileid)
		}
	}
	plain := r.readdir(d, 0, [8]byte{}, 8192)
	for i, e := range plain.entries {
		if e.name != p.entries[i].name || e.fileid != p.entries[i].fileid || e.cookie != p.entries[i].cookie {
			t.Errorf("READDIR sends %+v, READDIRPLUS %+v", e, p.entries[i])
		}
	}
}

// TestReaddirEmpty lists a directory without entries, also behind "..".
func TestReaddirEmpty(t *testing.T) {
	r := newRig(t, memfs.Options{})
	p := r.readdir(r.root, 0, [8]byte{}, 512)
	if !p.eof || !slices.Equal(names(p.entries), []string{".", ".."}) {
		t.Errorf("%q, eof %v", names(p.entries), p.eof)
	}
	if p := r.readdir(r.root, 2, [8]byte{}, 512); !p.eof || len(p.entries) != 0 {
		t.Errorf("behind ..: %q, eof %v", names(p.entries), p.eof)
	}
}

// TestReaddirDotDotUnreachable lists a directory in which the caller may not look
// names up: ".." comes without handle and attributes.
func TestReaddirDotDotUnreachable(t *testing.T) {
	r := newRig(t, memfs.Options{})
	d := r.dir(r.root, "d", 0o744)
	p := r.as(alice).readdirplus(d, 0, [8]byte{}, 4096, 4096)
	r.status(p.status, nfs3.NFS3_OK)
	if len(p.entries) != 2 || p.entries[1].attr.AttributesFollow || p.entries[1].handle != nil {
		t.Errorf("entries %+v", p.entries)
	}
}

// oddFS lists what no healthy file system lists.
type oddFS struct {
	vfs.FS
	entries []vfs.Entry
	err     error // behind them
}

func (f *oddFS) As(c *vfs.Caller) vfs.FS {
	return &oddFS{FS: f.FS.As(c), entries: f.entries, err: f.err}
}

func (f *oddFS) ReadDir(_ context.Context, _ vfs.Handle, from vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for i := range f.entries {
			if f.entries[i].Next.Cookie > from.Cookie && !yield(&f.entries[i], nil) {
				return
			}
		}
		if f.err != nil {
			yield(nil, f.err)
		}
	}
}

func odd(name string, cookie uint64, verf byte) vfs.Entry {
	return vfs.Entry{Name: []byte(name), FileID: 7, Next: vfs.Pos{Cookie: cookie, Verf: vfs.Verifier{verf}}}
}

// TestReaddirOddNames leaves out what cannot be sent and lists the rest.
func TestReaddirOddNames(t *testing.T) {
	r := serve(t, &oddFS{FS: memfs.New(memfs.Options{}), entries: []vfs.Entry{
		odd("a", 1, 0), odd("", 2, 0), odd("b/c", 3, 0), odd("d\x00", 4, 0), odd(strings.Repeat("e", 256), 5, 0), odd("f", 6, 0),
	}}, nfsserver.Options{})
	got := r.all(func(cookie uint64, verf [8]byte) page { return r.readdirplus(r.root, cookie, verf, 4096, 4096) })
	if want := []string{".", "..", "a", "f"}; !slices.Equal(names(got), want) {
		t.Errorf("%q, want %q", names(got), want)
	}
	if n := strings.Count(r.log.String(), "left out"); n != 4 {
		t.Errorf("%d names are in the log, want 4", n)
	}
}

// TestReaddirOddCookies does not send a cookie that it could not take back.
func TestReaddirOddCookies(t *testing.T) {
	r := serve(t, &oddFS{FS: memfs.New(memfs.Options{}), entries: []vfs.Entry{
		odd("a", 1<<63, 0), odd("b", 1<<64-3, 0), odd("c", 1<<64-2, 0),
	}}, nfsserver.Options{})
	p := r.readdir(r.root, 0, [8]byte{}, 4096)
	r.status(p.status, nfs3.NFS3_OK)
	if got := names(p.entries); p.eof || !slices.Equal(got, []string{".", "..", "a", "b"}) {
		t.Errorf("%q, eof %v", got, p.eof)
	}
	if again := r.readdir(r.root, p.entries[2].cookie, p.verf, 4096); again.entries[0].name != "b" {
		t.Errorf("behind a: %q", names(again.entries))
	}
	r.status(r.readdir(r.root, p.entries[3].cookie, p.verf, 4096).status, nfs3.NFS3ERR_SERVERFAULT)
}

// TestReaddirErrorLater keeps the entries before an error, and answers the error
// when the client goes on.
func TestReaddirErrorLater(t *testing.T) {
	r := serve(t, &oddFS{FS: memfs.New(memfs.Options{}), entries: []vfs.Entry{odd("a", 1, 0)}, err: vfs.ErrIO}, nfsserver.Options{})
	p := r.readdir(r.root, 0, [8]byte{}, 4096)
	r.status(p.status, nfs3.NFS3_OK)
	if p.eof || len(p.entries) != 3 {
		t.Errorf("%q, eof %v", names(p.entries), p.eof)
	}
	r.status(r.readdir(r.root, p.entries[2].cookie, p.verf, 4096).status, nfs3.NFS3ERR_IO)
}

// TestReaddirVerifierChanges ends the page where the verifier changes.
func TestReaddirVerifierChanges(t *testing.T) {
	r := serve(t, &oddFS{FS: memfs.New(memfs.Options{}), entries: []vfs.Entry{odd("a", 1, 1), odd("b", 2, 2)}}, nfsserver.Options{})
	p := r.readdir(r.root, 0, [8]byte{}, 4096)
	r.status(p.status, nfs3.NFS3_OK)
	if p.eof || len(p.entries) != 3 || p.verf != [8]byte{1} {
		t.Errorf("%q, eof %v, verifier %x", names(p.entries), p.eof, p.verf)
	}
	p = r.readdir(r.root, p.entries[2].cookie, p.verf, 4096)
	if !p.eof || len(p.entries) != 1 || p.verf != [8]byte{2} {
		t.Errorf("%q, eof %v, verifier %x", names(p.entries), p.eof, p.verf)
	}
}
