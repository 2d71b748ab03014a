package v3suite

import (
	"errors"
	"slices"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/xdr"
)

var mountTests = []test{
	{name: "null", run: func(e *env) { e.mountCall(mount3.MOUNTPROC3_NULL, nothing{}, nothing{}) }},
	{name: "mnt", run: func(e *env) {
		res := e.mnt(e.target.Export)
		if res.FhsStatus != mount3.MNT3_OK {
			e.Fatalf("MNT: %v", res.FhsStatus)
		}
		h := handle(res.Mountinfo.Fhandle)
		if len(h) == 0 || len(h) > mount3.FHSIZE3 {
			e.Errorf("a handle of %d bytes", len(h))
		}
		e.same("MNT", h, e.export)
		if !slices.Contains(res.Mountinfo.AuthFlavors, int32(oncrpc.AuthSysFlavor)) {
			e.Errorf("flavors %v, without AUTH_SYS", res.Mountinfo.AuthFlavors)
		}
	}},
	{name: "paths-that-cannot-be-mounted", run: func(e *env) {
		for _, path := range []string{"/no/such/export/anywhere", "relative"} {
			if got := e.mnt(path).FhsStatus; !slices.Contains([]mount3.Mountstat3{
				mount3.MNT3ERR_NOENT, mount3.MNT3ERR_ACCES, mount3.MNT3ERR_INVAL, mount3.MNT3ERR_NOTDIR,
			}, got) {
				e.Errorf("MNT %q: %v", path, got)
			}
		}
	}},
	{name: "file", run: func(e *env) {
		e.file(e.dir, "f", "")
		path := trimSlash(e.target.Export) + "/" + e.runName + "/mount-file/f"
		if got := e.mnt(path).FhsStatus; got != mount3.MNT3ERR_NOTDIR && got != mount3.MNT3ERR_ACCES {
			e.Errorf("MNT of a file: %v", got)
		}
	}},
	{name: "path-too-long", run: func(e *env) {
		var res mount3.Mountres3
		args := literal(xdr.AppendOpaque(nil, slices.Repeat([]byte("/x"), mount3.MNTPATHLEN)))
		reply, err := e.mountd.Call(e.ctx, mount3.MOUNTPROC3_MNT, e.auth, args, &res)
		e.keep = append(e.keep, reply)
		if !garbage(err) && (err != nil || res.FhsStatus != mount3.MNT3ERR_NAMETOOLONG) {
			e.Errorf("MNT of %d bytes: %v, %v", 2*mount3.MNTPATHLEN, res.FhsStatus, err)
		}
	}},
	{name: "export", run: func(e *env) {
		var all mount3.Exports
		e.mountCall(mount3.MOUNTPROC3_EXPORT, nothing{}, &all)
		if !slices.ContainsFunc(all, func(x mount3.Exportnode) bool { return string(x.ExDir) == e.target.Export }) {
			e.Errorf("EXPORT without %q: %q", e.target.Export, all)
		}
	}},
	{name: "dump", run: func(e *env) {
		// The list is advisory, but a client that has just come is in it.
		e.mount(e.target.Export)
		if !e.dumped() {
			e.Errorf("DUMP without %q", e.target.Export)
		}
		e.mountCall(mount3.MOUNTPROC3_UMNT, &mount3.Mountargs{Path: []byte(e.target.Export)}, nothing{})
		if e.dumped() {
			e.Errorf("DUMP with %q after UMNT", e.target.Export)
		}
		e.mount(e.target.Export)
		e.mountCall(mount3.MOUNTPROC3_UMNTALL, nothing{}, nothing{})
		if e.dumped() {
			e.Errorf("DUMP with %q after UMNTALL", e.target.Export)
		}
		e.attr(e.export) // handles do not end with UMNT
	}},
	{name: "version-unknown", run: func(e *env) {
		p := &xdr.Proc{Name: "NULL", Program: mount3.MOUNT_PROGRAM, Version: 77}
		reply, err := e.mountd.Call(e.ctx, p, e.auth, nothing{}, nothing{})
		e.keep = append(e.keep, reply)
		var refusal *oncrpc.AcceptError
		if !errors.As(err, &refusal) || refusal.Stat != oncrpc.ProgMismatch || refusal.Low > 3 || refusal.High < 3 {
			e.Errorf("%v, want PROG_MISMATCH with versions around 3", err)
		}
	}},
	{name: "procedure-unknown", run: func(e *env) {
		p := &xdr.Proc{Name: "6", Program: mount3.MOUNT_PROGRAM, Version: 3, Number: 6}
		reply, err := e.mountd.Call(e.ctx, p, e.auth, nothing{}, nothing{})
		e.keep = append(e.keep, reply)
		var refusal *oncrpc.AcceptError
		if !errors.As(err, &refusal) || refusal.Stat != oncrpc.ProcUnavail {
			e.Errorf("%v, want PROC_UNAVAIL", err)
		}
	}},
}

// dumped reports whether DUMP lists the export.
func (e *env) dumped() bool {
	var all mount3.Mountlist
	e.mountCall(mount3.MOUNTPROC3_DUMP, nothing{}, &all)
	return slices.ContainsFunc(all, func(m mount3.Mountbody) bool { return string(m.MlDirectory) == e.target.Export })
}

// trimSlash is a path to which a slash and a name are appended.
func trimSlash(path string) string {
	if path == "/" {
		return ""
	}
	return path
}
