package server

import (
	"bytes"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

func TestNull(t *testing.T) {
	r := newRig(t, memfs.Options{})
	r.auth = oncrpc.Auth{}
	r.call(nfs3.NFSPROC3_NULL, xdr.Void{}, xdr.Void{})
	if n := r.srv.Stats().Calls["NULL"]; n != 1 {
		t.Errorf("%d calls of NULL counted", n)
	}
}

func TestGetattr(t *testing.T) {
	r := newRig(t, memfs.Options{})
	h := r.as(alice).file(r.root, "f", 0o640, "hello")
	a := r.attr(h)
	if a.Type != nfs3.NF3REG || a.Mode != 0o640 || a.Nlink != 1 || a.Uid != 1000 || a.Gid != 1000 || a.Size != 5 || a.Fileid == 0 {
		t.Errorf("attributes of a file: %+v", a)
	}
	if a := r.attr(r.root); a.Type != nfs3.NF3DIR || a.Mode != 0o777 {
		t.Errorf("attributes of the root: %+v", a)
	}
}

// TestBadHandles gives every procedure handles that are none: the status says
// so, and the file system is not asked.
func TestBadHandles(t *testing.T) {
	r := newRig(t, memfs.Options{})
	forged := bytes.Clone(r.root)
	forged[len(forged)-1] ^= 1
	file := r.file(r.root, "f", 0o644, "")
	r.status(r.remove(r.root, "f").Status, nfs3.NFS3_OK)
	for _, x := range []struct {
		what string
		h    []byte
		want nfs3.Nfsstat3
	}{
		{"empty", nil, nfs3.NFS3ERR_BADHANDLE},
		{"one byte", []byte{1}, nfs3.NFS3ERR_BADHANDLE},
		{"64 bytes of nothing", make([]byte, 64), nfs3.NFS3ERR_BADHANDLE},
		{"forged", forged, nfs3.NFS3ERR_STALE},
		{"of a file that is gone", file, nfs3.NFS3ERR_STALE},
	} {
		for _, got := range r.everything(x.h) {
			if got.status != x.want {
				t.Errorf("%s with a handle that is %s: %v, want %v", got.proc.Name, x.what, got.status, x.want)
			}
		}
	}
}

type answer struct {
	proc   *xdr.Proc
	status nfs3.Nfsstat3
}

// everything calls every procedure with the handle h.
func (r *rig) everything(h []byte) (out []answer) {
	r.t.Helper()
	o, d := fh(h), at(h, "name")
	for _, x := range []struct {
		proc *xdr.Proc
		args xdr.Appender
		res  interface {
			xdr.Unmarshaler
			Stat() *nfs3.Nfsstat3
		}
	}{
		{nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: o}, &nfs3.GETATTR3res{}},
		{nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{Object: o}, &nfs3.SETATTR3res{}},
		{nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: d}, &nfs3.LOOKUP3res{}},
		{nfs3.NFSPROC3_ACCESS, &nfs3.ACCESS3args{Object: o, Access: 63}, &nfs3.ACCESS3res{}},
		{nfs3.NFSPROC3_READLINK, &nfs3.READLINK3args{Symlink: o}, &nfs3.READLINK3res{}},
		{nfs3.NFSPROC3_READ, &nfs3.READ3args{File: o, Count: 8}, &nfs3.READ3res{Resok: nfs3.READ3resok{Data: make([]byte, 8)}}},
		{nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: o}, &nfs3.WRITE3res{}},
		{nfs3.NFSPROC3_CREATE, &nfs3.CREATE3args{Where: d}, &nfs3.CREATE3res{}},
		{nfs3.NFSPROC3_MKDIR, &nfs3.MKDIR3args{Where: d}, &nfs3.MKDIR3res{}},
		{nfs3.NFSPROC3_SYMLINK, &nfs3.SYMLINK3args{Where: d, Symlink: nfs3.Symlinkdata3{SymlinkData: []byte("x")}}, &nfs3.SYMLINK3res{}},
		{nfs3.NFSPROC3_MKNOD, &nfs3.MKNOD3args{Where: d, What: nfs3.Mknoddata3{Type: nfs3.NF3FIFO}}, &nfs3.MKNOD3res{}},
		{nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: d}, &nfs3.REMOVE3res{}},
		{nfs3.NFSPROC3_RMDIR, &nfs3.RMDIR3args{Object: d}, &nfs3.RMDIR3res{}},
		{nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: at(r.root, "x"), To: d}, &nfs3.RENAME3res{}},
		{nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: d, To: at(r.root, "x")}, &nfs3.RENAME3res{}},
		{nfs3.NFSPROC3_LINK, &nfs3.LINK3args{File: o, Link: at(r.root, "x")}, &nfs3.LINK3res{}},
		{nfs3.NFSPROC3_LINK, &nfs3.LINK3args{File: fh(r.root), Link: d}, &nfs3.LINK3res{}},
		{nfs3.NFSPROC3_READDIR, &nfs3.READDIR3args{Dir: o, Count: 4096}, &nfs3.READDIR3res{}},
		{nfs3.NFSPROC3_READDIRPLUS, &nfs3.READDIRPLUS3args{Dir: o, Dircount: 4096, Maxcount: 4096}, &nfs3.READDIRPLUS3res{}},
		{nfs3.NFSPROC3_FSSTAT, &nfs3.FSSTAT3args{Fsroot: o}, &nfs3.FSSTAT3res{}},
		{nfs3.NFSPROC3_FSINFO, &nfs3.FSINFO3args{Fsroot: o}, &nfs3.FSINFO3res{}},
		{nfs3.NFSPROC3_PATHCONF, &nfs3.PATHCONF3args{Object: o}, &nfs3.PATHCONF3res{}},
		{nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: o}, &nfs3.COMMIT3res{}},
	} {
		r.call(x.proc, x.args, x.res)
		out = append(out, answer{x.proc, *x.res.Stat()})
	}
	return out
}

func TestSetattr(t *testing.T) {
	r := newRig(t, memfs.Options{}).as(alice)
	h := r.file(r.root, "f", 0o600, "hello")
	set := mode(0o444)
	set.Size = nfs3.SetSize3{SetIt: true, Size: 3}
	set.Mtime.SetIt = nfs3.SET_TO_CLIENT_TIME
	set.Mtime.Mtime = nfs3.Nfstime3{Seconds: 12345, Nseconds: 678}
	res := r.setattr(h, set)
	r.status(res.Status, nfs3.NFS3_OK)
	r.wcc(&res.Resok.ObjWcc, h, true)
	if a := r.attr(h); a.Size != 3 || a.Mode != 0o444 || a.Mtime != set.Mtime.Mtime {
		t.Errorf("attributes %+v", a)
	}
	if b := res.Resok.ObjWcc.Before.Attributes; b.Size != 5 {
		t.Errorf("size before the call %d, want 5", b.Size)
	}

	refused := r.as(bob).setattr(h, mode(0o777))
	r.status(refused.Status, nfs3.NFS3ERR_PERM)
	if !refused.Resfail.ObjWcc.After.AttributesFollow {
		t.Error("a refused SETATTR sends no attributes")
	}
}

func TestSetattrGuard(t *testing.T) {
	r := newRig(t, memfs.Options{})
	h := r.file(r.root, "f", 0o600, "")
	ctime := r.attr(h).Ctime
	args := nfs3.SETATTR3args{Object: fh(h), NewAttributes: mode(0o640), Guard: nfs3.Sattrguard3{Check: true, ObjCtime: ctime}}
	var res nfs3.SETATTR3res
	args.Guard.ObjCtime.Nseconds ^= 1
	r.call(nfs3.NFSPROC3_SETATTR, &args, &res)
	r.status(res.Status, nfs3.NFS3ERR_NOT_SYNC)
	r.wcc(&res.Resfail.ObjWcc, h, true)
	args.Guard.ObjCtime = ctime
	r.call(nfs3.NFSPROC3_SETATTR, &args, &res)
	r.status(res.Status, nfs3.NFS3_OK)
}

// TestSetattrServerTime takes the clock of the file system, not the times beside
// the wish for it.
func TestSetattrServerTime(t *testing.T) {
	now := time.Unix(1000000, 0)
	r := newRig(t, memfs.Options{Now: func() time.Time { return now }})
	h := r.file(r.root, "f", 0o600, "")
	now = now.Add(time.Hour)
	var set nfs3.Sattr3
	set.Atime.SetIt, set.Mtime.SetIt = nfs3.SET_TO_SERVER_TIME, nfs3.SET_TO_SERVER_TIME
	r.status(r.setattr(h, set).Status, nfs3.NFS3_OK)
	if a := r.attr(h); int64(a.Mtime.Seconds) != now.Unix() || int64(a.Atime.Seconds) != now.Unix() {
		t.Errorf("times %+v, want %d", a, now.Unix())
	}
}

// TestTruncateByOwner is ftruncate of a file that its owner has made read-only
// after opening it. Others, and other attributes, are refused as before.
func TestTruncateByOwner(t *testing.T) {
	r := newRig(t, memfs.Options{}).as(alice)
	h := r.file(r.root, "f", 0o444, "hello")
	size := nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: 1}}
	size.Mtime.SetIt = nfs3.SET_TO_SERVER_TIME
	r.status(r.as(bob).setattr(h, size).Status, nfs3.NFS3ERR_ACCES)
	r.status(r.as(alice).setattr(h, size).Status, nfs3.NFS3_OK)
	if a := r.attr(h); a.Size != 1 {
		t.Errorf("size %d, want 1", a.Size)
	}
	size.Size.Size = 0
	size.Uid = nfs3.SetUid3{SetIt: true, Uid: 0}
	if res := r.setattr(h, size); res.Status == nfs3.NFS3_OK {
		t.Error("the owner gave its file away")
	}
}

func TestAccess(t *testing.T) {
	r := newRig(t, memfs.Options{}).as(alice)
	h := r.file(r.root, "f", 0o640, "")
	for _, x := range []struct {
		who        oncrpc.AuthSys
		want, have uint32
	}{
		{alice, nfs3.ACCESS3_READ | nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXECUTE, nfs3.ACCESS3_READ | nfs3.ACCESS3_MODIFY},
		{alice, nfs3.ACCESS3_READ, nfs3.ACCESS3_READ},
		{bob, nfs3.ACCESS3_READ | nfs3.ACCESS3_MODIFY, 0},
		{alice, 0xffffffc0, 0}, // bits that the RFC does not name
	} {
		res := r.as(x.who).access(h, x.want)
		r.status(res.Status, nfs3.NFS3_OK)
		if res.Resok.Access != x.have {
			t.Errorf("uid %d asks for %#x: %#x, want %#x", x.who.UID, x.want, res.Resok.Access, x.have)
		}
		r.post(&res.Resok.ObjAttributes, h)
	}
}
