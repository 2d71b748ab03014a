package vfstest

import (
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

var mkdirTests = []test{
	{"new", func(e *env) {
		h := e.create(e.dir, "dir", how(vfs.TypeDir, 0o750))
		if a := e.attr(h); a.Type != vfs.TypeDir || a.Mode&0o777 != 0o750 {
			e.Errorf("a new %s of mode %o, want 750", a.Type, a.Mode)
		}
		e.wantNames(h)
		e.same(e.mustLookup(e.dir, "dir"), h)
		e.same(e.mustLookup(h, ".."), e.dir)
	}},
	{"existing", func(e *env) {
		inner := e.mkfile(e.mkdir(e.dir, "dir"), "inner", "content")
		e.mkfile(e.dir, "file", "content")
		e.symlink(e.dir, "link", "target")
		for _, name := range []string{"dir", "file", "link"} {
			_, _, _, err := e.fs.Create(e.ctx, e.dir, name, how(vfs.TypeDir, 0o755))
			e.wantStatus(err, vfs.ErrExist)
		}
		e.gone(e.dir, "target")
		e.wantContent(inner, "content")
	}},
	{"nlink-of-parent", func(e *env) {
		if !e.countsDirs() {
			e.Skip("nlink of a directory does not count its directories here")
		}
		parent := e.mkdir(e.dir, "parent")
		for n := range uint32(3) {
			e.wantNlink(parent, 2+n)
			e.wantNlink(e.mkdir(parent, string(rune('a'+n))), 2)
		}
		e.mkfile(parent, "file", "")
		e.wantNlink(parent, 5)
		_, err := e.fs.Remove(e.ctx, parent, "b", true)
		e.ok(err)
		e.wantNlink(parent, 4)
	}},
	{"deep", func(e *env) {
		name := strings.Repeat("directory-", 20)
		chain := []vfs.Handle{e.dir}
		for i := range deepDirs {
			chain = append(chain, e.mkdir(chain[i], name))
		}
		bottom := e.mkfile(chain[deepDirs], "bottom", "content")
		e.wantContent(bottom, "content")
		h := chain[deepDirs]
		for i := range deepDirs {
			h = e.mustLookup(h, "..")
			e.same(h, chain[deepDirs-1-i])
		}
	}},
	{"modifies-parent", func(e *env) {
		e.age(e.dir)
		e.mkdir(e.dir, "dir")
		e.wantModified(e.dir)
	}},
}

// countsDirs reports whether the FS counts the ".." of its sub-directories as
// names of a directory; btrfs and overlayfs, among others, do not.
func (e *env) countsDirs() bool {
	e.Helper()
	return e.attr(e.mkdir(e.mkdir(e.dir, "counts-dirs"), "inner")).Nlink == 2 &&
		e.attr(e.mustLookup(e.dir, "counts-dirs")).Nlink == 3
}

// deepDirs directories with names of 200 bytes make a path beyond PATH_MAX:
// handles know no such bound.
const deepDirs = 40
