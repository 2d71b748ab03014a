package server

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestBadTimes refuses, in every procedure that sets attributes, times that there are not
// and ways to set them that there are not, and changes nothing.
func TestBadTimes(t *testing.T) {
	r := newRig(t, memfs.Options{})
	h := r.file(r.root, "f", 0o644, "")
	before := r.attr(h)
	where := nfs3.Diropargs3{Dir: fh(r.root), Name: []byte("new")}
	calls := map[*xdr.Proc]func(s nfs3.Sattr3) (xdr.Appender, nfs3.Result){
		nfs3.NFSPROC3_SETATTR: func(s nfs3.Sattr3) (xdr.Appender, nfs3.Result) {
			return &nfs3.SETATTR3args{Object: fh(h), NewAttributes: s}, new(nfs3.SETATTR3res)
		},
		nfs3.NFSPROC3_CREATE: func(s nfs3.Sattr3) (xdr.Appender, nfs3.Result) {
			return &nfs3.CREATE3args{Where: where, How: nfs3.Createhow3{Mode: nfs3.GUARDED, ObjAttributes: s}}, new(nfs3.CREATE3res)
		},
		nfs3.NFSPROC3_MKDIR: func(s nfs3.Sattr3) (xdr.Appender, nfs3.Result) {
			return &nfs3.MKDIR3args{Where: where, Attributes: s}, new(nfs3.MKDIR3res)
		},
		nfs3.NFSPROC3_SYMLINK: func(s nfs3.Sattr3) (xdr.Appender, nfs3.Result) {
			return &nfs3.SYMLINK3args{Where: where, Symlink: nfs3.Symlinkdata3{SymlinkAttributes: s, SymlinkData: []byte("x")}}, new(nfs3.SYMLINK3res)
		},
		nfs3.NFSPROC3_MKNOD: func(s nfs3.Sattr3) (xdr.Appender, nfs3.Result) {
			return &nfs3.MKNOD3args{Where: where, What: nfs3.Mknoddata3{Type: nfs3.NF3FIFO, PipeAttributes: s}}, new(nfs3.MKNOD3res)
		},
	}
	late := nfs3.Nfstime3{Seconds: 1, Nseconds: 1e9}
	for p, call := range calls {
		for _, s := range []nfs3.Sattr3{
			{Atime: nfs3.SetAtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Atime: late}},
			{Mtime: nfs3.SetMtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Mtime: late}},
		} {
			args, res := call(s)
			r.call(p, args, res)
			if *res.Stat() != nfs3.NFS3ERR_INVAL {
				t.Errorf("%v with a second of nanoseconds: %v", p, *res.Stat())
			}
		}
		for _, s := range []nfs3.Sattr3{{Atime: nfs3.SetAtime{SetIt: 3}}, {Mtime: nfs3.SetMtime{SetIt: -1}}} {
			args, res := call(s)
			reply, err := r.client.Call(t.Context(), p, r.auth, args, res)
			reply.Release()
			if refused, ok := errors.AsType[*oncrpc.AcceptError](err); !ok || refused.Stat != oncrpc.GarbageArgs {
				t.Errorf("%v with another time_how: %v", p, err)
			}
		}
	}
	if after := r.attr(h); after != before {
		t.Errorf("%+v, was %+v", after, before)
	}
	var res nfs3.LOOKUP3res
	r.call(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: where}, &res)
	r.status(res.Status, nfs3.NFS3ERR_NOENT)
}
