package vfstest

import (
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

var symlinkTests = []test{
	{"target-verbatim", func(e *env) {
		// Makes links to what no path resolution would leave alone.
		for _, target := range []string{
			"a", "../../..", "/etc//passwd/", "./.", "a//b/../c/", " ", "-rf", "a\nb", "caf\xe9 \xff\xfe", "ünïcödé", "%2e%2e/$HOME/*",
		} {
			h := e.symlink(e.dir, "link", target)
			got, beside, err := e.fs.Readlink(e.ctx, h)
			e.ok(err)
			if got != target {
				e.Errorf("target %q, want %q", got, target)
			}
			if a := e.attr(h); a.Type != vfs.TypeSymlink || a.Size != uint64(len(target)) || a.Nlink != 1 {
				e.Errorf("a %s of size %d with %d names, want a symlink of size %d", a.Type, a.Size, a.Nlink, len(target))
			}
			if beside.Has(vfs.MaskType) && beside.Type != vfs.TypeSymlink {
				e.Errorf("readlink says that it is a %s", beside.Type)
			}
			_, err = e.fs.Remove(e.ctx, e.dir, "link", false)
			e.ok(err)
		}
	}},
	{"long-target", func(e *env) {
		target := strings.Repeat("0123456789", longTarget/10)
		got, _, err := e.fs.Readlink(e.ctx, e.symlink(e.dir, "link", target))
		e.ok(err)
		wantBytes(e, got, target)
	}},
	{"too-long-target", func(e *env) {
		for _, n := range []int{vfs.MaxPath + 1, 1 << 16} {
			how := &vfs.CreateHow{Type: vfs.TypeSymlink, Target: strings.Repeat("x", n)}
			_, _, _, err := e.fs.Create(e.ctx, e.dir, "link", how)
			e.wantStatus(err, vfs.ErrNameTooLong, vfs.ErrInval)
		}
		e.wantNames(e.dir)
	}},
	{"existing", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		e.symlink(e.dir, "link", "old")
		for _, name := range []string{"file", "link"} {
			_, _, _, err := e.fs.Create(e.ctx, e.dir, name, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: "new"})
			e.wantStatus(err, vfs.ErrExist)
		}
		e.wantContent(h, "content")
		got, _, err := e.fs.Readlink(e.ctx, e.mustLookup(e.dir, "link"))
		e.ok(err)
		wantBytes(e, got, "old")
	}},
	{"modifies-directory", func(e *env) {
		e.age(e.dir)
		e.symlink(e.dir, "link", "target")
		e.wantModified(e.dir)
	}},
}

// longTarget is within what every file system of Linux can hold: XFS takes
// 1023 bytes, others 4095.
const longTarget = 1000

var readlinkTests = []test{
	{"of-others", func(e *env) {
		for _, h := range []vfs.Handle{e.mkfile(e.dir, "file", "target"), e.mkdir(e.dir, "dir")} {
			_, _, err := e.fs.Readlink(e.ctx, h)
			e.wantStatus(err, vfs.ErrInval)
		}
	}},
	{"stale", func(e *env) {
		h := e.symlink(e.dir, "link", "target")
		_, err := e.fs.Remove(e.ctx, e.dir, "link", false)
		e.ok(err)
		_, _, err = e.fs.Readlink(e.ctx, h)
		e.wantStatus(err, vfs.ErrStale)
	}},
}
