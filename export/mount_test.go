package export

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestMountLinks mounts through symbolic links, as far as they stay in the export.
func TestMountLinks(t *testing.T) {
	fs := memory()
	table := testTable(t, Key{1}, Export{Path: "/srv", FS: fs}, Export{Path: "/other", FS: memory()})
	v := table.For(remote("192.0.2.1:700"), nil)
	ctx := t.Context()
	root, _, err := v.Mount(ctx, "/srv")
	if err != nil {
		t.Fatal(err)
	}
	mk := func(dir vfs.Handle, name string, how *vfs.CreateHow) vfs.Handle {
		t.Helper()
		how.Set.Valid, how.Set.Mode = vfs.MaskMode, 0o777
		if how.Type == vfs.TypeSymlink {
			how.Set.Valid = 0
		}
		h, _, _, err := v.Create(ctx, dir, name, how)
		if err != nil {
			t.Fatal(name, err)
		}
		return h
	}
	a := mk(root, "a", &vfs.CreateHow{Type: vfs.TypeDir})
	b := mk(a, "b", &vfs.CreateHow{Type: vfs.TypeDir})
	for name, target := range map[string]string{
		"relative": "a/b", "dots": "a/../a/./b/../b", "absolute": "/srv/a/b", "chain": "relative", "root": "/srv",
		"out": "../other", "deep-out": "a/../../etc", "elsewhere": "/etc", "exports": "/other", "alike": "/srvx/a", "loop": "loop", "nowhere": "none",
		"long": strings.Repeat("a/", maxExportPath),
	} {
		mk(root, name, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: target})
	}
	mk(a, "up", &vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../a"})
	for i := range maxMountLinks + 1 {
		mk(root, fmt.Sprintf("l%d", i), &vfs.CreateHow{Type: vfs.TypeSymlink, Target: fmt.Sprintf("l%d", i-1)})
	}
	for _, x := range []struct {
		path string
		want vfs.Handle
		err  error
	}{
		{"/srv/a/b", b, nil}, {"/srv/relative", b, nil}, {"/srv/dots", b, nil}, {"/srv/absolute", b, nil}, {"/srv/chain", b, nil},
		{"/srv/root/a/b", b, nil}, {"/srv/a/up/up/b", b, nil}, {"/srv/a/up", a, nil}, {"/srv/root", root, nil},
		{"/srv/out", root, vfs.ErrAccess}, {"/srv/deep-out", root, vfs.ErrAccess}, {"/srv/elsewhere", root, vfs.ErrAccess},
		{"/srv/exports", root, vfs.ErrAccess}, {"/srv/alike", root, vfs.ErrAccess}, {"/srv/loop", root, vfs.ErrInval},
		{"/srv/nowhere", root, vfs.ErrNoEnt}, {"/srv/long", root, vfs.ErrInval}, {"/srv/l40", root, vfs.ErrInval},
	} {
		h, _, err := v.Mount(ctx, x.path)
		if !errors.Is(err, x.err) || err == nil && h != x.want {
			t.Errorf("%s: %v, %v; want %v, %v", x.path, h, err, x.want, x.err)
		}
	}
}
