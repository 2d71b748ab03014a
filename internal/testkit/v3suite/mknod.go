package v3suite

import "github.com/nfsbox/nfsbox/proto/nfs3"

var mknodTests = []test{
	{name: "fifo", run: func(e *env) { mknodMakes(e, nfs3.NF3FIFO) }},
	{name: "socket", run: func(e *env) { mknodMakes(e, nfs3.NF3SOCK) }},
	{name: "character-device", needs: needsIdentities, run: func(e *env) { mknodMakes(e, nfs3.NF3CHR) }},
	{name: "block-device", needs: needsIdentities, run: func(e *env) { mknodMakes(e, nfs3.NF3BLK) }},
	{name: "device-of-a-mere-user", needs: needsIdentities, run: func(e *env) {
		e.as(alice)
		e.gotStatus(e.mknod(e.dir, "c", node(nfs3.NF3CHR)).Status, nfs3.NFS3ERR_PERM, nfs3.NFS3ERR_ACCES)
		e.gone(e.dir, "c")
	}},
	{name: "existing", run: func(e *env) {
		e.file(e.dir, "f", "")
		before := e.attr(e.dir)
		res := e.mknod(e.dir, "f", node(nfs3.NF3FIFO))
		e.gotStatus(res.Status, nfs3.NFS3ERR_EXIST)
		e.wccIfAny("a refused MKNOD", &res.Resfail.DirWcc, before, e.dir)
		e.unchanged("a refused MKNOD", before, e.dir)
	}},
	{name: "dots", run: func(e *env) {
		for _, name := range []string{".", ".."} {
			e.gotStatus(e.mknod(e.dir, name, node(nfs3.NF3FIFO)).Status, nfs3.NFS3ERR_EXIST)
		}
	}},
	{name: "types-for-other-procedures", run: func(e *env) {
		for _, typ := range []nfs3.Ftype3{nfs3.NF3REG, nfs3.NF3DIR, nfs3.NF3LNK} {
			e.gotStatus(e.mknod(e.dir, "n", nfs3.Mknoddata3{Type: typ}).Status, nfs3.NFS3ERR_BADTYPE)
			e.gone(e.dir, "n")
		}
	}},
	{name: "type-unknown", run: func(e *env) {
		for _, typ := range []uint32{0, 8, 1 << 31} {
			args := append(append(wireHandle(e.dir), wireHandle(handle("n"))...), words(typ)...)
			e.refused(nfs3.NFSPROC3_MKNOD, args, new(nfs3.MKNOD3res), nfs3.NFS3ERR_BADTYPE, nfs3.NFS3ERR_INVAL)
			e.gone(e.dir, "n")
		}
	}},
}

// node asks for a special file of mode 0640. A device's two numbers differ.
func node(typ nfs3.Ftype3) nfs3.Mknoddata3 {
	if typ == nfs3.NF3CHR || typ == nfs3.NF3BLK {
		return nfs3.Mknoddata3{Type: typ, Device: nfs3.Devicedata3{
			DevAttributes: mode(0o640), Spec: nfs3.Specdata3{Specdata1: 240, Specdata2: 70},
		}}
	}
	return nfs3.Mknoddata3{Type: typ, PipeAttributes: mode(0o640)}
}

func mknodMakes(e *env, typ nfs3.Ftype3) {
	e.age(e.dir)
	before := e.attr(e.dir)
	what := node(typ)
	res := e.mknod(e.dir, "n", what)
	e.ok(res.Status)
	h := e.created((*nfs3.CREATE3resok)(&res.Resok), before, "n")
	if a := e.attr(h); a.Type != typ || a.Mode != 0o640 || a.Nlink != 1 || a.Rdev != what.Device.Spec {
		e.Errorf("attributes %+v of a new %v of mode 0640 and number %+v", a, typ, what.Device.Spec)
	}
}
