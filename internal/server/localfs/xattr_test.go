//go:build linux

package localfs

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestExportedXattrs: extended attributes are changed by the rights that the export leaves its
// callers, and nobody gives a file capabilities through it.
func TestExportedXattrs(t *testing.T) {
	needRoot(t)
	root0, user := &vfs.Caller{Client: "192.0.2.7"}, &vfs.Caller{UID: 21001, GID: 21001, Client: "192.0.2.7"}
	for _, c := range []struct {
		rule  export.Rule
		who   *vfs.Caller
		roots error // to a file of root's
		own   error // to one of the user's
	}{
		{export.Rule{Match: "*"}, root0, nil, nil},
		{export.Rule{Match: "*", Squash: export.SquashRoot}, root0, vfs.ErrAccess, vfs.ErrAccess},
		{export.Rule{Match: "*", Squash: export.SquashRoot}, user, vfs.ErrAccess, nil},
		{export.Rule{Match: "*", Squash: export.SquashAll}, user, vfs.ErrAccess, vfs.ErrAccess},
		{export.Rule{Match: "*", ReadOnly: true}, root0, vfs.ErrROFS, vfs.ErrROFS},
	} {
		bothModes(t, func(t *testing.T, o Options) {
			place := exported(t, o, c.rule)
			below := root(t, place.Below)
			mkfile(t, place.Below, below, "root's", "")
			ofUser := mkfile(t, place.Below, below, "own", "")
			for h, set := range map[vfs.Handle]vfs.SetAttr{ofUser: {Valid: vfs.MaskUID, UID: user.UID}, below: {Valid: vfs.MaskMode, Mode: 0o755}} {
				if _, err := place.Below.SetAttr(t.Context(), h, &set, nil); err != nil {
					t.Fatal(err)
				}
			}
			view := place.As(c.who)
			x, ok := vfs.As[vfs.Xattrer](view)
			if !ok {
				t.Fatal("a view has no extended attributes")
			}
			for name, want := range map[string]error{"root's": c.roots, "own": c.own} {
				h, _, _, err := view.Lookup(t.Context(), root(t, view), name)
				if err != nil {
					t.Fatal(err)
				}
				err = x.SetXattr(t.Context(), h, "user.a", []byte("value"), vfs.XattrEither)
				if errors.Is(err, vfs.ErrNotSupp) {
					t.Skip("NOT TESTED: no extended attributes here")
				}
				if !errors.Is(err, want) {
					t.Errorf("squash %v, read-only %v, caller %d: %s: %v, want %v", c.rule.Squash, c.rule.ReadOnly, c.who.UID, name, err, want)
				}
				if names, err := x.Xattrs(t.Context(), h); err != nil || (len(names) == 1) != (want == nil) {
					t.Errorf("caller %d: %s has %q, %v", c.who.UID, name, names, err)
				}
				for _, other := range []string{"security.capability", "trusted.a", "system.posix_acl_access"} {
					if err := x.SetXattr(t.Context(), h, other, []byte("value"), vfs.XattrEither); err == nil {
						t.Errorf("caller %d: %s is set", c.who.UID, other)
					}
				}
			}
		})
	}
}
