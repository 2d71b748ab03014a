package v3suite

import (
	"strings"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

var readlinkTests = []test{
	{name: "verbatim", run: func(e *env) {
		for i, target := range []string{
			"x", "/absolute/path", "../../up", "./a//b/./c/", "a b\tc", "\xff\xfe not UTF-8", "trailing/",
			strings.Repeat("t", 1023), strings.Repeat("d/", 512), strings.Repeat("u", 1025),
		} {
			name := string(rune('a' + i))
			h := e.mustSymlink(e.dir, name, target)
			res := e.readlink(h)
			e.ok(res.Status)
			if got := string(res.Resok.Data); got != target {
				e.Errorf("target %.60q (%d bytes), want %.60q (%d bytes)", got, len(got), target, len(target))
			}
			e.post("READLINK", &res.Resok.SymlinkAttributes, h)
			if a := e.attr(h); a.Size != uint64(len(target)) {
				e.Errorf("size %d of a symbolic link to %d bytes", a.Size, len(target))
			}
		}
	}},
	{name: "not-a-symlink", run: func(e *env) {
		for _, h := range []handle{e.file(e.dir, "f", ""), e.mustMkdir(e.dir, "d")} {
			res := e.readlink(h)
			e.gotStatus(res.Status, nfs3.NFS3ERR_INVAL)
			e.postIfAny("a failed READLINK", &res.Resfail.SymlinkAttributes, h)
		}
	}},
}
