package v3suite

import (
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

var getattrTests = []test{
	{name: "file", run: func(e *env) {
		res := e.create(e.dir, "f", guarded(mode(0o640)))
		e.ok(res.Status)
		h := e.made(&res.Resok.Obj, e.dir, "f")
		e.ok(e.write(h, 0, "twelve bytes", nfs3.FILE_SYNC).Status)
		a := e.attr(h)
		if a.Type != nfs3.NF3REG || a.Mode != 0o640 || a.Nlink != 1 || a.Size != 12 {
			e.Errorf("attributes of a file of 12 bytes and mode 0640: %+v", a)
		}
		if e.target.Identities && (a.Uid != e.owner.UID || a.Gid != e.owner.GID) {
			e.Errorf("owner %d:%d, want who made it, %d:%d", a.Uid, a.Gid, e.owner.UID, e.owner.GID)
		}
		checkTimes(e, a)
	}},
	{name: "directory", run: func(e *env) {
		before := e.attr(e.dir)
		if before.Type != nfs3.NF3DIR || before.Mode != 0o777 {
			e.Errorf("attributes of a directory of mode 0777: %+v", before)
		}
		checkTimes(e, before)
		e.mustMkdir(e.dir, "d")
		// Some file systems count 1 for every directory, whatever is in it.
		if got := e.attr(e.dir).Nlink; got != before.Nlink+1 && (got != 1 || before.Nlink != 1) {
			e.Errorf("nlink of a directory is %d, and with one in it %d", before.Nlink, got)
		}
	}},
	{name: "symlink", run: func(e *env) {
		a := e.attr(e.mustSymlink(e.dir, "l", "somewhere"))
		if a.Type != nfs3.NF3LNK || a.Size != 9 || a.Nlink != 1 {
			e.Errorf("attributes of a symbolic link to 9 bytes: %+v", a)
		}
	}},
	{name: "file-ids", run: func(e *env) {
		ids := make(map[uint64]string)
		fsid := e.attr(e.dir).Fsid
		for _, name := range []string{"a", "b", "c"} {
			a := e.attr(e.file(e.dir, name, ""))
			if other, dup := ids[a.Fileid]; dup || a.Fsid != fsid {
				e.Errorf("%s: file id %d (of %q, too), file system %#x (its directory's is %#x)", name, a.Fileid, other, a.Fsid, fsid)
			}
			ids[a.Fileid] = name
		}
	}},
	{name: "times-of-changes", run: func(e *env) {
		h := e.file(e.dir, "f", "")
		e.age(h)
		ctime := e.attr(h).Ctime
		if later(old, ctime) {
			e.Errorf("the change time is %v: it was set with the others", ctime)
		}
		e.ok(e.write(h, 0, "x", nfs3.FILE_SYNC).Status)
		e.touched("write", h)
	}},
}

func checkTimes(e *env, a nfs3.Fattr3) {
	for _, t := range []nfs3.Nfstime3{a.Atime, a.Mtime, a.Ctime} {
		if t.Seconds == 0 || t.Nseconds >= 1e9 {
			e.Errorf("a time of %d s and %d ns", t.Seconds, t.Nseconds)
		}
	}
}

func later(a, b nfs3.Nfstime3) bool {
	return a.Seconds > b.Seconds || a.Seconds == b.Seconds && a.Nseconds > b.Nseconds
}
