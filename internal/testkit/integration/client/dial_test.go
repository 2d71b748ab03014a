package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// TestDialLinks follows as many symbolic links in a URL's path as a path may
// have, and no more.
func TestDialLinks(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	put(t, mem, fmt.Sprintf("l%d/file", vfs.MaxSymlinks+1), []byte("here"))
	root := rootOf(t, mem)
	for i := range vfs.MaxSymlinks + 1 {
		how := &vfs.CreateHow{Type: vfs.TypeSymlink, Target: fmt.Sprintf("l%d", i+1)}
		if _, _, _, err := mem.Create(t.Context(), root, fmt.Sprintf("l%d", i), how); err != nil {
			t.Fatal(err)
		}
	}
	// Of two exports neither answers to "/": the rest of the path is looked up.
	port := serve(t, export.Export{Path: "/e", FS: mem}, export.Export{Path: "/f", FS: mem})
	c := dial(t, "nfs://127.0.0.1:"+port+"/e/l1/file")
	if got := get(t, c.FS(), c.Target()); string(got) != "here" {
		t.Errorf("%q", got)
	}
	c, err := nfsbox.Dial(t.Context(), "nfs://127.0.0.1:"+port+"/e/l0/file", nfsbox.WithCaller(vfs.Caller{}))
	if err == nil {
		err = c.Close()
	}
	if !errors.Is(err, syscall.ELOOP) {
		t.Errorf("%d links: %v", vfs.MaxSymlinks+1, err)
	}
}

// TestDialLinkOut: a link that leads out of the directory a URL is rooted in is an error for
// vfs.Inside, and for package iofs, and in the middle of a path for Dial. A file
// beside the link has the name that it leads to.
func TestDialLinkOut(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	put(t, mem, "file", []byte("right"))
	put(t, mem, "a/file", []byte("wrong"))
	put(t, mem, "a/b/file", []byte("wrong"))
	ctx := t.Context()
	dir, err := vfs.Resolve(ctx, mem, rootOf(t, mem), "a", false)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"up": "../file", "out": "../../b"} {
		if _, _, _, err := mem.Create(ctx, dir.Handle, name, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: target}); err != nil {
			t.Fatal(err)
		}
	}
	url := "nfs://127.0.0.1:" + serve(t, export.Export{Path: "/e", FS: mem}, export.Export{Path: "/f", FS: mem}) + "/e/a/"
	c := dial(t, url+"up")
	if _, err := vfs.Resolve(ctx, vfs.Inside(c.FS()), rootOf(t, c.FS()), c.Target(), true); !errors.Is(err, vfs.ErrOutside) {
		t.Errorf("what %s leads to: %v", c.Target(), err)
	}
	tree, err := iofs.Root(ctx, c.FS())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := tree.ReadFile(c.Target()); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("read by package iofs: %q, %v", text, err)
	}
	c, err = nfsbox.Dial(ctx, url+"out/file", nfsbox.WithCaller(vfs.Caller{}))
	if err == nil {
		err = c.Close()
	}
	if !errors.Is(err, vfs.ErrOutside) {
		t.Errorf("on the way: %v", err)
	}
}

// TestWithDialer makes every connection with the caller's dialer, which is given
// the host as the URL has it.
func TestWithDialer(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	put(t, mem, "file", []byte("here"))
	port := serve(t, export.Export{Path: "/", FS: mem})
	var dials atomic.Int32
	through := nfsbox.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		if network != "tcp" || address != "filer.example:"+port {
			t.Errorf("dial %s %s", network, address)
		}
		var d net.Dialer
		return d.DialContext(ctx, network, strings.Replace(address, "filer.example", "127.0.0.1", 1))
	})
	c := dial(t, "nfs://filer.example:"+port+"/?nconnect=1", through)
	if got := get(t, c.FS(), "file"); string(got) != "here" {
		t.Errorf("%q", got)
	}
	if n := dials.Load(); n != 2 { // MOUNT and NFS
		t.Errorf("%d connections", n)
	}
	if _, err := nfsbox.Exports(t.Context(), "nfs://filer.example:"+port, through); err != nil {
		t.Error(err)
	}
}
