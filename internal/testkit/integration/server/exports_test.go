package server

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// tableRig is a server of a table that the test replaces. Its first export, "/",
// is everybody's.
func tableRig(t *testing.T, more ...export.Export) (*rig, *export.Table) {
	t.Helper()
	fs := memfs.New(memfs.Options{Mode: 0o777})
	table, err := export.NewTable(export.Key{7}, append([]export.Export{{Path: "/", FS: fs}}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, fs, nfsserver.Options{Exports: table})
	r.fs = fs
	return r, table
}

// here and away are rules for the client of the tests and for another.
var (
	here = export.Rule{Match: "127.0.0.1"}
	away = export.Rule{Match: "192.0.2.0/24"}
)

// TestMntRefused mounts what a client may not: an export of others, and, with
// the same answer whether it exists or not, what lies below it.
func TestMntRefused(t *testing.T) {
	closed := memfs.New(memfs.Options{Mode: 0o777})
	secure := here
	secure.Secure = true
	r, _ := tableRig(t,
		export.Export{Path: "/away", FS: closed, Clients: []export.Rule{away}},
		export.Export{Path: "/secure", FS: closed, Clients: []export.Rule{secure}},
		export.Export{Path: "/both", FS: closed, Clients: []export.Rule{away, here}})
	root, _, err := closed.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := closed.Create(t.Context(), root, "dir", &vfs.CreateHow{Type: vfs.TypeDir}); err != nil {
		t.Fatal(err)
	}
	r.mnt("/away") // first, since of many refusals only some are logged
	for path, want := range map[string]mount3.Mountstat3{
		"/away": mount3.MNT3ERR_ACCES, "/away/": mount3.MNT3ERR_ACCES, "/away/dir": mount3.MNT3ERR_ACCES,
		"/away/none": mount3.MNT3ERR_ACCES, "/x/../away/dir/": mount3.MNT3ERR_ACCES,
		"/secure": mount3.MNT3ERR_ACCES, // an ordinary program's port
		"/both":   mount3.MNT3_OK, "/both/dir": mount3.MNT3_OK, "/both/none": mount3.MNT3ERR_NOENT,
		"/both/../away": mount3.MNT3ERR_ACCES, "/awa": mount3.MNT3ERR_NOENT, "/away2": mount3.MNT3ERR_NOENT,
	} {
		if res := r.mnt(path); res.FhsStatus != want {
			t.Errorf("MNT %q: %v, want %v", path, res.FhsStatus, want)
		} else if want != mount3.MNT3_OK && len(res.Mountinfo.Fhandle) != 0 {
			t.Errorf("MNT %q: refused with a handle", path)
		}
	}
	if log := r.log.String(); !strings.Contains(log, "mount refused") || !strings.Contains(log, "path=/away ") {
		t.Errorf("the log does not name the refusal:\n%s", log)
	}
}

// TestMntQuestions: a client without a mount asks whether a path is a directory. That is no refusal, as one of a path in no
// export is.
func TestMntQuestions(t *testing.T) {
	r, _ := tableRig(t)
	r.file(r.root, "f", 0o644, "x")
	for path, want := range map[string]mount3.Mountstat3{"/f": mount3.MNT3ERR_NOTDIR, "/f/x": mount3.MNT3ERR_NOTDIR, "/none": mount3.MNT3ERR_NOENT} {
		if res := r.mnt(path); res.FhsStatus != want {
			t.Errorf("MNT %q: %v, want %v", path, res.FhsStatus, want)
		}
	}
	if log := r.log.String(); strings.Contains(log, "refused") {
		t.Error(log)
	}
}

// TestMntPaths mounts paths that try to get out, or in by a detour.
func TestMntPaths(t *testing.T) {
	r, _ := tableRig(t)
	dir := r.dir(r.root, "dir", 0o755)
	inner := r.dir(dir, "inner", 0o755)
	for name, target := range map[string]string{"up": "..", "out": "/etc", "in": "dir", "loop": "loop"} {
		if _, _, _, err := r.fs.Create(t.Context(), r.below(), name, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: target}); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		path string
		want []byte
	}{
		{"/..", r.root}, {"/../../..", r.root}, {"../dir", dir}, {"/dir/..", r.root}, {"/dir/../../dir/inner", inner},
		{"/dir/inner///", inner}, {"//dir//inner/.", inner}, {"/none/../dir", dir}, {"/in", dir}, {"/in/inner", inner},
		{"/dir/inner" + strings.Repeat("/", 1024-len("/dir/inner")), inner},
	} {
		if res := r.mnt(x.path); res.FhsStatus != mount3.MNT3_OK || !bytes.Equal(res.Mountinfo.Fhandle, x.want) {
			t.Errorf("MNT %.40q: %v, or something else's handle", x.path, res.FhsStatus)
		}
	}
	for path, want := range map[string]mount3.Mountstat3{
		"/up": mount3.MNT3ERR_ACCES, "/out": mount3.MNT3ERR_NOENT, "/loop/x": mount3.MNT3ERR_INVAL, "/dir\x00": mount3.MNT3ERR_INVAL, "\x00": mount3.MNT3ERR_INVAL,
		"/\xff\xfe": mount3.MNT3ERR_NOENT, "/" + strings.Repeat("n/", 511): mount3.MNT3ERR_NOENT,
	} {
		if res := r.mnt(path); res.FhsStatus != want {
			t.Errorf("MNT %.40q: %v, want %v", path, res.FhsStatus, want)
		}
	}
	// More than a path can have is no path, but garbage.
	for _, p := range []*xdr.Proc{mount3.MOUNTPROC3_MNT, mount3.MOUNTPROC3_UMNT} {
		r.accept(p, raw(xdr.AppendOpaque(nil, make([]byte, 1025))), oncrpc.AcceptError{Stat: oncrpc.GarbageArgs})
	}
}

// below is the root of the file system below the first export.
func (r *rig) below() vfs.Handle {
	r.t.Helper()
	h, _, err := r.fs.Root(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

// TestExportGroups lists the clients of exports as they were written.
func TestExportGroups(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	r, _ := tableRig(t, export.Export{Path: "/some", FS: fs, Clients: []export.Rule{
		{Match: "10.0.0.0/8"}, {Match: "Host.example.org"}, {Match: "*.example.org"}, {Match: "*"},
	}})
	for _, p := range []*xdr.Proc{mount3.MOUNTPROC3_EXPORT, mount3.MOUNTPROC_EXPORT} {
		var exports mount3.Exports
		r.call(p, xdr.Void{}, &exports)
		if len(exports) != 2 || len(exports[0].ExGroups) != 0 {
			t.Fatalf("%v: %q", p, exports)
		}
		var groups []string
		for _, g := range exports[1].ExGroups {
			groups = append(groups, string(g.GrName))
		}
		if !slices.Equal(groups, []string{"10.0.0.0/8", "Host.example.org", "*.example.org", "*"}) {
			t.Errorf("%v: groups %q", p, groups)
		}
	}
}

// TestLargestExportList lists as many exports and rules as there may be, each as
// long as it may be.
func TestLargestExportList(t *testing.T) {
	fs := memfs.New(memfs.Options{Mode: 0o777})
	long := strings.Repeat(strings.Repeat("h", 59)+".", 4)[:236]
	exports := []export.Export{{Path: "/", FS: fs}}
	for i := 1; i < export.MaxExports; i++ {
		exports = append(exports, export.Export{
			Path: fmt.Sprintf("/%04d", i) + strings.Repeat("/"+strings.Repeat("p", 200), 5), ID: uint32(i), FS: fs,
			Clients: []export.Rule{{Match: fmt.Sprintf("*.%04d.%s", i, strings.TrimSuffix(long, "."))}},
		})
	}
	table, err := export.NewTable(export.Key{7}, exports...)
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, fs, nfsserver.Options{Exports: table})
	var list mount3.Exports
	r.call(mount3.MOUNTPROC3_EXPORT, xdr.Void{}, &list)
	if len(list) != export.MaxExports || len(list[1].ExGroups) != 1 || len(list[1].ExDir) < 1000 {
		t.Errorf("%d exports", len(list))
	}
}

// TestReload replaces the exports under a client that stays connected: it
// notices at its next call, and its handles are good again when it may return.
func TestReload(t *testing.T) {
	r, table := tableRig(t)
	h := r.file(r.root, "f", 0o666, "hello")
	for _, x := range []struct {
		what        string
		export      export.Export
		read, write nfs3.Nfsstat3
		mnt         mount3.Mountstat3
	}{
		{"as it was", export.Export{Path: "/"}, nfs3.NFS3_OK, nfs3.NFS3_OK, mount3.MNT3_OK},
		{"read-only", export.Export{Path: "/", Clients: []export.Rule{{Match: "127.0.0.0/8", ReadOnly: true}}}, nfs3.NFS3_OK, nfs3.NFS3ERR_ROFS, mount3.MNT3_OK},
		{"for others", export.Export{Path: "/", Clients: []export.Rule{away}}, nfs3.NFS3ERR_ACCES, nfs3.NFS3ERR_ACCES, mount3.MNT3ERR_ACCES},
		{"for this client", export.Export{Path: "/", Clients: []export.Rule{away, here}}, nfs3.NFS3_OK, nfs3.NFS3_OK, mount3.MNT3_OK},
		{"elsewhere", export.Export{Path: "/other"}, nfs3.NFS3ERR_STALE, nfs3.NFS3ERR_STALE, mount3.MNT3ERR_NOENT},
		{"back again", export.Export{Path: "/"}, nfs3.NFS3_OK, nfs3.NFS3_OK, mount3.MNT3_OK},
	} {
		x.export.FS = r.fs
		// Another export beside it, lest "/" stand for the only one.
		if err := table.Replace(x.export, export.Export{Path: "/beside", FS: r.fs}); err != nil {
			t.Fatal(err)
		}
		r.status(r.read(h, 0, 5).Status, x.read)
		r.status(r.write(h, 0, []byte("HELLO"), nfs3.UNSTABLE).Status, x.write)
		if res := r.mnt("/"); res.FhsStatus != x.mnt {
			t.Errorf("%s: MNT is %v, want %v", x.what, res.FhsStatus, x.mnt)
		}
		var list mount3.Exports
		r.call(mount3.MOUNTPROC3_EXPORT, xdr.Void{}, &list)
		if len(list) != 2 || string(list[0].ExDir) != x.export.Path {
			t.Errorf("%s: the exports are %q", x.what, list)
		}
	}
}

// TestSquash creates as callers who are not believed.
func TestSquash(t *testing.T) {
	uid, gid := uint32(77), uint32(88)
	for _, x := range []struct {
		what     string
		rule     export.Rule
		auth     *oncrpc.AuthSys // nil: AUTH_NONE
		uid, gid uint32
	}{
		{"root", export.Rule{Squash: export.SquashRoot}, &root, 65534, 65534},
		{"alice", export.Rule{Squash: export.SquashRoot}, &alice, 1000, 1000},
		{"alice, all", export.Rule{Squash: export.SquashAll, AnonUID: &uid, AnonGID: &gid}, &alice, 77, 88},
		{"nobody", export.Rule{AnonUID: &uid, AnonGID: &gid}, nil, 77, 88},
		{"nobody by default", export.Rule{}, nil, 65534, 65534},
	} {
		t.Run(x.what, func(t *testing.T) {
			r, table := tableRig(t)
			x.rule.Match = "*"
			if err := table.Replace(export.Export{Path: "/", FS: r.fs, Clients: []export.Rule{x.rule}}); err != nil {
				t.Fatal(err)
			}
			if r.auth = (oncrpc.Auth{}); x.auth != nil {
				r.as(*x.auth)
			}
			if a := r.attr(r.file(r.root, "f", 0o600, "")); a.Uid != x.uid || a.Gid != x.gid {
				t.Errorf("the file belongs to %d:%d, want %d:%d", a.Uid, a.Gid, x.uid, x.gid)
			}
		})
	}
}

// TestSquashedIsNotTheOwner has a caller claim the uid of a file's owner, on an
// export that believes nobody: the rights that NFSv3 gives an owner whatever the
// mode says (RFC 1813, section 4.4) are not for it.
func TestSquashedIsNotTheOwner(t *testing.T) {
	r, table := tableRig(t)
	secret := r.as(alice).file(r.root, "secret", 0o600, "x")
	if err := table.Replace(export.Export{Path: "/", FS: r.fs, Clients: []export.Rule{{Match: "*", Squash: export.SquashAll}}}); err != nil {
		t.Fatal(err)
	}
	r.status(r.read(secret, 0, 1).Status, nfs3.NFS3ERR_ACCES)
	r.status(r.write(secret, 0, []byte("y"), nfs3.UNSTABLE).Status, nfs3.NFS3ERR_ACCES)
	r.status(r.setattr(secret, nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true}}).Status, nfs3.NFS3ERR_ACCES)
}
