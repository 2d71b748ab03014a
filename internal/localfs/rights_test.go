//go:build linux

package localfs

import (
	"net/netip"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/export/exporttest"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestExportedRights holds what exports promise against a directory of this host:
// every caller and every rule, and the kernel that judges most of it.
func TestExportedRights(t *testing.T) {
	needRoot(t)
	bothModes(t, func(t *testing.T, o Options) {
		every := 7
		if soak() {
			every = 1
		}
		exporttest.Rights(t, exporttest.Config{
			Override: true,
			Every:    every,
			New: func(t *testing.T, rule export.Rule) exporttest.Place {
				f := open(t, inMemory(t), o.anew(t))
				table, err := export.NewTable(export.Key{6}, export.Export{Path: "/", FS: f, Clients: []export.Rule{rule}})
				if err != nil {
					t.Fatal(err)
				}
				client := netip.MustParseAddrPort("192.0.2.7:700")
				return exporttest.Place{Below: f, As: func(c *vfs.Caller) vfs.FS { return table.For(client, c) }}
			},
		})
	})
}
