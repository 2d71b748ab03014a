package nfsbox_test

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestACLer finds the power through all wrappers, of a server that has none.
func TestACLer(t *testing.T) {
	c := dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777})})+"/")
	power, ok := vfs.As[nfsbox.ACLer](c.FS())
	if !ok {
		t.Fatal("no power")
	}
	if _, err := power.ACL(t.Context(), rootOf(t, c.FS())); !errors.Is(err, vfs.ErrNotSupp) {
		t.Error(err)
	}
}
