package vfstest

import (
	"errors"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

var namesTests = []test{
	{"bytes", func(e *env) {
		// Names that one program or another has tripped over.
		for _, name := range []string{
			"...", ". ", " ", "  leading", "trailing ", "-rf", "a\nb", "a\tb", "back\\slash", "quote\"'`", "*?[]", "~", "%2f", "a:b", "NUL",
			"caf\xc3\xa9", "cafe\xcc\x81", "\xff", "\xc3", "\xed\xa0\x80", "\xf0\x9f\x93\xa6", "lost+found",
		} {
			e.nameMade(name)
		}
	}},
	{"every-byte", func(e *env) {
		var b strings.Builder
		for c := 1; c < 256; c++ {
			if c != '/' && c != 'A' { // 'A': so that no two differ by case alone
				b.WriteByte(byte(c))
			}
		}
		e.nameMade(b.String())
	}},
	{"longest", func(e *env) {
		longest := strings.Repeat("n", vfs.MaxName)
		e.nameMade(longest)
		e.mkdir(e.dir, longest)
		e.symlink(e.dir, longest[:vfs.MaxName-1]+"s", longest)
		e.wantNames(e.dir, longest, longest[:vfs.MaxName-1]+"s")
	}},
	{"too-long", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		for _, n := range []int{vfs.MaxName + 1, 1000, 5000, 1 << 16} {
			e.eachName(h, strings.Repeat("n", n), func(what string, err error) {
				if got, known := vfs.StatusOf(err); !known || got != vfs.ErrNameTooLong {
					e.Errorf("%s with a name of %d bytes: %v, want %s", what, n, err, vfs.ErrNameTooLong.Name())
				}
			})
		}
		e.wantNames(e.dir, "file")
		e.wantNlink(h, 1)
	}},
	{"forbidden", func(e *env) {
		// Uses names that CheckName refuses. RFC 1813 allows several statuses;
		// nothing may change.
		h := e.mkfile(e.dir, "file", "")
		dir := e.mkdir(e.dir, "a")
		for _, name := range []string{"", ".", "..", "/", "a/b", "a/", "/a", "a/../b", "../b", "b\x00", "\x00", "file\x00b"} {
			e.eachName(h, name, func(what string, err error) {
				got, known := vfs.StatusOf(err)
				if err == nil || !known || got == vfs.ErrServerFault {
					e.Errorf("%s with the name %q: %v, want an error that says so", what, name, err)
				}
			})
		}
		e.wantNames(e.dir, "file", "a")
		e.wantNames(dir)
		e.wantNlink(h, 1)
	}},
}

// nameMade makes, finds, lists, renames and removes one name.
func (e *env) nameMade(name string) {
	e.Helper()
	h := e.mkfile(e.dir, name, "content")
	e.same(e.mustLookup(e.dir, name), h)
	e.wantNames(e.dir, name)
	e.rename(e.dir, name, e.dir, "plain")
	e.rename(e.dir, "plain", e.dir, name)
	e.wantContent(e.mustLookup(e.dir, name), "content")
	e.remove(e.dir, name, false)
	e.wantNames(e.dir)
}

// eachName calls everything that takes a name with this one. h is a file and
// called "file", in a directory of its own.
func (e *env) eachName(h vfs.Handle, name string, each func(what string, err error)) {
	for _, typ := range []vfs.Type{vfs.TypeReg, vfs.TypeDir, vfs.TypeSymlink, vfs.TypeFIFO} {
		how := how(typ, 0o755)
		how.Target = "target"
		_, _, _, err := e.fs.Create(e.ctx, e.dir, name, how)
		each("create "+typ.String(), err)
	}
	_, _, err := e.fs.Link(e.ctx, h, e.dir, name)
	each("link", err)
	_, err = e.fs.Remove(e.ctx, e.dir, name, false)
	each("remove", err)
	_, err = e.fs.Remove(e.ctx, e.dir, name, true)
	each("remove of a directory", err)
	_, _, err = e.fs.Rename(e.ctx, e.dir, "file", e.dir, name)
	each("rename to it", err)
	_, _, err = e.fs.Rename(e.ctx, e.dir, name, e.dir, "new")
	each("rename of it", err)
	if name != ".." {
		_, _, _, err = e.fs.Lookup(e.ctx, e.dir, name)
		each("lookup", err)
	}
	if name != "" {
		_, _, err = e.fs.Open(e.ctx, vfs.At{Dir: e.dir, Name: name}, &vfs.OpenHow{Access: vfs.ShareRead, Create: fileHow(0o644)})
		each("open", err)
	}
	if p, ok := vfs.As[vfs.Putter](e.fs); ok {
		if _, _, err = p.Put(e.ctx, e.dir, name, 0o644, nil); !errors.Is(err, vfs.ErrNotSupp) {
			each("put", err)
		}
	}
}
