//go:build linux

package localfs

import (
	"net/netip"
	"sync/atomic"
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
				return exported(t, o, rule)
			},
		})
	})
}

// exported exports a directory by the rule.
func exported(t *testing.T, o Options, rule export.Rule) exporttest.Place {
	dir := inMemory(t)
	f := open(t, dir, o.anew(t))
	table, err := export.NewTable(export.Key{6}, export.Export{Path: "/", FS: f, Clients: []export.Rule{rule}})
	if err != nil {
		t.Fatal(err)
	}
	client := netip.MustParseAddrPort("192.0.2.7:700")
	return exporttest.Place{Below: f, Dir: dir, As: func(c *vfs.Caller) vfs.FS { return table.For(client, c) }}
}

// TestExportedWatch watches a file through an export, as LOCALIO does, and changes it by
// another client: what was told is told when the change returns.
func TestExportedWatch(t *testing.T) {
	usePoller(t)
	bothModes(t, func(t *testing.T, o Options) {
		place := exported(t, o, export.Rule{Match: "*"})
		view, other := place.As(nil).(*export.View), place.As(nil)
		r := root(t, view)
		x := mkfile(t, view, r, "x", "hello")
		var told atomic.Uint32
		stop, err := view.Watch(x, func(c vfs.Change) { told.Or(uint32(c)) })
		if err != nil {
			t.Fatal(err)
		}
		file, _, err := view.OpenHost(t.Context(), x, &vfs.HostOpen{Access: vfs.ShareRead | vfs.ShareWrite, Trusted: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := chmod(t, other, x, 0o400); err != nil || vfs.Change(told.Swap(0)) != vfs.ChangeRights {
			t.Errorf("chmod: %v, and nobody is told", err)
		}
		mkfile(t, other, r, "y", "")
		told.Store(0) // the kernel may have had something to say of the mode as well
		_, _, err = other.Rename(t.Context(), r, "y", r, "x")
		if err != nil || vfs.Change(told.Load())&vfs.ChangeGone == 0 {
			t.Errorf("rename over: %v, and nobody is told", err)
		}
		stop()
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestExportedDescriptors holds what exports promise against the files of a
// directory that are handed out, and against those who get them.
func TestExportedDescriptors(t *testing.T) {
	if exporttest.IsPeer() {
		exporttest.Peer(t)
		return
	}
	needRoot(t)
	every := 7
	if soak() {
		every = 1
	}
	bothModes(t, func(t *testing.T, o Options) {
		exporttest.Descriptors(t, exporttest.Config{
			Override: true,
			Every:    every,
			New: func(t *testing.T, rule export.Rule) exporttest.Place {
				return exported(t, o, rule)
			},
		})
	})
}
