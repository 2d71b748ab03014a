package nfsserver_test

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestAllocs counts what a call allocates on both sides together, the file
// system in memory included.
func TestAllocs(t *testing.T) {
	if race {
		t.Skip("the race detector allocates")
	}
	r := newRig(t, memfs.Options{}).as(alice)
	h := r.file(r.root, "f", 0o644, string(noise(64<<10)))
	data := noise(32 << 10)
	into := make([]byte, 32<<10)
	var (
		getattr nfs3.GETATTR3res
		lookup  nfs3.LOOKUP3res
		access  nfs3.ACCESS3res
		read    nfs3.READ3res
		write   nfs3.WRITE3res
	)
	for _, x := range []struct {
		proc *xdr.Proc
		args xdr.Appender
		res  xdr.Unmarshaler
		most float64
	}{
		{nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(h)}, &getattr, 2},
		{nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: at(r.root, "f")}, &lookup, 3},
		{nfs3.NFSPROC3_ACCESS, &nfs3.ACCESS3args{Object: fh(h), Access: 63}, &access, 2},
		{nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh(h), Count: 32 << 10}, &read, 8},
		{nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: fh(h), Count: 32 << 10, Data: data}, &write, 8},
	} {
		n := testing.AllocsPerRun(500, func() {
			read.Resok.Data = into
			reply, err := r.client.Call(t.Context(), x.proc, r.auth, x.args, x.res)
			if err != nil {
				t.Fatal(err)
			}
			reply.Release()
		})
		t.Logf("%v: %v allocations", x.proc, n)
		if n > x.most {
			t.Errorf("%v: %v allocations, want at most %v", x.proc, n, x.most)
		}
	}
}
