package nfsserver

import (
	"testing"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestStatusOf names what the results say, where they say anything.
func TestStatusOf(t *testing.T) {
	for what, x := range map[string]struct {
		proc   *xdr.Proc
		result uint32
		failed bool
		want   string
	}{
		"NFS":                 {nfs3.NFSPROC3_GETATTR, 70, false, "NFS3ERR_STALE"},
		"NFS, unknown":        {nfs3.NFSPROC3_GETATTR, 4711, false, nfs3.Nfsstat3(4711).String()},
		"NFS, failed":         {nfs3.NFSPROC3_GETATTR, 0, true, ""},
		"NULL":                {nfs3.NFSPROC3_NULL, 0, false, ""},
		"access control list": {nfsacl3.ACLPROC3_GETACL, 13, false, "NFS3ERR_ACCES"},
		"MNT":                 {mount3.MOUNTPROC3_MNT, 2, false, "MNT3ERR_NOENT"},
		"MNT of old":          {mount3.MOUNTPROC_MNT, 2, false, ""},
		"a list":              {mount3.MOUNTPROC3_EXPORT, 1, false, ""},
		"locks":               {nlm4.NLMPROC4_LOCK, 3, false, ""},
		"unknown":             {nil, 0, true, ""},
	} {
		got := ""
		if s := StatusOf(&oncrpc.Served{Proc: x.proc, Result: x.result, Failed: x.failed, BytesOut: 100}); s != nil {
			got = s.String()
		}
		if got != x.want {
			t.Errorf("%s: %q, want %q", what, got, x.want)
		}
	}
	if s := StatusOf(&oncrpc.Served{Proc: nfs3.NFSPROC3_READ}); s != nil {
		t.Errorf("a call without an answer: %v", s)
	}
}
