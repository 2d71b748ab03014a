package server

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// FuzzCall sends any bytes to any procedure, as root. A handle of zeros stands
// for that of the export, so that the fuzzer comes past the seal.
func FuzzCall(f *testing.F) {
	r := newRig(f, memfs.Options{MaxBytes: 16 << 20, MaxFiles: 1000})
	programs := []*xdr.Program{&nfs3.NFS_V3, &mount3.MOUNT_V3, &rpcbind.PMAPVERS, &rpcbind.RPCBVERS, &rpcbind.RPCBVERS4}
	zeros := make([]byte, len(r.root))
	for i := range nfs3.NFS_V3.Procs {
		args := xdr.AppendOpaque(nil, zeros)
		f.Add(byte(0), byte(i), args)
		args = xdr.AppendOpaque(args, []byte("name"))
		f.Add(byte(0), byte(i), append(args, make([]byte, 64)...))
	}
	f.Add(byte(1), byte(1), xdr.AppendOpaque(nil, []byte("/a")))
	f.Fuzz(func(t *testing.T, program, proc byte, args []byte) {
		p := programs[int(program)%len(programs)]
		if len(args) >= 4+len(zeros) && string(args[4:4+len(zeros)]) == string(zeros) {
			args = append(append(append([]byte(nil), args[:4]...), r.root...), args[4+len(zeros):]...)
		}
		reply, err := r.client.Call(t.Context(), &p.Procs[int(proc)%len(p.Procs)], r.auth, raw(args), xdr.Void{})
		reply.Release()
		if _, ok := errors.AsType[*oncrpc.AcceptError](err); err != nil && !ok && !errors.Is(err, xdr.ErrTrailing) {
			t.Errorf("%v", err)
		}
		if n := r.srv.Stats().RPC.Panics; n != 0 {
			t.Fatalf("%d panics:\n%s", n, r.log)
		}
	})
}
