package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var getattrTests = []test{
	{"of-root", func(e *env) {
		h, beside, err := e.fs.Root(e.ctx)
		e.ok(err)
		a := e.attr(h)
		if a.Type != vfs.TypeDir {
			e.Fatalf("the root is a %s", a.Type)
		}
		if beside.Has(vfs.MaskFileID) && beside.FileID != a.FileID {
			e.Fatalf("file id %d from Root, %d from GetAttr", beside.FileID, a.FileID)
		}
	}},
	{"types", func(e *env) {
		for h, want := range map[vfs.Handle]vfs.Type{
			e.mkfile(e.dir, "file", ""):        vfs.TypeReg,
			e.mkdir(e.dir, "dir"):              vfs.TypeDir,
			e.symlink(e.dir, "link", "target"): vfs.TypeSymlink,
		} {
			if got := e.attr(h).Type; got != want {
				e.Errorf("type %s, want %s", got, want)
			}
		}
	}},
	{"sizes", func(e *env) {
		if got := e.attr(e.mkfile(e.dir, "empty", "")).Size; got != 0 {
			e.Errorf("size of an empty file is %d", got)
		}
		if got := e.attr(e.mkfile(e.dir, "file", "seven b")).Size; got != 7 {
			e.Errorf("size of a file is %d, want 7", got)
		}
		if got := e.attr(e.symlink(e.dir, "link", "target")).Size; got != 6 {
			e.Errorf("size of a symbolic link is %d, want 6", got)
		}
		used := e.attr(e.mkfile(e.dir, "big", pattern(1<<20))).Used
		if used == 0 {
			e.Log("a megabyte takes no storage: allocation is delayed, or content is folded")
		}
	}},
	{"file-ids-differ", func(e *env) {
		seen := map[uint64]string{e.attr(e.dir).FileID: "."}
		for _, name := range []string{"a", "b", "c"} {
			a := e.attr(e.mkfile(e.dir, name, ""))
			if other, ok := seen[a.FileID]; ok {
				e.Errorf("%s and %s share the file id %d", name, other, a.FileID)
			}
			if a.FSID != e.attr(e.dir).FSID {
				e.Errorf("%s is in file system %v, its directory is not", name, a.FSID)
			}
			seen[a.FileID] = name
		}
	}},
	{"agrees-with-lookup", func(e *env) {
		e.mkfile(e.dir, "file", "content")
		h, attr, dirAttr, err := e.fs.Lookup(e.ctx, e.dir, "file")
		e.ok(err)
		a, d := e.attr(h), e.attr(e.dir)
		if attr.Has(vfs.MaskV3) && (attr.FileID != a.FileID || attr.Size != a.Size || attr.Mode != a.Mode || attr.Type != a.Type) {
			e.Errorf("lookup says %+v, getattr %+v", attr, a)
		}
		if dirAttr.Has(vfs.MaskV3) && (dirAttr.FileID != d.FileID || dirAttr.Type != vfs.TypeDir) {
			e.Errorf("lookup says of the directory %+v, getattr %+v", dirAttr, d)
		}
	}},
	{"times-are-set", func(e *env) {
		a := e.attr(e.mkfile(e.dir, "file", "content"))
		if a.Atime.Before(old) || a.Mtime.Before(old) || a.Ctime.Before(old) {
			e.Errorf("atime %v, mtime %v, ctime %v of a new file", a.Atime, a.Mtime, a.Ctime)
		}
	}},
}
