package v3suite

import "github.com/nfsbox/nfsbox/proto/nfs3"

var renameTests = []test{
	{name: "within-a-directory", run: func(e *env) {
		h := e.file(e.dir, "a", "data")
		e.age(e.dir)
		before := e.attr(e.dir)
		res := e.rename(e.dir, "a", e.dir, "b")
		e.ok(res.Status)
		e.wcc("RENAME, from", &res.Resok.FromdirWcc, before, e.dir)
		e.wcc("RENAME, to", &res.Resok.TodirWcc, before, e.dir)
		e.touched("RENAME in a directory", e.dir)
		e.gone(e.dir, "a")
		e.same("after RENAME", e.find(e.dir, "b"), h)
	}},
	{name: "between-directories", run: func(e *env) {
		from, to := e.mustMkdir(e.dir, "from"), e.mustMkdir(e.dir, "to")
		file, dir := e.file(from, "f", "data"), e.mustMkdir(from, "d")
		for name, h := range map[string]handle{"f": file, "d": dir} {
			e.age(from, to)
			f, t := e.attr(from), e.attr(to)
			res := e.rename(from, name, to, name+"2")
			e.ok(res.Status)
			e.wcc("RENAME, from", &res.Resok.FromdirWcc, f, from)
			e.wcc("RENAME, to", &res.Resok.TodirWcc, t, to)
			e.touched("RENAME between directories", from, to)
			e.gone(from, name)
			e.same("after RENAME", e.find(to, name+"2"), h)
		}
		e.same(".. of a directory that was moved", e.find(dir, ".."), to)
	}},
	{name: "over-file", run: func(e *env) {
		h, over := e.file(e.dir, "a", "new"), e.file(e.dir, "b", "old")
		e.ok(e.link(over, e.dir, "b2").Status)
		e.ok(e.rename(e.dir, "a", e.dir, "b").Status)
		e.same("after RENAME over a file", e.find(e.dir, "b"), h)
		e.gone(e.dir, "a")
		e.nlink("the file that was replaced, by another name", over, 1)
	}},
	{name: "over-empty-directory", run: func(e *env) {
		h := e.mustMkdir(e.dir, "a")
		e.mustMkdir(e.dir, "b")
		e.ok(e.rename(e.dir, "a", e.dir, "b").Status)
		e.same("after RENAME over a directory", e.find(e.dir, "b"), h)
	}},
	{name: "over-full-directory", run: func(e *env) {
		e.mustMkdir(e.dir, "a")
		b := e.mustMkdir(e.dir, "b")
		e.file(b, "f", "")
		before := e.attr(e.dir)
		res := e.rename(e.dir, "a", e.dir, "b")
		e.gotStatus(res.Status, nfs3.NFS3ERR_NOTEMPTY, nfs3.NFS3ERR_EXIST)
		e.wccIfAny("a failed RENAME, from", &res.Resfail.FromdirWcc, before, e.dir)
		e.wccIfAny("a failed RENAME, to", &res.Resfail.TodirWcc, before, e.dir)
		e.unchanged("a failed RENAME", before, e.dir)
		e.find(e.dir, "a")
		e.find(b, "f")
	}},
	{name: "file-over-directory", run: func(e *env) {
		e.file(e.dir, "f", "")
		e.mustMkdir(e.dir, "d")
		e.gotStatus(e.rename(e.dir, "f", e.dir, "d").Status, nfs3.NFS3ERR_EXIST, nfs3.NFS3ERR_ISDIR)
		e.find(e.dir, "f")
	}},
	{name: "directory-over-file", run: func(e *env) {
		e.mustMkdir(e.dir, "d")
		e.file(e.dir, "f", "data")
		e.gotStatus(e.rename(e.dir, "d", e.dir, "f").Status, nfs3.NFS3ERR_EXIST, nfs3.NFS3ERR_NOTDIR)
		e.content("after a failed RENAME", e.find(e.dir, "f"), "data")
	}},
	{name: "onto-itself", run: func(e *env) {
		f, d := e.file(e.dir, "f", "data"), e.mustMkdir(e.dir, "d")
		for _, name := range []string{"f", "d"} {
			e.ok(e.rename(e.dir, name, e.dir, name).Status)
		}
		e.same("after RENAME onto itself", e.find(e.dir, "f"), f)
		e.same("after RENAME onto itself", e.find(e.dir, "d"), d)
	}},
	{name: "onto-another-name-of-itself", run: func(e *env) {
		// "If from and to both refer to the same file, RENAME performs no action."
		h := e.file(e.dir, "a", "data")
		e.ok(e.link(h, e.dir, "b").Status)
		e.ok(e.rename(e.dir, "a", e.dir, "b").Status)
		e.same("the old name", e.find(e.dir, "a"), h)
		e.same("the new name", e.find(e.dir, "b"), h)
		e.nlink("two names", h, 2)
	}},
	{name: "into-itself", run: func(e *env) {
		a := e.mustMkdir(e.dir, "a")
		deep := e.mustMkdir(e.mustMkdir(a, "b"), "c")
		e.gotStatus(e.rename(e.dir, "a", a, "x").Status, nfs3.NFS3ERR_INVAL)
		e.gotStatus(e.rename(e.dir, "a", deep, "x").Status, nfs3.NFS3ERR_INVAL)
		e.same("..", e.find(a, ".."), e.dir)
	}},
	{name: "over-what-it-is-in", run: func(e *env) {
		a := e.mustMkdir(e.dir, "a")
		e.mustMkdir(a, "b")
		e.gotStatus(e.rename(a, "b", e.dir, "a").Status, nfs3.NFS3ERR_NOTEMPTY, nfs3.NFS3ERR_EXIST, nfs3.NFS3ERR_INVAL)
		e.find(a, "b")
	}},
	{name: "missing", run: func(e *env) {
		e.file(e.dir, "f", "data")
		before := e.attr(e.dir)
		res := e.rename(e.dir, "missing", e.dir, "f")
		e.gotStatus(res.Status, nfs3.NFS3ERR_NOENT)
		e.wccIfAny("a failed RENAME", &res.Resfail.FromdirWcc, before, e.dir)
		e.unchanged("a failed RENAME", before, e.dir)
		e.content("after a failed RENAME", e.find(e.dir, "f"), "data")
	}},
	{name: "dots", run: func(e *env) {
		d := e.mustMkdir(e.dir, "d")
		e.file(d, "f", "")
		for _, n := range [][2]string{{".", "x"}, {"..", "x"}, {"f", "."}, {"f", ".."}} {
			e.gotStatus(e.rename(d, n[0], d, n[1]).Status, nfs3.NFS3ERR_INVAL, nfs3.NFS3ERR_EXIST, nfs3.NFS3ERR_NOTEMPTY, nfs3.NFS3ERR_ISDIR)
		}
		e.find(d, "f")
	}},
}
