package v3suite

import (
	"strings"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

var writeTests = []test{
	{name: "stability", run: func(e *env) {
		// No server does less than it is asked for, and all verifiers of
		// one life of a server are one.
		h := e.file(e.dir, "f", "")
		var verf nfs3.Writeverf3
		for i, how := range []nfs3.StableHow{nfs3.UNSTABLE, nfs3.DATA_SYNC, nfs3.FILE_SYNC} {
			before := e.attr(h)
			res := e.write(h, uint64(i), "x", how)
			e.ok(res.Status)
			ok := &res.Resok
			e.wcc("WRITE "+how.String(), &ok.FileWcc, before, h)
			if ok.Count != 1 || ok.Committed < how || ok.Committed > nfs3.FILE_SYNC {
				e.Errorf("WRITE %v of 1 byte: count %d, committed %v", how, ok.Count, ok.Committed)
			}
			if i == 0 {
				verf = ok.Verf
			}
			if ok.Verf != verf {
				e.Errorf("verifier %x, and %x before", ok.Verf, verf)
			}
		}
		res := e.commit(h, 0, 0)
		e.ok(res.Status)
		if res.Resok.Verf != verf {
			e.Errorf("verifier %x of COMMIT, and %x of WRITE", res.Resok.Verf, verf)
		}
	}},
	{name: "grows-and-overwrites", run: func(e *env) {
		h := e.file(e.dir, "f", "")
		for _, w := range []struct {
			off        uint64
			data, want string
		}{{0, "abc", "abc"}, {3, "def", "abcdef"}, {1, "XY", "aXYdef"}, {8, "z", "aXYdef\x00\x00z"}} {
			e.age(h)
			before := e.attr(h)
			res := e.write(h, w.off, w.data, nfs3.FILE_SYNC)
			e.ok(res.Status)
			e.wcc("WRITE", &res.Resok.FileWcc, before, h)
			e.touched("WRITE", h)
			e.content("after WRITE", h, w.want)
			if got := e.attr(h).Size; got != uint64(len(w.want)) {
				e.Errorf("size %d, want %d", got, len(w.want))
			}
		}
	}},
	{name: "count-of-zero", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		e.age(h)
		res := e.write(h, 100, "", nfs3.FILE_SYNC)
		e.ok(res.Status)
		a := e.attr(h)
		if res.Resok.Count != 0 || a.Size != 4 || a.Mtime != old {
			e.Errorf("a WRITE of nothing: count %d, attributes %+v", res.Resok.Count, a)
		}
	}},
	{name: "count-and-data-differ", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		for _, n := range []uint32{2, 6} {
			args := nfs3.WRITE3args{File: fh(h), Count: n, Stable: nfs3.FILE_SYNC, Data: []byte("4444")}
			// It is an error of the client's program; the RFC leaves open which.
			e.refused(nfs3.NFSPROC3_WRITE, &args, new(nfs3.WRITE3res), nfs3.NFS3ERR_INVAL)
		}
		e.content("after refused WRITEs", h, "data")
	}},
	{name: "stable-how-unknown", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		args := append(wireHandle(h), words(0, 0, 4, 3, 4, 0x34343434)...)
		e.refused(nfs3.NFSPROC3_WRITE, args, new(nfs3.WRITE3res), nfs3.NFS3ERR_INVAL)
		e.content("after a refused WRITE", h, "data")
	}},
	{name: "wtmax", run: func(e *env) {
		info := e.fsinfo(e.dir)
		e.ok(info.Status)
		n := int(min(info.Resok.Wtmax, maxTransfer))
		h := e.file(e.dir, "f", "")
		res := e.write(h, 0, strings.Repeat("w", n), nfs3.UNSTABLE)
		e.ok(res.Status)
		if got := e.attr(h).Size; res.Resok.Count == 0 || got != uint64(res.Resok.Count) {
			e.Errorf("WRITE of wtmax, %d bytes: count %d, size %d", n, res.Resok.Count, got)
		}
	}},
	{name: "too-far", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		largest := e.fsinfo(h).Resok.Maxfilesize
		for _, off := range []uint64{largest, 1<<63 - 1, 1 << 63, 1<<64 - 2} {
			if off < largest {
				continue
			}
			before := e.attr(h)
			res := e.write(h, off, "xx", nfs3.FILE_SYNC)
			if e.gotStatus(res.Status, nfs3.NFS3ERR_FBIG, nfs3.NFS3ERR_INVAL) {
				e.wccIfAny("a refused WRITE", &res.Resfail.FileWcc, before, h)
			}
		}
		e.content("after refused WRITEs", h, "data")
	}},
	{name: "not-a-file", run: func(e *env) {
		// ISDIR is what most servers say of a directory; the RFC has INVAL.
		e.gotStatus(e.write(e.mustMkdir(e.dir, "d"), 0, "x", nfs3.FILE_SYNC).Status, nfs3.NFS3ERR_ISDIR, nfs3.NFS3ERR_INVAL)
		e.gotStatus(e.write(e.mustSymlink(e.dir, "l", "x"), 0, "x", nfs3.FILE_SYNC).Status, nfs3.NFS3ERR_INVAL)
	}},
}

// refused makes a call with arguments that no client should send: the answer is
// GARBAGE_ARGS or one of the statuses.
func (e *env) refused(p *xdr.Proc, args xdr.Appender, res nfs3.Result, want ...nfs3.Nfsstat3) {
	e.call(p, args, res)
	e.gotStatus(*res.Stat(), append(want, garbageArgs)...)
}
