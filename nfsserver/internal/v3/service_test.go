package v3

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// TestEveryProcedure has a handler for each number of the program.
func TestEveryProcedure(t *testing.T) {
	svc := New(Options{Buffers: &bufpool.Pool{}}).RPC()
	if len(svc.Handlers) != procs || len(nfs3.NFS_V3.Procs) != procs {
		t.Fatalf("%d handlers for %d procedures, want %d", len(svc.Handlers), len(nfs3.NFS_V3.Procs), procs)
	}
	for i, h := range svc.Handlers {
		if h == nil || nfs3.NFS_V3.Procs[i].Number != uint32(i) {
			t.Errorf("%s is procedure %d, with a handler: %v", nfs3.NFS_V3.Procs[i].Name, nfs3.NFS_V3.Procs[i].Number, h != nil)
		}
	}
}
