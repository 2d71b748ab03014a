package server

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// twoExports is a server of /home, and of /ro read-only.
func twoExports(t *testing.T) *rig {
	home, ro := memfs.New(memfs.Options{Mode: 0o777}), memfs.New(memfs.Options{Mode: 0o777})
	table, err := export.NewTable(export.Key{7}, export.Export{Path: "/", FS: home}, export.Export{Path: "/ro", FS: ro, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, home, nfsserver.Options{Exports: table})
	r.fs = home
	return r
}

func TestMnt(t *testing.T) {
	r := twoExports(t)
	r.put("/dir/file", []byte("x"))
	closed := r.dir(r.root, "closed", 0o700)
	r.dir(closed, "inner", 0o777)
	dir := r.find(r.root, "dir")
	for _, x := range []struct {
		path string
		want []byte
	}{
		{"", r.root}, {"/", r.root}, {"//", r.root}, {"/dir", dir}, {"/dir/", dir}, {"dir", dir}, {"/x/../dir/.", dir},
	} {
		res := r.mnt(x.path)
		if res.FhsStatus != mount3.MNT3_OK {
			t.Errorf("MNT %q: %v", x.path, res.FhsStatus)
			continue
		}
		if !bytes.Equal(res.Mountinfo.Fhandle, x.want) {
			t.Errorf("MNT %q: the handle of something else", x.path)
		}
		if !slices.Equal(res.Mountinfo.AuthFlavors, []int32{1}) {
			t.Errorf("MNT %q: flavors %v", x.path, res.Mountinfo.AuthFlavors)
		}
	}
	for _, x := range []struct {
		path string
		want mount3.Mountstat3
	}{
		{"/none", mount3.MNT3ERR_NOENT},
		{"/dir/file", mount3.MNT3ERR_NOTDIR},
		{"/dir/file/x", mount3.MNT3ERR_NOTDIR},
		{"/closed/inner", mount3.MNT3ERR_ACCES},
		{"/a\x00b", mount3.MNT3ERR_INVAL},
		{"/" + strings.Repeat("x", 300), mount3.MNT3ERR_NAMETOOLONG},
	} {
		if res := r.as(alice).mnt(x.path); res.FhsStatus != x.want {
			t.Errorf("MNT %.20q: %v, want %v", x.path, res.FhsStatus, x.want)
		}
	}
	if log := r.log.String(); !strings.Contains(log, "mounted") || !strings.Contains(log, "client=127.0.0.1 path=/dir ") {
		t.Errorf("the log does not name who mounted what:\n%s", log)
	}
}

// TestReadOnlyExport refuses what would change an export that is read-only, and
// nothing else; its handles are worth nothing in the other export.
func TestReadOnlyExport(t *testing.T) {
	r := twoExports(t)
	ro := r.mount("/ro")
	for _, x := range r.everything(ro) {
		changes := slices.Contains([]*xdr.Proc{
			nfs3.NFSPROC3_SETATTR, nfs3.NFSPROC3_WRITE, nfs3.NFSPROC3_CREATE, nfs3.NFSPROC3_MKDIR, nfs3.NFSPROC3_SYMLINK,
			nfs3.NFSPROC3_MKNOD, nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_RMDIR, nfs3.NFSPROC3_RENAME, nfs3.NFSPROC3_LINK, nfs3.NFSPROC3_COMMIT,
		}, x.proc)
		if (x.status == nfs3.NFS3ERR_ROFS) != changes {
			t.Errorf("%s: %v", x.proc.Name, x.status)
		}
	}
	if res := r.access(ro, 63); res.Resok.Access != nfs3.ACCESS3_READ|nfs3.ACCESS3_LOOKUP {
		t.Errorf("ACCESS grants %#x", res.Resok.Access)
	}
}

// TestMountLists walks DUMP and EXPORT, in both versions and without a
// credential, as showmount does.
func TestMountLists(t *testing.T) {
	r := twoExports(t)
	r.dir(r.root, "dir", 0o755)
	r.mount("/dir")
	r.mount("/dir")
	auth := r.auth
	r.auth = oncrpc.Auth{}
	for _, p := range []*xdr.Program{&mount3.MOUNT_V3, &mount3.MOUNT_V1} {
		var exports mount3.Exports
		r.call(p.Proc(5), xdr.Void{}, &exports)
		if len(exports) != 2 || string(exports[0].ExDir) != "/" || string(exports[1].ExDir) != "/ro" || len(exports[0].ExGroups) != 0 {
			t.Errorf("%s: exports %q", p.Name, exports)
		}
		var mounts mount3.Mountlist
		r.call(p.Proc(2), xdr.Void{}, &mounts)
		if len(mounts) != 2 || string(mounts[1].MlHostname) != "127.0.0.1" || string(mounts[1].MlDirectory) != "/dir" {
			t.Errorf("%s: mounts %q", p.Name, mounts)
		}
		r.call(p.Proc(0), xdr.Void{}, xdr.Void{})
	}
	r.auth = auth
	count := func() int {
		var mounts mount3.Mountlist
		r.call(mount3.MOUNTPROC3_DUMP, xdr.Void{}, &mounts)
		return len(mounts)
	}
	r.call(mount3.MOUNTPROC3_UMNT, &mount3.Mountargs{Path: []byte("/dir")}, xdr.Void{})
	if n := count(); n != 1 {
		t.Errorf("%d mounts after UMNT", n)
	}
	r.call(mount3.MOUNTPROC3_UMNTALL, xdr.Void{}, xdr.Void{})
	if n := count(); n != 0 {
		t.Errorf("%d mounts after UMNTALL", n)
	}
}

// TestMountsAreBounded mounts more than DUMP remembers.
func TestMountsAreBounded(t *testing.T) {
	const most = 1024
	r := newRig(t, memfs.Options{})
	for i := range most + 10 {
		r.mount("/" + strings.Repeat("/", i%500) + strings.Repeat("./", i/500))
	}
	var mounts mount3.Mountlist
	r.call(mount3.MOUNTPROC3_DUMP, xdr.Void{}, &mounts)
	if len(mounts) > most {
		t.Errorf("%d mounts are remembered", len(mounts))
	}
}

func TestPortmap(t *testing.T) {
	r := newRig(t, memfs.Options{})
	r.auth = oncrpc.Auth{}
	_, p, err := net.SplitHostPort(r.addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		m    rpcbind.Mapping
		want int
	}{
		{rpcbind.Mapping{Prog: 100003, Vers: 3, Prot: 6}, port},
		{rpcbind.Mapping{Prog: 100005, Vers: 3, Prot: 6}, port},
		{rpcbind.Mapping{Prog: 100000, Vers: 2, Prot: 6}, port},
		{rpcbind.Mapping{Prog: 100003, Vers: 4, Prot: 6}, port}, // it says itself that it has no version 4
		{rpcbind.Mapping{Prog: 100003, Vers: 3, Prot: 17}, 0},
		{rpcbind.Mapping{Prog: 100021, Vers: 4, Prot: 6}, 0},
	} {
		var res rpcbind.PMAPPROC_GETPORTres
		r.call(rpcbind.PMAPPROC_GETPORT, &x.m, &res)
		if int(res.Value) != x.want {
			t.Errorf("GETPORT %+v: %d, want %d", x.m, res.Value, x.want)
		}
	}
	addr := fmt.Sprintf("127.0.0.1.%d.%d", port>>8, port&255)
	for _, x := range []struct {
		proc *xdr.Proc
		q    rpcbind.Rpcb
		want string
	}{
		{rpcbind.RPCBVERS_RPCBPROC_GETADDR, rpcbind.Rpcb{RProg: 100003, RVers: 3, RNetid: []byte("tcp")}, addr},
		{rpcbind.RPCBVERS4_RPCBPROC_GETADDR, rpcbind.Rpcb{RProg: 100005, RVers: 3}, addr},
		{rpcbind.RPCBVERS_RPCBPROC_GETADDR, rpcbind.Rpcb{RProg: 100003, RVers: 3, RNetid: []byte("udp")}, ""},
		{rpcbind.RPCBVERS_RPCBPROC_GETADDR, rpcbind.Rpcb{RProg: 100003, RVers: 3, RNetid: []byte("tcp6")}, ""},
		{rpcbind.RPCBVERS_RPCBPROC_GETADDR, rpcbind.Rpcb{RProg: 400122, RVers: 1}, ""},
		{rpcbind.RPCBPROC_GETVERSADDR, rpcbind.Rpcb{RProg: 100003, RVers: 3}, addr},
		{rpcbind.RPCBPROC_GETVERSADDR, rpcbind.Rpcb{RProg: 100003, RVers: 4}, ""},
	} {
		var res rpcbind.RPCBVERS_RPCBPROC_GETADDRres
		r.call(x.proc, &x.q, &res)
		if string(res.Value) != x.want {
			t.Errorf("%v %+v: %q, want %q", x.proc, x.q, res.Value, x.want)
		}
	}
}

func TestPortmapListsAndRefuses(t *testing.T) {
	r := newRig(t, memfs.Options{})
	var v2 rpcbind.Pmaplist
	r.call(rpcbind.PMAPPROC_DUMP, xdr.Void{}, &v2)
	var v3, v4 rpcbind.RpcblistPtr
	r.call(rpcbind.RPCBVERS_RPCBPROC_DUMP, xdr.Void{}, &v3)
	r.call(rpcbind.RPCBVERS4_RPCBPROC_DUMP, xdr.Void{}, &v4)
	if len(v2) != 7 || len(v3) != 7 || len(v4) != 7 {
		t.Errorf("%d, %d and %d programs, want 7", len(v2), len(v3), len(v4))
	}
	for _, p := range []*xdr.Proc{rpcbind.PMAPPROC_SET, rpcbind.PMAPPROC_UNSET} {
		res := rpcbind.PMAPPROC_SETres{Value: true}
		r.call(p, &rpcbind.Mapping{Prog: 100003, Vers: 3, Prot: 6, Port: 1}, &res)
		if res.Value {
			t.Errorf("%v was granted", p)
		}
	}
	for _, p := range []*xdr.Proc{rpcbind.RPCBVERS_RPCBPROC_SET, rpcbind.RPCBVERS4_RPCBPROC_UNSET} {
		res := rpcbind.RPCBVERS_RPCBPROC_SETres{Value: true}
		r.call(p, &rpcbind.Rpcb{RProg: 100003, RVers: 3}, &res)
		if res.Value {
			t.Errorf("%v was granted", p)
		}
	}
}
