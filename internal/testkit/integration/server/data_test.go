package server

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

func TestRead(t *testing.T) {
	r := newRig(t, memfs.Options{})
	data := noise(100_000)
	r.put("/f", data)
	h := r.find(r.root, "f")
	for _, x := range []struct {
		off  uint64
		n    uint32
		want int
		eof  bool
	}{
		{0, 10, 10, false},
		{0, 0, 0, false},
		{100_000, 0, 0, true},
		{1, 70_001, 70_001, false},
		{0, 100_000, 100_000, true},
		{99_999, 10, 1, true},
		{100_000, 10, 0, true},
		{1 << 40, 10, 0, true},
		{math.MaxInt64, 10, 0, true},
	} {
		res := r.read(h, x.off, x.n)
		r.status(res.Status, nfs3.NFS3_OK)
		ok := &res.Resok
		if len(ok.Data) != x.want || int(ok.Count) != x.want || ok.Eof != x.eof {
			t.Errorf("READ of %d at %d: %d bytes, count %d, eof %v; want %d, %v", x.n, x.off, len(ok.Data), ok.Count, ok.Eof, x.want, x.eof)
		}
		if x.want > 0 && !bytes.Equal(ok.Data, data[x.off:][:x.want]) {
			t.Errorf("READ of %d at %d: other bytes than the file's", x.n, x.off)
		}
		if !ok.FileAttributes.AttributesFollow || ok.FileAttributes.Attributes.Size != uint64(len(data)) {
			t.Errorf("READ of %d at %d: attributes %+v", x.n, x.off, ok.FileAttributes)
		}
	}
}

func TestReadFails(t *testing.T) {
	r := newRig(t, memfs.Options{})
	h := r.file(r.root, "f", 0o600, "secret")
	d := r.dir(r.root, "d", 0o755)
	r.status(r.read(h, math.MaxUint64, 2).Status, nfs3.NFS3ERR_INVAL)
	res := r.read(d, 0, 10)
	r.status(res.Status, nfs3.NFS3ERR_ISDIR)
	r.post(&res.Resfail.FileAttributes, d)
	res = r.as(bob).read(h, 0, 10)
	r.status(res.Status, nfs3.NFS3ERR_ACCES)
	r.post(&res.Resfail.FileAttributes, h)
}

// TestReadMax asks for more than a READ gives.
func TestReadMax(t *testing.T) {
	r := newRig(t, memfs.Options{ReadMax: 4 << 20})
	r.put("/f", noise(3<<20))
	res := r.read(r.find(r.root, "f"), 0, 3<<20)
	r.status(res.Status, nfs3.NFS3_OK)
	if len(res.Resok.Data) != 1<<20 || res.Resok.Eof {
		t.Errorf("%d bytes, eof %v", len(res.Resok.Data), res.Resok.Eof)
	}
}

// TestReadRights reads as the owner against the mode, and as a user who may execute.
func TestReadRights(t *testing.T) {
	r := newRig(t, memfs.Options{}).as(alice)
	mine := r.file(r.root, "mine", 0o200, "x")
	program := r.file(r.root, "program", 0o711, "x")
	for _, x := range []struct {
		h    []byte
		bob  nfs3.Nfsstat3
		name string
	}{
		{mine, nfs3.NFS3ERR_ACCES, "a file of mode 0200"},
		{program, nfs3.NFS3_OK, "a file of mode 0711"},
	} {
		if res := r.as(alice).read(x.h, 0, 1); res.Status != nfs3.NFS3_OK {
			t.Errorf("the owner of %s: %v", x.name, res.Status)
		}
		if res := r.as(bob).read(x.h, 0, 1); res.Status != x.bob {
			t.Errorf("another reader of %s: %v, want %v", x.name, res.Status, x.bob)
		}
	}
	r.status(r.as(bob).write(program, 0, []byte("y"), nfs3.UNSTABLE).Status, nfs3.NFS3ERR_ACCES)
}

func TestWrite(t *testing.T) {
	r := newRig(t, memfs.Options{Verifier: vfs.Verifier{9, 8, 7}})
	h := r.file(r.root, "f", 0o600, "")
	data := noise(300_000)
	for _, how := range []nfs3.StableHow{nfs3.UNSTABLE, nfs3.DATA_SYNC, nfs3.FILE_SYNC} {
		res := r.write(h, 1000, data, how)
		r.status(res.Status, nfs3.NFS3_OK)
		if int(res.Resok.Count) != len(data) || res.Resok.Committed < how || res.Resok.Verf != [8]byte{9, 8, 7} {
			t.Errorf("WRITE %v: count %d, committed %v, verifier %x", how, res.Resok.Count, res.Resok.Committed, res.Resok.Verf)
		}
		r.wcc(&res.Resok.FileWcc, h, true)
	}
	if got := r.get("/f"); len(got) != 301_000 || !bytes.Equal(got[1000:], data) {
		t.Errorf("the file holds %d bytes, or others", len(got))
	}
	empty := r.write(h, 0, nil, nfs3.UNSTABLE)
	r.status(empty.Status, nfs3.NFS3_OK)
	if empty.Resok.Count != 0 {
		t.Errorf("count %d of nothing", empty.Resok.Count)
	}
}

func TestWriteFails(t *testing.T) {
	r := newRig(t, memfs.Options{})
	h := r.file(r.root, "f", 0o644, "hello")
	d := r.dir(r.root, "d", 0o755)
	for _, x := range []struct {
		what string
		args nfs3.WRITE3args
		want nfs3.Nfsstat3
	}{
		{"a count above the data", nfs3.WRITE3args{File: fh(h), Count: 3, Data: []byte("ab")}, nfs3.NFS3ERR_INVAL},
		{"a count below the data", nfs3.WRITE3args{File: fh(h), Count: 1, Data: []byte("ab")}, nfs3.NFS3ERR_INVAL},
		{"a stability that there is not", nfs3.WRITE3args{File: fh(h), Stable: 3}, nfs3.NFS3ERR_INVAL},
		{"a negative stability", nfs3.WRITE3args{File: fh(h), Stable: -1}, nfs3.NFS3ERR_INVAL},
		{"the end of all offsets", nfs3.WRITE3args{File: fh(h), Offset: math.MaxUint64, Count: 2, Data: []byte("ab")}, nfs3.NFS3ERR_FBIG},
		{"behind the largest file", nfs3.WRITE3args{File: fh(h), Offset: math.MaxInt64, Count: 2, Data: []byte("ab")}, nfs3.NFS3ERR_FBIG},
		{"a directory", nfs3.WRITE3args{File: fh(d), Count: 2, Data: []byte("ab")}, nfs3.NFS3ERR_ISDIR},
	} {
		var res nfs3.WRITE3res
		r.call(nfs3.NFSPROC3_WRITE, &x.args, &res)
		if res.Status != x.want {
			t.Errorf("WRITE with %s: %v, want %v", x.what, res.Status, x.want)
		}
		if !res.Resfail.FileWcc.After.AttributesFollow {
			t.Errorf("WRITE with %s: no attributes", x.what)
		}
	}
	r.status(r.as(bob).write(h, 0, []byte("x"), nfs3.UNSTABLE).Status, nfs3.NFS3ERR_ACCES)
	if got := r.get("/f"); string(got) != "hello" {
		t.Errorf("a refused WRITE left %q", got)
	}
}

// TestWriteReadOnlyFile is what cp does with a file of mode 0444: create it so,
// then write through the descriptor.
func TestWriteReadOnlyFile(t *testing.T) {
	r := newRig(t, memfs.Options{}).as(alice)
	h := r.file(r.root, "f", 0o444, "")
	r.status(r.write(h, 0, []byte("x"), nfs3.UNSTABLE).Status, nfs3.NFS3_OK)
	r.status(r.commit(h, 0, 0).Status, nfs3.NFS3_OK)
	r.status(r.as(bob).write(h, 0, []byte("y"), nfs3.UNSTABLE).Status, nfs3.NFS3ERR_ACCES)
}

// TestCommit loses what was not committed when the server's host restarts, and
// says so by the verifier.
func TestCommit(t *testing.T) {
	r := newRig(t, memfs.Options{})
	h := r.file(r.root, "f", 0o644, "")
	w := r.write(h, 0, []byte("kept"), nfs3.UNSTABLE)
	r.status(w.Status, nfs3.NFS3_OK)
	c := r.commit(h, 0, 0)
	r.status(c.Status, nfs3.NFS3_OK)
	r.wcc(&c.Resok.FileWcc, h, true)
	if c.Resok.Verf != w.Resok.Verf {
		t.Errorf("COMMIT answers verifier %x, WRITE %x", c.Resok.Verf, w.Resok.Verf)
	}
	lost := r.write(h, 0, []byte("lost"), nfs3.UNSTABLE)
	r.status(lost.Status, nfs3.NFS3_OK)
	r.fs.Restart()
	c = r.commit(h, 0, 4)
	r.status(c.Status, nfs3.NFS3_OK)
	if c.Resok.Verf == lost.Resok.Verf {
		t.Error("the verifier is the same after a restart")
	}
	if got := r.get("/f"); string(got) != "kept" {
		t.Errorf("the file holds %q", got)
	}
	r.status(r.commit(h, math.MaxUint64, 1).Status, nfs3.NFS3ERR_INVAL)
	bad := r.commit(r.root, 0, 0)
	r.status(bad.Status, nfs3.NFS3ERR_ISDIR)
	if !bad.Resfail.FileWcc.After.AttributesFollow {
		t.Error("a refused COMMIT sends no attributes")
	}
}

// TestUnknownError reports what has no status to the log, once, and as
// SERVERFAULT to the client.
func TestUnknownError(t *testing.T) {
	var failing bool
	odd := errors.New("the cat is on the disk")
	r := newRig(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if failing && op == "lookup" {
			return odd
		}
		return nil
	}})
	failing = true
	r.status(r.lookup(r.root, "x").Status, nfs3.NFS3ERR_SERVERFAULT)
	failing = false
	log := r.log.String()
	if strings.Count(log, odd.Error()) != 1 || !strings.Contains(log, "NFSPROC3_LOOKUP") || !strings.Contains(log, "WARN") {
		t.Errorf("the log says:\n%s", log)
	}
}

// TestReplyBudget makes READs at the bound of the memory for replies: no more is used, and
// all are served in the end.
func TestReplyBudget(t *testing.T) {
	const size = 1 << 20
	fs := memfs.New(memfs.Options{})
	r := serve(t, fs, nfsserver.Options{MaxReplyBytes: 3 * size})
	r.fs = fs
	data := noise(size)
	r.put("/f", data)
	h := r.find(r.root, "f")
	errs := make(chan error, 32)
	for range cap(errs) {
		go func() {
			res := nfs3.READ3res{Resok: nfs3.READ3resok{Data: make([]byte, size)}}
			reply, err := r.client.Call(t.Context(), nfs3.NFSPROC3_READ, r.auth, &nfs3.READ3args{File: fh(h), Count: size}, &res)
			if err == nil && (res.Status != nfs3.NFS3_OK || !bytes.Equal(res.Resok.Data, data)) {
				err = errors.New("other bytes than the file's, or none: " + res.Status.String())
			}
			reply.Release()
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
		if n := r.srv.Stats().ReplyBytes; n > 4*size {
			t.Errorf("%d bytes of replies at once", n)
		}
	}
}
