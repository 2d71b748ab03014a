package server

import (
	"context"
	"net"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/v3suite"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// dialer makes connections to an address.
func dialer(addr string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
}

// suite serves exports and runs the suite of the protocol against them.
func suite(t *testing.T, target v3suite.Target, exports ...export.Export) {
	t.Helper()
	table, err := export.NewTable(export.Key{1, 2, 3}, exports...)
	if err != nil {
		t.Fatal(err)
	}
	_, addr := start(t, nfsserver.Options{Exports: table})
	target.Dial = dialer(addr)
	v3suite.Run(t, target)
}

// plant puts a directory and a file in it where the suite looks for them in an
// export for reading only.
func plant(t *testing.T, fs vfs.FS) {
	t.Helper()
	ctx := t.Context()
	root, _, err := fs.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	set := vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o777}
	dir, _, _, err := fs.Create(ctx, root, "dir", &vfs.CreateHow{Type: vfs.TypeDir, Set: set})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := fs.Create(ctx, dir, "file", &vfs.CreateHow{Type: vfs.TypeReg, Set: set}); err != nil {
		t.Fatal(err)
	}
}

// TestV3SuiteMemfs is the run that skips nothing: every pair of the matrix shows.
func TestV3SuiteMemfs(t *testing.T) {
	noLeaks(t)
	readOnly := memfs.New(memfs.Options{Mode: 0o777})
	plant(t, readOnly)
	suite(t, v3suite.Target{
		Export: "/", ReadOnly: "/ro", Other: "/other", Small: "/small", Identities: true,
	},
		export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777, MaxLinks: 40})},
		export.Export{Path: "/ro", FS: readOnly, ReadOnly: true},
		export.Export{Path: "/other", FS: memfs.New(memfs.Options{Mode: 0o777})},
		export.Export{Path: "/small", FS: memfs.New(memfs.Options{Mode: 0o777, MaxBytes: 1 << 20})},
	)
}
