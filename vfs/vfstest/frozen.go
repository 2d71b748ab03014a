package vfstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// frozenTests compare an FS that nobody changes with the one that it was made of.
var frozenTests = []struct {
	name string
	run  func(source, e *env, all []joined)
}{
	{"same-attributes", sameAttributes},
	{"same-content", sameContent},
	{"same-links", sameTargets},
	{"same-lists", sameLists},
	{"same-xattrs", sameXattrs},
	{"same-rights", sameRights},
	{"same-holes", sameHoles},
	{"read-only", wantReadOnly},
	{"reopened", wantReopened},
}

// joined is an object in both trees.
type joined struct {
	path         string
	source, here found
}

// runFrozen fills a tree, has it handed over, and judges what it is then.
func runFrozen(t *testing.T, c Config) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	source := &env{T: t, fixture: newFixture(t, c), ctx: ctx}
	source.dir = source.root
	source.motley()
	f := c.Freeze(t, source.fs)
	RunReadOnly(t, f)

	x := &fixture{group: t, config: c, fs: f}
	in := func(t *testing.T, x *fixture) *env {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		t.Cleanup(cancel)
		return &env{T: t, fixture: x, ctx: ctx, dir: x.root}
	}
	frozen := in(t, x)
	var err error
	x.root, _, err = f.Root(frozen.ctx)
	frozen.ok(err)
	frozen.dir = x.root
	all := pairs(in(t, source.fixture), frozen)
	for _, test := range frozenTests {
		t.Run(test.name, func(t *testing.T) {
			c.skipDifference(t, test.name)
			test.run(in(t, source.fixture), in(t, x), all)
		})
	}
}

// pairs joins the two trees, which must have the same names.
func pairs(source, e *env) []joined {
	e.Helper()
	byPath := func(a, b found) int { return cmp.Compare(a.path, b.path) }
	from, here := slices.SortedFunc(slices.Values(source.walk()), byPath), slices.SortedFunc(slices.Values(e.walk()), byPath)
	all := make([]joined, 0, len(from))
	for i, o := range from {
		if i >= len(here) || here[i].path != o.path {
			e.Fatalf("%q is missing, or before it is what the source has not: %d names of %d", o.path, len(here), len(from))
		}
		all = append(all, joined{o.path, o, here[i]})
	}
	if len(here) > len(from) {
		e.Fatalf("%q is not in the source", here[len(from)].path)
	}
	return all
}

// wide is how many entries the large directory of the tree has: several pages of any listing.
const wide = 1500

// motley fills the tree with all that a tree may have.
func (e *env) motley() {
	e.Helper()
	for name, size := range map[string]int{"empty": 0, "small": 10, "page": 4096, "some": 300_000, "more": 1_500_000} {
		e.mkfile(e.root, name, pattern(size))
	}
	dir := e.mkdir(e.root, "names")
	for _, name := range []string{
		"a", "a!", "a0", "A", "...", " ", "\n", "\"", "\\", "%41", "\x01", "\xff\xfe", "\u202e", "\ufffd", "é", "e\u0301", "<&>", `{"b64":"AA=="}`,
		strings.Repeat("n", vfs.MaxName),
	} {
		e.mkfile(dir, name, name)
	}
	deep := e.mkdir(e.root, "deep")
	for i := range 20 {
		deep = e.mkdir(deep, fmt.Sprintf("level %d", i))
	}
	e.mkfile(deep, "bottom", "of the tree")
	e.mkdir(e.root, "nothing")
	e.mkfiles(e.mkdir(e.root, "wide"), wide)

	links := e.mkdir(e.root, "links")
	e.symlink(links, "up", "../small")
	e.symlink(links, "nowhere", "/no \xff where/"+strings.Repeat("x", 1000))
	e.link(e.mkfile(links, "one", "with two names"), dir, "two")
	e.create(links, "fifo", how(vfs.TypeFIFO, 0o600))
	e.create(links, "socket", how(vfs.TypeSocket, 0o666))
	e.create(links, "device", &vfs.CreateHow{Type: vfs.TypeChar, Rdev: 5<<32 | 3, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o620}})
	e.motleyHoles()
	e.motleyRights()
}

// motleyHoles makes files with holes at the begin, at the end, in between, and everywhere.
func (e *env) motleyHoles() {
	dir := e.mkdir(e.root, "holes")
	file := func(name string, size uint64, at ...uint64) {
		e.with(e.create(dir, name, fileHow(0o644)), readWrite, func(f vfs.File) {
			e.truncate(f, size)
			for _, off := range at {
				e.writeTo(f, pattern(64<<10), off)
			}
		})
	}
	file("only", 3<<20)
	file("begin", 1<<20+64<<10, 1<<20)
	file("end", 2<<20, 0)
	file("between", 5<<20, 0, 1<<20, 3<<20)
	var many []uint64
	for i := range uint64(100) {
		many = append(many, i<<17)
	}
	file("many", 100<<17, many...)
}

// motleyRights makes objects of other modes, owners, times, lists and extended attributes.
func (e *env) motleyRights() {
	dir := e.mkdir(e.root, "rights")
	acls, _ := vfs.As[vfs.ACLer](e.fs)
	xattrs, _ := vfs.As[vfs.Xattrer](e.fs)
	for i, mode := range []uint32{0, 0o400, 0o040, 0o004, 0o111, 0o751, 0o4755, 0o2770, 0o1777, 0o666} {
		for _, typ := range []vfs.Type{vfs.TypeReg, vfs.TypeDir} {
			h := e.create(dir, fmt.Sprintf("%s %o", typ, mode), how(typ, 0o755))
			if typ == vfs.TypeDir {
				e.mkfile(h, "inside", "x")
			}
			who := vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: owner.UID, GID: owner.GID + 6*uint32(i%2)}
			e.set(h, who) // before the mode: it takes set-id bits away
			e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
		}
	}
	h := e.mkfile(dir, "listed", "for some")
	below := e.mkdir(dir, "listed too")
	if acls != nil {
		list := aclOf(6, 4, 0, aclUser(member.UID, 4), aclUser(other.UID, 0), aclMasked(6))
		e.ok(acls.SetACL(e.ctx, h, vfs.ACL{Access: list}))
		e.ok(acls.SetACL(e.ctx, below, vfs.ACL{Access: aclOf(7, 0, 0, aclUser(other.UID, 5), aclMasked(5)), Default: list}))
	}
	if xattrs != nil {
		for name, value := range map[string]string{"user.none": "", "user.some": "\x00\xff", "user.long": pattern(50_000)} {
			e.ok(xattrs.SetXattr(e.ctx, h, name, []byte(value), vfs.XattrEither))
		}
		e.ok(xattrs.SetXattr(e.ctx, below, "user.dir", []byte("value"), vfs.XattrEither))
	}
	for i, at := range []time.Time{time.Unix(-1, 1), time.Unix(0, 0), time.Unix(1, 999_999_999), time.Unix(1<<32-1, 0)} {
		e.set(e.mkfile(dir, fmt.Sprint("time ", i), ""), vfs.SetAttr{Valid: vfs.MaskAtime | vfs.MaskMtime, Atime: at, Mtime: at})
	}
}

func sameAttributes(_, e *env, all []joined) {
	for _, p := range all {
		s, a := p.source.attr, p.here.attr
		if s.Type != a.Type || s.Mode != a.Mode || s.Nlink != a.Nlink || s.UID != a.UID || s.GID != a.GID || s.Size != a.Size ||
			s.Rdev != a.Rdev || s.FileID != a.FileID || !s.Mtime.Equal(a.Mtime) || !s.Ctime.Equal(a.Ctime) {
			e.Errorf("%q:\n%+v, and of the source\n%+v", p.path, a, s)
		}
	}
}

func sameContent(source, e *env, all []joined) {
	for _, p := range all {
		if p.source.attr.Type == vfs.TypeReg {
			wantBytes(e, e.content(p.here.handle), source.content(p.source.handle))
		}
	}
}

func sameTargets(source, e *env, all []joined) {
	for _, p := range all {
		if p.source.attr.Type != vfs.TypeSymlink {
			continue
		}
		want, _, err := source.fs.Readlink(e.ctx, p.source.handle)
		e.ok(err)
		got, _, err := e.fs.Readlink(e.ctx, p.here.handle)
		if e.ok(err); got != want {
			e.Errorf("%q leads to %.100q, want %.100q", p.path, got, want)
		}
	}
}

func sameLists(source, e *env, all []joined) {
	from, ok := vfs.As[vfs.ACLer](source.fs)
	if !ok {
		e.Skip("the source has no access control lists")
	}
	here := power[vfs.ACLer](e, e.fs)
	for _, p := range all {
		want, werr := from.ACL(e.ctx, p.source.handle)
		got, err := here.ACL(e.ctx, p.here.handle)
		if (err == nil) != (werr == nil) || !sameList(got.Access, want.Access) || !sameList(got.Default, want.Default) {
			e.Errorf("%q: %+v (%v), want %+v (%v)", p.path, got, err, want, werr)
		}
	}
}

func sameXattrs(source, e *env, all []joined) {
	from, ok := vfs.As[vfs.Xattrer](source.fs)
	if !ok {
		e.Skip("the source has no extended attributes")
	}
	for _, p := range all {
		names, err := from.Xattrs(e.ctx, p.source.handle)
		if err != nil {
			_, err = power[vfs.Xattrer](e, e.fs).Xattrs(e.ctx, p.here.handle)
			e.wantStatus(err, vfs.ErrNotSupp)
			continue
		}
		var want []string
		for _, name := range names {
			value, err := from.Xattr(e.ctx, p.source.handle, name)
			e.ok(err)
			want = append(want, name+"="+string(value))
		}
		e.wantXattrs(p.here.handle, want...)
		_, err = power[vfs.Xattrer](e, e.fs).Xattr(e.ctx, p.here.handle, "user.there-is-none")
		if !errors.Is(err, vfs.ErrNoXattr) {
			e.Errorf("%q has an attribute that it has not: %v", p.path, err)
		}
	}
}

// sameRights wants each caller to be granted what the source grants it.
func sameRights(source, e *env, all []joined) {
	if !e.config.Callers {
		e.Skip("this file system acts for one caller only")
	}
	const asked = vfs.AccessRead | vfs.AccessLookup | vfs.AccessExecute
	for _, c := range []*vfs.Caller{owner, member, other, {}} {
		from, here := source.fs.As(c), e.fs.As(c)
		for _, p := range all {
			if !strings.HasPrefix(p.path, "rights") {
				continue
			}
			want, _, werr := from.Access(e.ctx, p.source.handle, asked)
			got, _, err := here.Access(e.ctx, p.here.handle, asked)
			if got != want || err != nil || werr != nil {
				e.Errorf("caller %d has %#x to %q, want %#x: %v, %v", c.UID, got, p.path, want, err, werr)
			}
			a, b := tryAll(e.ctx, here, &p.here), tryAll(e.ctx, from, &p.source)
			if !slices.Equal(a, b) {
				e.Errorf("caller %d at %q: %v, want %v", c.UID, p.path, a, b)
			}
		}
		if have, _, err := here.Access(e.ctx, e.root, allRights); err != nil || have&^asked != 0 {
			e.Errorf("caller %d has %#x to what nobody changes: %v", c.UID, have, err)
		}
	}
}

// tryAll says which of the calls that read are allowed.
func tryAll(ctx context.Context, f vfs.FS, o *found) (allowed []bool) {
	if o.attr.Type != vfs.TypeDir {
		file, _, err := f.Open(ctx, vfs.At{H: o.handle}, &vfs.OpenHow{Access: vfs.ShareRead})
		if err == nil {
			_, _, err = file.ReadAt(ctx, make([]byte, 1), 0, nil)
			err = errors.Join(err, file.Close(ctx))
		}
		return []bool{err == nil}
	}
	_, _, _, err := f.Lookup(ctx, o.handle, "inside")
	allowed = append(allowed, !errors.Is(err, vfs.ErrAccess) && !errors.Is(err, vfs.ErrPerm))
	for _, err = range f.ReadDir(ctx, o.handle, vfs.Pos{}, 0, 0) {
		if err != nil {
			break
		}
	}
	return append(allowed, err == nil || errors.Is(err, vfs.ErrNoEnt))
}

// sameHoles wants holes where the source has none but zeros, and one at least where the source has holes.
func sameHoles(source, e *env, all []joined) {
	for _, p := range all {
		if path.Dir(p.path) != "holes" {
			continue
		}
		e.with(p.here.handle, vfs.ShareRead, func(f vfs.File) {
			s := power[vfs.HoleSeeker](e, f)
			content := []byte(source.content(p.source.handle))
			data := uint64(0)
			for _, x := range e.extents(s) {
				if x[1] > p.here.attr.Size {
					e.Fatalf("%q has data up to %d, and %d bytes", p.path, x[1], p.here.attr.Size)
				}
				data += x[1] - x[0]
				clear(content[min(x[0], uint64(len(content))):min(x[1], uint64(len(content)))])
			}
			wantBytes(e, string(content), zeros(len(content)))
			if data == p.here.attr.Size {
				e.Errorf("%q has no hole, and the source has", p.path)
			}
			for _, off := range []uint64{p.here.attr.Size, 1 << 40} {
				if at, err := s.NextData(e.ctx, off); !errors.Is(err, io.EOF) {
					e.Errorf("%q has data behind %d at %d: %v", p.path, off, at, err)
				}
			}
		})
	}
}

// wantReadOnly wants each change that would be possible elsewhere to be ErrROFS.
func wantReadOnly(_, e *env, all []joined) {
	refused := func(what, path string, err error) {
		e.Helper()
		if s, _ := vfs.StatusOf(err); s != vfs.ErrROFS {
			e.Errorf("%s of %q: %v, want %s", what, path, err, vfs.ErrROFS.Name())
		}
	}
	for _, p := range all {
		o := &p.here
		if path.Dir(p.path) == "wide" || p.path == "" {
			continue
		}
		_, err := e.fs.SetAttr(e.ctx, o.handle, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil)
		refused("setattr", p.path, err)
		_, err = e.fs.Remove(e.ctx, o.dir, o.name, o.attr.Type == vfs.TypeDir)
		refused("remove", p.path, err)
		_, _, err = e.fs.Rename(e.ctx, o.dir, o.name, e.root, "new")
		refused("rename", p.path, err)
		if a, ok := vfs.As[vfs.ACLer](e.fs); ok {
			refused("setacl", p.path, a.SetACL(e.ctx, o.handle, vfs.ACL{Access: aclOf(6, 4, 0)}))
		}
		if x, ok := vfs.As[vfs.Xattrer](e.fs); ok {
			refused("setxattr", p.path, x.SetXattr(e.ctx, o.handle, "user.new", nil, vfs.XattrEither))
			refused("removexattr", p.path, x.RemoveXattr(e.ctx, o.handle, "user.some"))
		}
		switch o.attr.Type {
		case vfs.TypeDir:
			for _, typ := range []vfs.Type{vfs.TypeReg, vfs.TypeDir, vfs.TypeFIFO, vfs.TypeSymlink} {
				h := how(typ, 0o755)
				h.Target = "target"
				_, _, _, err = e.fs.Create(e.ctx, o.handle, "new", h)
				refused("create", p.path, err)
			}
			_, _, err = e.fs.Open(e.ctx, vfs.At{Dir: o.handle, Name: "new"}, &vfs.OpenHow{Access: readWrite, Create: fileHow(0o644)})
			refused("open", p.path, err)
		case vfs.TypeReg:
			_, _, err = e.fs.Link(e.ctx, o.handle, e.root, "new")
			refused("link", p.path, err)
			_, _, err = e.fs.Open(e.ctx, vfs.At{H: o.handle}, &vfs.OpenHow{Access: readWrite})
			refused("open", p.path, err)
			e.with(o.handle, vfs.ShareRead, func(f vfs.File) {
				var w vfs.Written
				_, err := f.WriteAt(e.ctx, []byte("x"), 0, vfs.Unstable, &w)
				refused("write", p.path, err)
				_, err = f.Truncate(e.ctx, 0)
				refused("truncate", p.path, err)
			})
		default:
		}
	}
}

// wantReopened wants handles and places of listings to outlast the FS.
func wantReopened(source, e *env, all []joined) {
	places := make(map[string][]place)
	for _, p := range all {
		if p.here.attr.Type == vfs.TypeDir {
			places[p.path] = e.places(p.here.handle, vfs.Pos{}, 0)
		}
	}
	e.restart()
	for _, p := range all {
		a := e.attr(p.here.handle)
		a.Atime = p.here.attr.Atime // it may have been read
		if a != p.here.attr {
			e.Errorf("%q: %+v, and before %+v", p.path, a, p.here.attr)
		}
		list := places[p.path]
		for i := range list {
			if i%(len(list)/8+1) == 0 {
				if rest := namesOf(e.places(p.here.handle, list[i].next, 0)); !slices.Equal(rest, namesOf(list[i+1:])) {
					e.Errorf("%q: behind %q are %.200q", p.path, list[i].name, rest)
				}
			}
		}
		if p.here.attr.Type == vfs.TypeReg && path.Dir(p.path) != "wide" {
			wantBytes(e, e.content(p.here.handle), source.content(p.source.handle))
		}
	}
}
