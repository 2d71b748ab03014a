package nfsserver_test

import (
	"runtime"
	"testing"

	"github.com/nfsbox/nfsbox/internal/localfs"
	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestAllocs counts what a call allocates at the server, and at the client, which
// needs nothing: one for the call's goroutine, one for the opens of READ and
// WRITE in the view and one in the file system, one for a reply to be remembered.
func TestAllocs(t *testing.T) {
	if race {
		t.Skip("the race detector allocates")
	}
	t.Run("memory", func(t *testing.T) {
		countAllocs(t, newRig(t, memfs.Options{}), 1)
	})
	t.Run("disk", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("directories of this host are served on Linux")
		}
		countAllocs(t, serveDir(t), 0)
	})
}

// serveDir is a rig over a temporary directory of this host.
func serveDir(t *testing.T) *rig {
	t.Helper()
	disk, err := localfs.New(t.TempDir(), localfs.Options{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := vfs.CloseFS(disk); err != nil {
			t.Error(err)
		}
	})
	return serve(t, disk, nfsserver.Options{})
}

// countAllocs expects own allocations more of a READ or a WRITE than the disk
// makes.
func countAllocs(t *testing.T, r *rig, own float64) {
	h := r.file(r.root, "f", 0o666, string(noise(64<<10)))
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
		{nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: at(r.root, "f")}, &lookup, 2},
		{nfs3.NFSPROC3_ACCESS, &nfs3.ACCESS3args{Object: fh(h), Access: 63}, &access, 2},
		{nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh(h), Count: 32 << 10}, &read, 3 + own},
		{nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: fh(h), Count: 32 << 10, Data: data}, &write, 4 + own},
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
