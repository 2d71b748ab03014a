package server

import (
	"bytes"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// The calls that many tests make. Each returns the whole result.

func fh(h []byte) nfs3.NfsFh3 { return nfs3.NfsFh3{Data: h} }

func at(dir []byte, name string) nfs3.Diropargs3 {
	return nfs3.Diropargs3{Dir: fh(dir), Name: []byte(name)}
}

func mode(m uint32) nfs3.Sattr3 {
	return nfs3.Sattr3{Mode: nfs3.SetMode3{SetIt: true, Mode: m}}
}

func (r *rig) getattr(h []byte) (res nfs3.GETATTR3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(h)}, &res)
	return res
}

// attr is the attributes of an object that has some.
func (r *rig) attr(h []byte) nfs3.Fattr3 {
	r.t.Helper()
	res := r.getattr(h)
	r.status(res.Status, nfs3.NFS3_OK)
	return res.Resok.ObjAttributes
}

func (r *rig) setattr(h []byte, set nfs3.Sattr3) (res nfs3.SETATTR3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{Object: fh(h), NewAttributes: set}, &res)
	return res
}

func (r *rig) lookup(dir []byte, name string) (res nfs3.LOOKUP3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: at(dir, name)}, &res)
	return res
}

// find is the handle of a name that exists.
func (r *rig) find(dir []byte, name string) []byte {
	r.t.Helper()
	res := r.lookup(dir, name)
	r.status(res.Status, nfs3.NFS3_OK)
	return bytes.Clone(res.Resok.Object.Data)
}

func (r *rig) access(h []byte, want uint32) (res nfs3.ACCESS3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_ACCESS, &nfs3.ACCESS3args{Object: fh(h), Access: want}, &res)
	return res
}

func (r *rig) read(h []byte, off uint64, n uint32) nfs3.READ3res {
	r.t.Helper()
	res := nfs3.READ3res{Resok: nfs3.READ3resok{Data: make([]byte, n)}}
	r.call(nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh(h), Offset: off, Count: n}, &res)
	return res
}

func (r *rig) write(h []byte, off uint64, data []byte, how nfs3.StableHow) (res nfs3.WRITE3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{
		File: fh(h), Offset: off, Count: uint32(len(data)), Stable: how, Data: data,
	}, &res)
	return res
}

func (r *rig) commit(h []byte, off uint64, n uint32) (res nfs3.COMMIT3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: fh(h), Offset: off, Count: n}, &res)
	return res
}

func (r *rig) create(dir []byte, name string, how nfs3.Createhow3) (res nfs3.CREATE3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_CREATE, &nfs3.CREATE3args{Where: at(dir, name), How: how}, &res)
	return res
}

// file makes a file and returns its handle.
func (r *rig) file(dir []byte, name string, perm uint32, data string) []byte {
	r.t.Helper()
	res := r.create(dir, name, nfs3.Createhow3{Mode: nfs3.GUARDED, ObjAttributes: mode(perm)})
	r.status(res.Status, nfs3.NFS3_OK)
	h := bytes.Clone(res.Resok.Obj.Handle.Data)
	if data != "" {
		r.status(r.write(h, 0, []byte(data), nfs3.FILE_SYNC).Status, nfs3.NFS3_OK)
	}
	return h
}

func (r *rig) mkdir(dir []byte, name string, perm uint32) (res nfs3.MKDIR3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_MKDIR, &nfs3.MKDIR3args{Where: at(dir, name), Attributes: mode(perm)}, &res)
	return res
}

// dir makes a directory and returns its handle.
func (r *rig) dir(dir []byte, name string, perm uint32) []byte {
	r.t.Helper()
	res := r.mkdir(dir, name, perm)
	r.status(res.Status, nfs3.NFS3_OK)
	return bytes.Clone(res.Resok.Obj.Handle.Data)
}

func (r *rig) symlink(dir []byte, name, target string) (res nfs3.SYMLINK3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_SYMLINK, &nfs3.SYMLINK3args{
		Where: at(dir, name), Symlink: nfs3.Symlinkdata3{SymlinkData: []byte(target)},
	}, &res)
	return res
}

func (r *rig) mknod(dir []byte, name string, what nfs3.Mknoddata3) (res nfs3.MKNOD3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_MKNOD, &nfs3.MKNOD3args{Where: at(dir, name), What: what}, &res)
	return res
}

func (r *rig) remove(dir []byte, name string) (res nfs3.REMOVE3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: at(dir, name)}, &res)
	return res
}

func (r *rig) rmdir(dir []byte, name string) (res nfs3.RMDIR3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_RMDIR, &nfs3.RMDIR3args{Object: at(dir, name)}, &res)
	return res
}

func (r *rig) rename(fromDir []byte, from string, toDir []byte, to string) (res nfs3.RENAME3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: at(fromDir, from), To: at(toDir, to)}, &res)
	return res
}

func (r *rig) link(h, dir []byte, name string) (res nfs3.LINK3res) {
	r.t.Helper()
	r.call(nfs3.NFSPROC3_LINK, &nfs3.LINK3args{File: fh(h), Link: at(dir, name)}, &res)
	return res
}

func (r *rig) status(got, want nfs3.Nfsstat3) {
	r.t.Helper()
	if got != want {
		r.t.Fatalf("status %v, want %v", got, want)
	}
}

// wcc checks that weak cache consistency data is there, and that the "after" in
// it is what GETATTR says of h. before says whether a "before" must be there.
func (r *rig) wcc(w *nfs3.WccData, h []byte, before bool) {
	r.t.Helper()
	if !w.After.AttributesFollow {
		r.t.Error("wcc_data without attributes after the call")
		return
	}
	if w.Before.AttributesFollow != before {
		r.t.Errorf("wcc_data with attributes before the call: %v, want %v", w.Before.AttributesFollow, before)
	}
	if a := r.attr(h); w.After.Attributes != a {
		r.t.Errorf("wcc_data after the call: %+v; GETATTR: %+v", w.After.Attributes, a)
	}
}

// post checks that attributes are there and are what GETATTR says of h.
func (r *rig) post(p *nfs3.PostOpAttr, h []byte) {
	r.t.Helper()
	if !p.AttributesFollow {
		r.t.Error("no attributes")
		return
	}
	if a := r.attr(h); p.Attributes != a {
		r.t.Errorf("attributes %+v; GETATTR: %+v", p.Attributes, a)
	}
}
