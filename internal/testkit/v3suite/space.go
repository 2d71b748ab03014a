package v3suite

import (
	"strings"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// maxSmall bounds Target.Small: behind it the file system is not small.
const maxSmall = 16 << 20

var fullTests = []test{
	{name: "write", needs: needsSmall, run: func(e *env) {
		root := e.mount(e.target.Small)
		h, acknowledged := e.fill(root, "filling")
		if size := e.attr(h).Size; size < acknowledged {
			e.Errorf("size %d, and %d bytes had been acknowledged", size, acknowledged)
		}
		e.ok(e.remove(root, "filling").Status)
	}},
	{name: "space-comes-back", needs: needsSmall, run: func(e *env) {
		root := e.mount(e.target.Small)
		e.fill(root, "filling")
		e.ok(e.remove(root, "filling").Status)
		e.ok(e.write(e.file(root, "fits-again", ""), 0, fillBlock, nfs3.FILE_SYNC).Status)
		e.ok(e.remove(root, "fits-again").Status)
	}},
}

// fillBlock is what a small file system is filled with.
var fillBlock = strings.Repeat("0123456789abcdef", 4096)

// fill writes until there is no space, and returns how much went.
func (e *env) fill(root handle, name string) (h handle, acknowledged uint64) {
	h = e.file(root, name, "")
	for acknowledged < maxSmall {
		before := e.attr(h)
		res := e.write(h, acknowledged, fillBlock, nfs3.FILE_SYNC)
		if res.Status != nfs3.NFS3_OK {
			e.gotStatus(res.Status, nfs3.NFS3ERR_NOSPC)
			e.wccIfAny("a WRITE without space", &res.Resfail.FileWcc, before, h)
			return h, acknowledged
		}
		acknowledged += uint64(res.Resok.Count)
	}
	e.Errorf("the small file system has room for %d bytes", acknowledged)
	return h, acknowledged
}

var xdevTests = []test{
	{name: "rename", needs: needsOther, run: func(e *env) {
		other := e.mount(e.target.Other)
		e.file(e.dir, "f", "data")
		before := e.attr(e.dir)
		res := e.rename(e.dir, "f", other, "f")
		e.gotStatus(res.Status, nfs3.NFS3ERR_XDEV)
		e.wccIfAny("a failed RENAME", &res.Resfail.FromdirWcc, before, e.dir)
		e.unchanged("a failed RENAME", before, e.dir)
		e.find(e.dir, "f")
	}},
	{name: "link", needs: needsOther, run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		e.gotStatus(e.link(h, e.mount(e.target.Other), "f").Status, nfs3.NFS3ERR_XDEV)
		e.nlink("after a failed LINK", h, 1)
	}},
	{name: "file-systems-differ", needs: needsOther, run: func(e *env) {
		if other := e.mount(e.target.Other); e.attr(other).Fsid == e.attr(e.export).Fsid {
			e.Errorf("two file systems have one fsid, %#x", e.attr(other).Fsid)
		}
	}},
}
