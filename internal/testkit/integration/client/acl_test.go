package client

import (
	"errors"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestACLer finds the power through all wrappers, of a server that has lists and
// of one that has none.
func TestACLer(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o751})
	for _, x := range []struct {
		name string
		fs   vfs.FS
		want []nfsbox.ACLEntry
	}{
		{"with lists", mem, []nfsbox.ACLEntry{{Tag: nfsbox.ACLUserObj, Perm: 7}, {Tag: nfsbox.ACLGroupObj, Perm: 5}, {Tag: nfsbox.ACLOther, Perm: 1}}},
		{"without", plain{mem}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: x.fs})+"/")
			power, ok := vfs.As[nfsbox.ACLer](c.FS())
			if !ok {
				t.Fatal("no power")
			}
			acl, err := power.ACL(t.Context(), rootOf(t, c.FS()))
			if x.want == nil && !errors.Is(err, vfs.ErrNotSupp) || x.want != nil && err != nil {
				t.Error(err)
			}
			for _, e := range x.want {
				if !slices.Contains(acl.Access, e) {
					t.Errorf("%+v is not among %+v", e, acl.Access)
				}
			}
		})
	}
}

// plain is a file system without optional powers.
type plain struct{ vfs.FS }

func (p plain) As(c *vfs.Caller) vfs.FS { return plain{p.FS.As(c)} }
