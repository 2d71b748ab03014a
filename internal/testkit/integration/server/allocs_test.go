package server

import (
	"os"
	"runtime"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// maxAllocs is what a call may allocate at the server, and at the client, which
// needs nothing. The file systems make an open file for READ and WRITE, and memfs
// more; a reply to be remembered takes a part of one.
const maxAllocs = 2

// TestAllocs counts what a call allocates.
func TestAllocs(t *testing.T) {
	need.Speed(t, "it allocates")
	t.Run("memory", func(t *testing.T) {
		countAllocs(t, newRig(t, memfs.Options{}), maxAllocs)
	})
	t.Run("disk", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("directories of this host are served on Linux")
		}
		most := float64(maxAllocs)
		if os.Geteuid() != 0 {
			most = 4 // names go through the map of handles
		}
		countAllocs(t, serveDir(t), most)
	})
}

// serveDir is a rig over a temporary directory of this host, behind a gate.
func serveDir(t *testing.T) *rig {
	t.Helper()
	gate, err := iogate.New(iogate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gate.Close(); err != nil {
			t.Error(err)
		}
	})
	disk, err := localfs.New(t.TempDir(), localfs.Options{Volatile: true, Gate: gate.Export("disk")})
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

func countAllocs(t *testing.T, r *rig, most float64) {
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
	}{
		{nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(h)}, &getattr},
		{nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: at(r.root, "f")}, &lookup},
		{nfs3.NFSPROC3_ACCESS, &nfs3.ACCESS3args{Object: fh(h), Access: 63}, &access},
		{nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh(h), Count: 32 << 10}, &read},
		{nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: fh(h), Count: 32 << 10, Data: data}, &write},
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
		if n > most {
			t.Errorf("%v: %v allocations, want at most %v", x.proc, n, most)
		}
	}
}
