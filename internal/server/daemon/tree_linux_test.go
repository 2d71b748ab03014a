package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// write writes to a file, and returns what the server says.
func write(t *testing.T, c *oncrpc.Client, h []byte, text string) nfs3.Nfsstat3 {
	t.Helper()
	var res nfs3.WRITE3res
	args := nfs3.WRITE3args{File: nfs3.NfsFh3{Data: h}, Count: uint32(len(text)), Stable: nfs3.FILE_SYNC, Data: []byte(text)}
	reply, err := c.Call(t.Context(), nfs3.NFSPROC3_WRITE, auth(t), &args, &res)
	if err != nil {
		t.Fatal(err)
	}
	reply.Release()
	return res.Status
}

// treeWith is a directory with a file.
func treeWith(t *testing.T, dir, text string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestReloadOtherTree goes over to another directory under the same path: handles of
// the old tree's files neither read nor write it any more. When the old tree is back
// they are as good as ever.
func TestReloadOtherTree(t *testing.T) {
	for _, handles := range []string{"auto", "map"} {
		t.Run(handles, func(t *testing.T) {
			top := t.TempDir()
			one, two := treeWith(t, filepath.Join(top, "one"), "one"), treeWith(t, filepath.Join(top, "two"), "two")
			conf := confOf(one, t.TempDir())
			conf.Exports[0].Handles = handles
			conf.Fill()
			r := runReloader(t, conf)
			c := client(t, r.url)
			old := lookup(t, c, mount(t, c, "/"), "file")
			if got, st := read(t, c, old); got != "one" {
				t.Fatalf("READ: %q, %v", got, st)
			}
			r.reload(changed(conf, func(c *config.Config) { c.Exports[0].Dir = two }), nil)
			if got, st := read(t, c, old); st != nfs3.NFS3ERR_STALE {
				t.Errorf("READ of a file of the old tree: %q, %v", got, st)
			}
			if st := write(t, c, old, "lost"); st != nfs3.NFS3ERR_STALE {
				t.Errorf("WRITE to a file of the old tree: %v", st)
			}
			if got, st := read(t, c, lookup(t, c, mount(t, c, "/"), "file")); got != "two" {
				t.Errorf("READ in the new tree: %q, %v", got, st)
			}
			r.reload(&conf, nil)
			if got, st := read(t, c, old); got != "one" {
				t.Errorf("READ when the tree is back: %q, %v", got, st)
			}
		})
	}
}

// TestReloadReplaced notices at a reload that the directory is another one, although
// its path is the same, and serves that. After a restart handles of it are as good as
// before.
func TestReloadReplaced(t *testing.T) {
	for _, handles := range []string{"auto", "map"} {
		t.Run(handles, func(t *testing.T) {
			dir, state := filepath.Join(t.TempDir(), "tree"), t.TempDir()
			treeWith(t, dir, "old")
			conf := confOf(dir, state)
			conf.Exports[0].Handles = handles
			conf.Fill()
			random := counter()
			r := runReloaderIn(t, conf, random)
			c := client(t, r.url)
			old := lookup(t, c, mount(t, c, "/"), "file")
			if err := os.Rename(dir, dir+".away"); err != nil {
				t.Fatal(err)
			}
			treeWith(t, dir, "new")
			r.reload(&conf, nil)
			root := mount(t, c, "/")
			file := lookup(t, c, root, "file")
			if got, st := read(t, c, file); got != "new" {
				t.Errorf("READ in the directory that is there now: %q, %v\n%s", got, st, r.log)
			}
			if got, st := read(t, c, old); st != nfs3.NFS3ERR_STALE {
				t.Errorf("READ of a file of the directory that was there: %q, %v", got, st)
			}
			hangUp(t, c)
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			r = runReloaderIn(t, conf, random)
			c = client(t, r.url)
			if got := mount(t, c, "/"); !bytes.Equal(got, root) {
				t.Errorf("after a restart the root is %x, and was %x", got, root)
			}
			if got, st := read(t, c, file); got != "new" {
				t.Errorf("READ after a restart: %q, %v", got, st)
			}
		})
	}
}

// TestMountPoint serves what was mounted over the directory when a reload has noticed,
// and leaves an export out while nothing is mounted that must be.
func TestMountPoint(t *testing.T) {
	need.Root(t, "to mount")
	dir, other := treeWith(t, filepath.Join(t.TempDir(), "tree"), "beneath"), t.TempDir()
	conf := confOf(dir, t.TempDir())
	conf.Exports[0].Path = "/tree"
	conf.Exports = append(conf.Exports, config.Export{Path: "/other", Dir: other, Handles: "auto"})
	conf.Fill()
	must := changed(conf, func(c *config.Config) { c.Exports[0].MountPoint = true })
	r := runReloader(t, conf)
	c := client(t, r.url)
	beneath := lookup(t, c, mount(t, c, "/tree"), "file")
	r.reload(must, nil)
	if st := mountStatus(t, c, "/tree"); st == 0 || !strings.Contains(r.log.String(), "nothing is mounted there") {
		t.Errorf("exported without a mount: %v\n%s", st, r.log)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		need.Missing(t, "mount", err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	treeWith(t, dir, "above")
	for what, next := range map[string]*config.Config{"with mountpoint": must, "without": &conf} {
		r.reload(next, nil)
		if got, st := read(t, c, lookup(t, c, mount(t, c, "/tree"), "file")); got != "above" {
			t.Errorf("%s: READ of what is mounted: %q, %v", what, got, st)
		}
		if _, st := read(t, c, beneath); st != nfs3.NFS3ERR_STALE {
			t.Errorf("%s: READ of what is beneath: %v", what, st)
		}
	}
}

// TestMadeAgain starts with the state that was kept of a directory that was made again,
// as a tmpfs or the layer of a container is: it says so, and old handles are stale.
func TestMadeAgain(t *testing.T) {
	for _, handles := range []string{"auto", "map"} {
		t.Run(handles, func(t *testing.T) {
			dir, state := treeWith(t, filepath.Join(t.TempDir(), "tree"), "old"), t.TempDir()
			conf, random := confOf(dir, state), counter()
			conf.Exports[0].Handles = handles
			u, _, stop := runIn(t, conf, World{Rand: random})
			c := client(t, u)
			old := lookup(t, c, mount(t, c, "/"), "file")
			hangUp(t, c)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(dir, dir+".away"); err != nil { // so that its inode is not used again
				t.Fatal(err)
			}
			treeWith(t, dir, "new")
			u, log, _ := runIn(t, conf, World{Rand: random})
			c = client(t, u)
			if got, st := read(t, c, lookup(t, c, mount(t, c, "/"), "file")); got != "new" {
				t.Errorf("READ: %q, %v", got, st)
			}
			if _, st := read(t, c, old); st != nfs3.NFS3ERR_STALE {
				t.Errorf("READ of what was there before: %v", st)
			}
			if handles == "map" && !strings.Contains(log.String(), "a new map of handles is begun") {
				t.Errorf("nothing is said of the new map:\n%s", log)
			}
		})
	}
}
