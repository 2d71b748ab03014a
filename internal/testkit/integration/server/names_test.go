package server

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

func TestLookup(t *testing.T) {
	r := newRig(t, memfs.Options{})
	d := r.dir(r.root, "d", 0o755)
	f := r.file(d, "f", 0o644, "x")
	for _, x := range []struct {
		dir  []byte
		name string
		want []byte
	}{
		{r.root, "d", d}, {d, "f", f},
		{d, "..", r.root}, {r.root, "..", r.root},
		{d, ".", d},
	} {
		res := r.lookup(x.dir, x.name)
		r.status(res.Status, nfs3.NFS3_OK)
		if !bytes.Equal(res.Resok.Object.Data, x.want) {
			t.Errorf("LOOKUP of %q found another object", x.name)
		}
		r.post(&res.Resok.ObjAttributes, x.want)
		r.post(&res.Resok.DirAttributes, x.dir)
	}
}

func TestLookupFails(t *testing.T) {
	r := newRig(t, memfs.Options{})
	f := r.file(r.root, "f", 0o644, "")
	closed := r.dir(r.root, "closed", 0o700)
	res := r.lookup(r.root, "none")
	r.status(res.Status, nfs3.NFS3ERR_NOENT)
	r.post(&res.Resfail.DirAttributes, r.root)
	for _, x := range []struct {
		dir  []byte
		name string
		want nfs3.Nfsstat3
	}{
		{f, "x", nfs3.NFS3ERR_NOTDIR},
		{f, ".", nfs3.NFS3ERR_NOTDIR},
		{closed, "x", nfs3.NFS3ERR_ACCES},
		{closed, ".", nfs3.NFS3ERR_ACCES},
		{closed, "..", nfs3.NFS3ERR_ACCES},
		{r.root, "", nfs3.NFS3ERR_INVAL},
		{r.root, "a/b", nfs3.NFS3ERR_INVAL},
		{r.root, "a\x00b", nfs3.NFS3ERR_INVAL},
		{r.root, strings.Repeat("x", 256), nfs3.NFS3ERR_NAMETOOLONG},
		{r.root, strings.Repeat("x", 60000), nfs3.NFS3ERR_NAMETOOLONG},
	} {
		if res := r.as(alice).lookup(x.dir, x.name); res.Status != x.want {
			t.Errorf("LOOKUP of %.20q: %v, want %v", x.name, res.Status, x.want)
		}
	}
}

func TestReadlink(t *testing.T) {
	r := newRig(t, memfs.Options{})
	const target = "../no/such\xff file"
	made := r.symlink(r.root, "l", target)
	r.status(made.Status, nfs3.NFS3_OK)
	r.wcc(&made.Resok.DirWcc, r.root, true)
	h := bytes.Clone(made.Resok.Obj.Handle.Data)
	r.post(&made.Resok.ObjAttributes, h)
	if a := r.attr(h); a.Type != nfs3.NF3LNK || a.Size != uint64(len(target)) {
		t.Errorf("attributes of a symbolic link: %+v", a)
	}
	var res nfs3.READLINK3res
	r.call(nfs3.NFSPROC3_READLINK, &nfs3.READLINK3args{Symlink: fh(h)}, &res)
	r.status(res.Status, nfs3.NFS3_OK)
	if string(res.Resok.Data) != target {
		t.Errorf("target %q, want %q", res.Resok.Data, target)
	}
	r.post(&res.Resok.SymlinkAttributes, h)

	r.call(nfs3.NFSPROC3_READLINK, &nfs3.READLINK3args{Symlink: fh(r.root)}, &res)
	r.status(res.Status, nfs3.NFS3ERR_INVAL)
	r.status(r.symlink(r.root, "long", strings.Repeat("x", 4096)).Status, nfs3.NFS3ERR_NAMETOOLONG)
	r.status(r.symlink(r.root, "l", "x").Status, nfs3.NFS3ERR_EXIST)
}

func TestCreate(t *testing.T) {
	r := newRig(t, memfs.Options{}).as(alice)
	guarded := nfs3.Createhow3{Mode: nfs3.GUARDED, ObjAttributes: mode(0o604)}
	res := r.create(r.root, "f", guarded)
	r.status(res.Status, nfs3.NFS3_OK)
	h := bytes.Clone(res.Resok.Obj.Handle.Data)
	r.post(&res.Resok.ObjAttributes, h)
	r.wcc(&res.Resok.DirWcc, r.root, true)
	if a := r.attr(h); a.Mode != 0o604 || a.Uid != 1000 {
		t.Errorf("attributes %+v", a)
	}
	again := r.create(r.root, "f", guarded)
	r.status(again.Status, nfs3.NFS3ERR_EXIST)
	r.wcc(&again.Resfail.DirWcc, r.root, true)

	// UNCHECKED takes what is there, and cuts it if asked to.
	r.status(r.write(h, 0, []byte("hello"), nfs3.UNSTABLE).Status, nfs3.NFS3_OK)
	unchecked := nfs3.Createhow3{Mode: nfs3.UNCHECKED, ObjAttributes: mode(0o777)}
	taken := r.create(r.root, "f", unchecked)
	r.status(taken.Status, nfs3.NFS3_OK)
	if a := r.attr(h); !bytes.Equal(taken.Resok.Obj.Handle.Data, h) || a.Size != 5 || a.Mode != 0o604 {
		t.Errorf("UNCHECKED changed the file: %+v", a)
	}
	unchecked.ObjAttributes.Size = nfs3.SetSize3{SetIt: true}
	r.status(r.create(r.root, "f", unchecked).Status, nfs3.NFS3_OK)
	if a := r.attr(h); a.Size != 0 {
		t.Errorf("size %d after an UNCHECKED of size 0", a.Size)
	}
}

// TestCreateExclusive repeats the call, as after a lost reply, and then tries
// another verifier.
func TestCreateExclusive(t *testing.T) {
	r := newRig(t, memfs.Options{})
	how := nfs3.Createhow3{Mode: nfs3.EXCLUSIVE, Verf: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}}
	first := r.create(r.root, "f", how)
	r.status(first.Status, nfs3.NFS3_OK)
	again := r.create(r.root, "f", how)
	r.status(again.Status, nfs3.NFS3_OK)
	if !bytes.Equal(first.Resok.Obj.Handle.Data, again.Resok.Obj.Handle.Data) {
		t.Error("the repetition found another file")
	}
	how.Verf[7]++
	r.status(r.create(r.root, "f", how).Status, nfs3.NFS3ERR_EXIST)
}

func TestCreateFails(t *testing.T) {
	r := newRig(t, memfs.Options{})
	closed := r.dir(r.root, "closed", 0o755)
	f := r.file(r.root, "f", 0o644, "")
	for _, x := range []struct {
		dir  []byte
		name string
		want nfs3.Nfsstat3
	}{
		{closed, "x", nfs3.NFS3ERR_ACCES},
		{f, "x", nfs3.NFS3ERR_NOTDIR},
		{r.root, ".", nfs3.NFS3ERR_EXIST},
		{r.root, "..", nfs3.NFS3ERR_EXIST},
		{r.root, "a/b", nfs3.NFS3ERR_INVAL},
		{r.root, strings.Repeat("x", 256), nfs3.NFS3ERR_NAMETOOLONG},
	} {
		res := r.as(alice).create(x.dir, x.name, nfs3.Createhow3{Mode: nfs3.GUARDED})
		if res.Status != x.want {
			t.Errorf("CREATE of %.20q: %v, want %v", x.name, res.Status, x.want)
		}
		if !res.Resfail.DirWcc.After.AttributesFollow {
			t.Errorf("CREATE of %.20q: %v without attributes of the directory", x.name, res.Status)
		}
	}
}

func TestMkdir(t *testing.T) {
	r := newRig(t, memfs.Options{}).as(alice)
	res := r.mkdir(r.root, "d", 0o750)
	r.status(res.Status, nfs3.NFS3_OK)
	h := bytes.Clone(res.Resok.Obj.Handle.Data)
	r.post(&res.Resok.ObjAttributes, h)
	r.wcc(&res.Resok.DirWcc, r.root, true)
	if a := r.attr(h); a.Type != nfs3.NF3DIR || a.Mode != 0o750 || a.Uid != 1000 {
		t.Errorf("attributes %+v", a)
	}
	again := r.mkdir(r.root, "d", 0o750)
	r.status(again.Status, nfs3.NFS3ERR_EXIST)
	r.wcc(&again.Resfail.DirWcc, r.root, true)
}

func TestMknod(t *testing.T) {
	r := newRig(t, memfs.Options{})
	spec := nfs3.Specdata3{Specdata1: 8, Specdata2: 17}
	device := nfs3.Devicedata3{DevAttributes: mode(0o600), Spec: spec}
	for name, what := range map[string]nfs3.Mknoddata3{
		"block": {Type: nfs3.NF3BLK, Device: device},
		"char":  {Type: nfs3.NF3CHR, Device: device},
		"fifo":  {Type: nfs3.NF3FIFO, PipeAttributes: mode(0o600)},
		"sock":  {Type: nfs3.NF3SOCK, PipeAttributes: mode(0o600)},
	} {
		res := r.mknod(r.root, name, what)
		r.status(res.Status, nfs3.NFS3_OK)
		h := bytes.Clone(res.Resok.Obj.Handle.Data)
		r.post(&res.Resok.ObjAttributes, h)
		a := r.attr(h)
		if a.Type != what.Type || a.Mode != 0o600 {
			t.Errorf("%s: attributes %+v", name, a)
		}
		if device := a.Type == nfs3.NF3BLK || a.Type == nfs3.NF3CHR; device && a.Rdev != spec {
			t.Errorf("%s: device %+v, want %+v", name, a.Rdev, spec)
		}
	}
	for _, typ := range []nfs3.Ftype3{0, nfs3.NF3REG, nfs3.NF3DIR, nfs3.NF3LNK, 8, 1 << 30} {
		if res := r.mknod(r.root, "x", nfs3.Mknoddata3{Type: typ}); res.Status != nfs3.NFS3ERR_BADTYPE {
			t.Errorf("MKNOD of type %d: %v", typ, res.Status)
		}
	}
	r.status(r.as(alice).mknod(r.root, "dev", nfs3.Mknoddata3{Type: nfs3.NF3BLK}).Status, nfs3.NFS3ERR_PERM)
}

func TestRemoveAndRmdir(t *testing.T) {
	r := newRig(t, memfs.Options{})
	r.file(r.root, "f", 0o644, "")
	d := r.dir(r.root, "d", 0o755)
	r.file(d, "inside", 0o644, "")

	res := r.remove(r.root, "f")
	r.status(res.Status, nfs3.NFS3_OK)
	r.wcc(&res.Resok.DirWcc, r.root, true)
	res = r.remove(r.root, "f")
	r.status(res.Status, nfs3.NFS3ERR_NOENT)
	r.wcc(&res.Resfail.DirWcc, r.root, true)
	r.status(r.remove(r.root, "d").Status, nfs3.NFS3ERR_ISDIR)

	full := r.rmdir(r.root, "d")
	r.status(full.Status, nfs3.NFS3ERR_NOTEMPTY)
	r.wcc(&full.Resfail.DirWcc, r.root, true)
	r.status(r.rmdir(d, "inside").Status, nfs3.NFS3ERR_NOTDIR)
	r.status(r.remove(d, "inside").Status, nfs3.NFS3_OK)
	gone := r.rmdir(r.root, "d")
	r.status(gone.Status, nfs3.NFS3_OK)
	r.wcc(&gone.Resok.DirWcc, r.root, true)
	r.status(r.getattr(d).Status, nfs3.NFS3ERR_STALE)
}

func TestRename(t *testing.T) {
	r := newRig(t, memfs.Options{})
	d := r.dir(r.root, "d", 0o755)
	f := r.file(r.root, "f", 0o644, "new")
	r.file(d, "g", 0o644, "old")
	res := r.rename(r.root, "f", d, "g")
	r.status(res.Status, nfs3.NFS3_OK)
	r.wcc(&res.Resok.FromdirWcc, r.root, true)
	r.wcc(&res.Resok.TodirWcc, d, true)
	if !bytes.Equal(r.find(d, "g"), f) {
		t.Error("the name is that of another file")
	}
	none := r.rename(r.root, "f", d, "x")
	r.status(none.Status, nfs3.NFS3ERR_NOENT)
	r.wcc(&none.Resfail.FromdirWcc, r.root, true)
	r.wcc(&none.Resfail.TodirWcc, d, true)
	r.status(r.rename(r.root, "d", d, "below itself").Status, nfs3.NFS3ERR_INVAL)
}

func TestLink(t *testing.T) {
	r := newRig(t, memfs.Options{})
	d := r.dir(r.root, "d", 0o755)
	f := r.file(r.root, "f", 0o644, "x")
	res := r.link(f, d, "g")
	r.status(res.Status, nfs3.NFS3_OK)
	r.post(&res.Resok.FileAttributes, f)
	r.wcc(&res.Resok.LinkdirWcc, d, true)
	if a := r.attr(f); a.Nlink != 2 || !bytes.Equal(r.find(d, "g"), f) {
		t.Errorf("after LINK: %+v", a)
	}
	again := r.link(f, d, "g")
	r.status(again.Status, nfs3.NFS3ERR_EXIST)
	r.post(&again.Resfail.FileAttributes, f)
	r.wcc(&again.Resfail.LinkdirWcc, d, true)
}
