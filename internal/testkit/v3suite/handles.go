package v3suite

import (
	"bytes"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// operation is a procedure made on a handle, with arguments that are good
// otherwise.
type operation struct {
	name  string
	dir   bool // the handle is a directory's
	names bool // it takes a name there
	run   func(e *env, h handle, name string) nfs3.Nfsstat3
}

// operations are all procedures, those with two handles once for each.
var operations = []operation{
	{name: "getattr", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.getattr(h).Status }},
	{name: "setattr", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.setattr(h, mode(0o600)).Status }},
	{name: "lookup", dir: true, names: true, run: func(e *env, h handle, name string) nfs3.Nfsstat3 { return e.lookup(h, name).Status }},
	{name: "access", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.access(h, accessAll).Status }},
	{name: "readlink", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.readlink(h).Status }},
	{name: "read", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.read(h, 0, 100).Status }},
	{name: "write", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.write(h, 0, "x", nfs3.UNSTABLE).Status }},
	{name: "create", dir: true, names: true, run: func(e *env, h handle, name string) nfs3.Nfsstat3 {
		return e.create(h, name, guarded(mode(0o644))).Status
	}},
	{name: "mkdir", dir: true, names: true, run: func(e *env, h handle, name string) nfs3.Nfsstat3 {
		return e.mkdir(h, name, mode(0o755)).Status
	}},
	{name: "symlink", dir: true, names: true, run: func(e *env, h handle, name string) nfs3.Nfsstat3 {
		return e.symlink(h, name, "target").Status
	}},
	{name: "mknod", dir: true, names: true, run: func(e *env, h handle, name string) nfs3.Nfsstat3 {
		return e.mknod(h, name, node(nfs3.NF3FIFO)).Status
	}},
	{name: "remove", dir: true, names: true, run: func(e *env, h handle, name string) nfs3.Nfsstat3 { return e.remove(h, name).Status }},
	{name: "rmdir", dir: true, names: true, run: func(e *env, h handle, name string) nfs3.Nfsstat3 { return e.rmdir(h, name).Status }},
	{name: "rename-from", dir: true, names: true, run: func(e *env, h handle, name string) nfs3.Nfsstat3 {
		return e.rename(h, name, e.dir, "to").Status
	}},
	{name: "rename-to", dir: true, names: true, run: func(e *env, h handle, name string) nfs3.Nfsstat3 {
		return e.rename(e.dir, "source", h, name).Status
	}},
	{name: "link-file", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.link(h, e.dir, "to").Status }},
	{name: "link-dir", dir: true, names: true, run: func(e *env, h handle, name string) nfs3.Nfsstat3 {
		return e.link(e.find(e.dir, "source"), h, name).Status
	}},
	{name: "readdir", dir: true, run: func(e *env, h handle, _ string) nfs3.Nfsstat3 {
		return e.readdir(nfs3.READDIR3args{Dir: fh(h), Count: 4096}).Status
	}},
	{name: "readdirplus", dir: true, run: func(e *env, h handle, _ string) nfs3.Nfsstat3 {
		return e.readdirplus(nfs3.READDIRPLUS3args{Dir: fh(h), Dircount: 4096, Maxcount: 8192}).Status
	}},
	{name: "fsstat", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.fsstat(h).Status }},
	{name: "fsinfo", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.fsinfo(h).Status }},
	{name: "pathconf", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.pathconf(h).Status }},
	{name: "commit", run: func(e *env, h handle, _ string) nfs3.Nfsstat3 { return e.commit(h, 0, 0).Status }},
}

// handleTests are a test for every operation, with source, the file that some of
// them want, in place.
func handleTests(judge func(e *env, op *operation)) []test {
	var all []test
	for i := range operations {
		op := &operations[i]
		all = append(all, test{name: op.name, run: func(e *env) {
			e.file(e.dir, "source", "")
			judge(e, op)
		}})
	}
	return all
}

func staleHandle(e *env, op *operation) {
	var h handle
	switch {
	case op.dir:
		h = e.mustMkdir(e.dir, "gone")
		e.ok(e.rmdir(e.dir, "gone").Status)
	case op.name == "readlink":
		h = e.mustSymlink(e.dir, "gone", "x")
		e.ok(e.remove(e.dir, "gone").Status)
	default:
		h = e.file(e.dir, "gone", "data")
		e.ok(e.remove(e.dir, "gone").Status)
	}
	e.gotStatus(op.run(e, h, "name"), nfs3.NFS3ERR_STALE)
}

// badHandle makes an operation on what never was a handle: too short for one,
// and as long as one can be.
func badHandle(e *env, op *operation) {
	// Without any bytes some servers cannot decode it.
	e.gotStatus(op.run(e, handle{}, "name"), nfs3.NFS3ERR_BADHANDLE, garbageArgs)
	e.gotStatus(op.run(e, handle{0xee, 0xee, 0xee}, "name"), nfs3.NFS3ERR_BADHANDLE)
	// Of that size it might have been one, of another file system.
	e.gotStatus(op.run(e, bytes.Repeat([]byte{0xa5}, nfs3.NFS3_FHSIZE), "name"), nfs3.NFS3ERR_BADHANDLE, nfs3.NFS3ERR_STALE)
}

// notDirTests make operations on directories on a file.
func notDirTests() []test {
	var all []test
	for i := range operations {
		if op := &operations[i]; op.dir {
			all = append(all, test{name: op.name, run: func(e *env) {
				h := e.file(e.dir, "source", "")
				e.gotStatus(op.run(e, h, "name"), nfs3.NFS3ERR_NOTDIR)
				link := e.mustSymlink(e.dir, "link", ".")
				e.gotStatus(op.run(e, link, "name"), nfs3.NFS3ERR_NOTDIR)
			}})
		}
	}
	return all
}
