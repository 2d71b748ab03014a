package nfsserver

import (
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestObjectOf reads what calls are about from arguments, which may be anything.
func TestObjectOf(t *testing.T) {
	h, err := vfs.MakeHandle([]byte("handle"))
	if err != nil {
		t.Fatal(err)
	}
	var args []byte
	args = xdr.AppendOpaque(args, h.Bytes())
	named := xdr.AppendOpaque(args[:len(args):len(args)], []byte("name"))
	for what, x := range map[string]struct {
		proc *xdr.Proc
		args []byte
		want Object
	}{
		"a handle":        {nfs3.NFSPROC3_READ, append(args[:len(args):len(args)], make([]byte, 12)...), Object{Handle: h}},
		"a name":          {nfs3.NFSPROC3_LOOKUP, named, Object{Handle: h, Name: "name"}},
		"a list":          {nfsacl3.ACLPROC3_GETACL, args, Object{Handle: h}},
		"a path":          {mount3.MOUNTPROC3_MNT, xdr.AppendOpaque(nil, []byte("/data")), Object{Path: "/data"}},
		"NULL":            {nfs3.NFSPROC3_NULL, args, Object{}},
		"another program": {nlm4.NLMPROC4_LOCK, args, Object{}},
		"nothing":         {nfs3.NFSPROC3_READ, nil, Object{}},
		"cut short":       {nfs3.NFSPROC3_READ, args[:6], Object{}},
		"too long":        {nfs3.NFSPROC3_READ, xdr.AppendOpaque(nil, []byte(strings.Repeat("x", 65))), Object{}},
		"no name":         {nfs3.NFSPROC3_LOOKUP, args, Object{Handle: h}},
		"unknown":         {nil, args, Object{}},
	} {
		got := ObjectOf(&oncrpc.Served{Proc: x.proc, Args: x.args})
		if got != x.want || got.IsZero() != (x.want == Object{}) {
			t.Errorf("%s: %+v, want %+v", what, got, x.want)
		}
	}
}
