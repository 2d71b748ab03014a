package server

import (
	"math"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

func TestFsinfo(t *testing.T) {
	r := newRig(t, memfs.Options{ReadMax: 8 << 20, WriteMax: 64 << 10, TimeDelta: 1500 * time.Millisecond})
	var res nfs3.FSINFO3res
	r.call(nfs3.NFSPROC3_FSINFO, &nfs3.FSINFO3args{Fsroot: fh(r.root)}, &res)
	r.status(res.Status, nfs3.NFS3_OK)
	ok := &res.Resok
	r.post(&ok.ObjAttributes, r.root)
	if ok.Rtmax != 1<<20 || ok.Rtpref != 1<<20 || ok.Rtmult == 0 || ok.Wtmax != 64<<10 || ok.Wtpref != 64<<10 || ok.Wtmult == 0 {
		t.Errorf("transfer sizes %+v", ok)
	}
	if ok.Dtpref != 64<<10 || ok.Maxfilesize != math.MaxInt64 || ok.TimeDelta != (nfs3.Nfstime3{Seconds: 1, Nseconds: 5e8}) {
		t.Errorf("limits %+v", ok)
	}
	if want := uint32(nfs3.FSF3_LINK | nfs3.FSF3_SYMLINK | nfs3.FSF3_HOMOGENEOUS | nfs3.FSF3_CANSETTIME); ok.Properties != want {
		t.Errorf("properties %#x, want %#x", ok.Properties, want)
	}
}

func TestFsstat(t *testing.T) {
	r := newRig(t, memfs.Options{MaxBytes: 1 << 30, MaxFiles: 1000})
	r.file(r.root, "f", 0o644, "x")
	var res nfs3.FSSTAT3res
	r.call(nfs3.NFSPROC3_FSSTAT, &nfs3.FSSTAT3args{Fsroot: fh(r.root)}, &res)
	r.status(res.Status, nfs3.NFS3_OK)
	ok := &res.Resok
	r.post(&ok.ObjAttributes, r.root)
	if ok.Tbytes != 1<<30 || ok.Fbytes >= ok.Tbytes || ok.Abytes != ok.Fbytes || ok.Tfiles != 1000 || ok.Ffiles != 998 || ok.Afiles != 998 || ok.Invarsec != 0 {
		t.Errorf("space %+v", ok)
	}
}

func TestPathconf(t *testing.T) {
	r := newRig(t, memfs.Options{MaxLinks: 77})
	var res nfs3.PATHCONF3res
	r.call(nfs3.NFSPROC3_PATHCONF, &nfs3.PATHCONF3args{Object: fh(r.root)}, &res)
	r.status(res.Status, nfs3.NFS3_OK)
	ok := &res.Resok
	r.post(&ok.ObjAttributes, r.root)
	if ok.Linkmax != 77 || ok.NameMax != 255 || !ok.NoTrunc || !ok.ChownRestricted || ok.CaseInsensitive || !ok.CasePreserving {
		t.Errorf("names %+v", ok)
	}
}
