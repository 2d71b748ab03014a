package v3suite

import (
	"bytes"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// The calls, one a procedure, each returning the whole result.

func fh(h handle) nfs3.NfsFh3 { return nfs3.NfsFh3{Data: h} }

func at(dir handle, name string) nfs3.Diropargs3 {
	return nfs3.Diropargs3{Dir: fh(dir), Name: []byte(name)}
}

func mode(m uint32) nfs3.Sattr3 {
	return nfs3.Sattr3{Mode: nfs3.SetMode3{SetIt: true, Mode: m}}
}

func size(n uint64) nfs3.Sattr3 {
	return nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: n}}
}

func owner(uid, gid uint32) nfs3.Sattr3 {
	return nfs3.Sattr3{Uid: nfs3.SetUid3{SetIt: true, Uid: uid}, Gid: nfs3.SetGid3{SetIt: true, Gid: gid}}
}

func guarded(set nfs3.Sattr3) nfs3.Createhow3 {
	return nfs3.Createhow3{Mode: nfs3.GUARDED, ObjAttributes: set}
}

func unchecked(set nfs3.Sattr3) nfs3.Createhow3 {
	return nfs3.Createhow3{Mode: nfs3.UNCHECKED, ObjAttributes: set}
}

func exclusive(verf nfs3.Createverf3) nfs3.Createhow3 {
	return nfs3.Createhow3{Mode: nfs3.EXCLUSIVE, Verf: verf}
}

func (e *env) getattr(h handle) (res nfs3.GETATTR3res) {
	e.call(nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(h)}, &res)
	return res
}

func (e *env) setattr(h handle, set nfs3.Sattr3) nfs3.SETATTR3res {
	return e.setattrIf(h, set, nfs3.Sattrguard3{})
}

func (e *env) setattrIf(h handle, set nfs3.Sattr3, guard nfs3.Sattrguard3) (res nfs3.SETATTR3res) {
	e.call(nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{Object: fh(h), NewAttributes: set, Guard: guard}, &res)
	return res
}

func (e *env) lookup(dir handle, name string) (res nfs3.LOOKUP3res) {
	e.call(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: at(dir, name)}, &res)
	return res
}

func (e *env) access(h handle, want uint32) (res nfs3.ACCESS3res) {
	e.call(nfs3.NFSPROC3_ACCESS, &nfs3.ACCESS3args{Object: fh(h), Access: want}, &res)
	return res
}

func (e *env) readlink(h handle) (res nfs3.READLINK3res) {
	e.call(nfs3.NFSPROC3_READLINK, &nfs3.READLINK3args{Symlink: fh(h)}, &res)
	return res
}

func (e *env) read(h handle, off uint64, n uint32) nfs3.READ3res {
	res := nfs3.READ3res{Resok: nfs3.READ3resok{Data: make([]byte, n)}}
	e.call(nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh(h), Offset: off, Count: n}, &res)
	return res
}

func (e *env) write(h handle, off uint64, data string, how nfs3.StableHow) (res nfs3.WRITE3res) {
	e.call(nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{
		File: fh(h), Offset: off, Count: uint32(len(data)), Stable: how, Data: []byte(data),
	}, &res)
	return res
}

func (e *env) create(dir handle, name string, how nfs3.Createhow3) (res nfs3.CREATE3res) {
	e.call(nfs3.NFSPROC3_CREATE, &nfs3.CREATE3args{Where: at(dir, name), How: how}, &res)
	return res
}

func (e *env) mkdir(dir handle, name string, set nfs3.Sattr3) (res nfs3.MKDIR3res) {
	e.call(nfs3.NFSPROC3_MKDIR, &nfs3.MKDIR3args{Where: at(dir, name), Attributes: set}, &res)
	return res
}

func (e *env) symlink(dir handle, name, target string) (res nfs3.SYMLINK3res) {
	e.call(nfs3.NFSPROC3_SYMLINK, &nfs3.SYMLINK3args{
		Where: at(dir, name), Symlink: nfs3.Symlinkdata3{SymlinkAttributes: mode(0o777), SymlinkData: []byte(target)},
	}, &res)
	return res
}

func (e *env) mknod(dir handle, name string, what nfs3.Mknoddata3) (res nfs3.MKNOD3res) {
	e.call(nfs3.NFSPROC3_MKNOD, &nfs3.MKNOD3args{Where: at(dir, name), What: what}, &res)
	return res
}

func (e *env) remove(dir handle, name string) (res nfs3.REMOVE3res) {
	e.call(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: at(dir, name)}, &res)
	return res
}

func (e *env) rmdir(dir handle, name string) (res nfs3.RMDIR3res) {
	e.call(nfs3.NFSPROC3_RMDIR, &nfs3.RMDIR3args{Object: at(dir, name)}, &res)
	return res
}

func (e *env) rename(fromDir handle, from string, toDir handle, to string) (res nfs3.RENAME3res) {
	e.call(nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: at(fromDir, from), To: at(toDir, to)}, &res)
	return res
}

func (e *env) link(h, dir handle, name string) (res nfs3.LINK3res) {
	e.call(nfs3.NFSPROC3_LINK, &nfs3.LINK3args{File: fh(h), Link: at(dir, name)}, &res)
	return res
}

func (e *env) readdir(a nfs3.READDIR3args) (res nfs3.READDIR3res) {
	e.call(nfs3.NFSPROC3_READDIR, &a, &res)
	return res
}

func (e *env) readdirplus(a nfs3.READDIRPLUS3args) (res nfs3.READDIRPLUS3res) {
	e.call(nfs3.NFSPROC3_READDIRPLUS, &a, &res)
	return res
}

func (e *env) fsstat(h handle) (res nfs3.FSSTAT3res) {
	e.call(nfs3.NFSPROC3_FSSTAT, &nfs3.FSSTAT3args{Fsroot: fh(h)}, &res)
	return res
}

func (e *env) fsinfo(h handle) (res nfs3.FSINFO3res) {
	e.call(nfs3.NFSPROC3_FSINFO, &nfs3.FSINFO3args{Fsroot: fh(h)}, &res)
	return res
}

func (e *env) pathconf(h handle) (res nfs3.PATHCONF3res) {
	e.call(nfs3.NFSPROC3_PATHCONF, &nfs3.PATHCONF3args{Object: fh(h)}, &res)
	return res
}

func (e *env) commit(h handle, off uint64, n uint32) (res nfs3.COMMIT3res) {
	e.call(nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: fh(h), Offset: off, Count: n}, &res)
	return res
}

// What sets the stage: each ends the test if it fails.

func (e *env) attr(h handle) nfs3.Fattr3 {
	last := e.last
	res := e.getattr(h)
	e.ok(res.Status)
	e.last = last // a check between a call and the judgement of its status
	return res.Resok.ObjAttributes
}

func (e *env) find(dir handle, name string) handle {
	res := e.lookup(dir, name)
	e.ok(res.Status)
	return bytes.Clone(res.Resok.Object.Data)
}

// made is the handle of a new object, looked up if the server does not tell.
func (e *env) made(obj *nfs3.PostOpFh3, dir handle, name string) handle {
	if obj.HandleFollows {
		return bytes.Clone(obj.Handle.Data)
	}
	return e.find(dir, name)
}

func (e *env) file(dir handle, name, data string) handle {
	res := e.create(dir, name, guarded(mode(0o666)))
	e.ok(res.Status)
	h := e.made(&res.Resok.Obj, dir, name)
	if data != "" {
		e.ok(e.write(h, 0, data, nfs3.FILE_SYNC).Status)
	}
	return h
}

// mustMkdir makes a directory of mode 0777, past any umask of the server's.
func (e *env) mustMkdir(dir handle, name string) handle {
	res := e.mkdir(dir, name, mode(0o777))
	e.ok(res.Status)
	h := e.made(&res.Resok.Obj, dir, name)
	if e.attr(h).Mode&0o7777 != 0o777 {
		e.ok(e.setattr(h, mode(0o777)).Status)
	}
	return h
}

func (e *env) mustSymlink(dir handle, name, target string) handle {
	res := e.symlink(dir, name, target)
	e.ok(res.Status)
	return e.made(&res.Resok.Obj, dir, name)
}
