package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/idmap"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// TestSuiteAttrs runs the suite over the whole way, with attributes and names kept for longer than it takes.
func TestSuiteAttrs(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		Callers: true,
		New: func(t *testing.T) vfs.FS {
			s := start(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o755})})
			return dial(t, "nfs://"+s.addr+"/?actimeo=3600").FS()
		},
	})
}

// callsOf are the calls of procedures that a client has made.
func callsOf(c *nfsbox.Client, names ...string) (n uint64) {
	s := c.Stats()
	for i := range s.Procs {
		for _, name := range names {
			if s.Procs[i].Name == name {
				n += s.Procs[i].Calls
			}
		}
	}
	return n
}

// list does what ls -lR does with a system call for each question: names alone, then each by name, and its attributes.
func list(t *testing.T, fs vfs.FS, dir vfs.Handle) (files int) {
	t.Helper()
	if _, err := fs.GetAttr(t.Context(), dir, vfs.MaskV3); err != nil {
		t.Fatal(err)
	}
	var names []string
	for e, err := range fs.ReadDir(t.Context(), dir, vfs.Pos{}, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, string(e.Name))
	}
	for _, name := range names {
		h, _, _, err := fs.Lookup(t.Context(), dir, name)
		if err != nil {
			t.Fatal(err)
		}
		a, err := fs.GetAttr(t.Context(), h, vfs.MaskV3)
		if err != nil {
			t.Fatal(err)
		}
		files++
		if a.Type == vfs.TypeDir {
			files += list(t, fs, h)
		}
	}
	return files
}

// TestListTwice: with actimeo the second ls -lR asks for no attributes and no names. Without, it asks for all.
func TestListTwice(t *testing.T) {
	s := start(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o755})})
	w := dial(t, "nfs://"+s.addr+"/")
	tree, err := w.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a", "a/b", "c"} {
		if err := tree.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"1", "2", "3"} {
			if err := tree.WriteFile(dir+"/"+name, []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for args, want := range map[string]bool{"": true, "?noac": true, "?lookupcache=none": true, "?actimeo=0": true, "?actimeo=600": false, "?ac&acregmin=600&acdirmin=600": false, "?lookupcache=all&actimeo=600": false} {
		c := dial(t, "nfs://"+s.addr+"/"+args)
		root, _, err := c.FS().Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first := list(t, c.FS(), root)
		asked := callsOf(c, "GETATTR", "LOOKUP", "ACCESS")
		second := list(t, c.FS(), root)
		if st := c.Stats().Attrs; !want && (st.Hits == 0 || st.Misses == 0 || st.Objects == 0 || st.Names == 0) || strings.Contains(args, "noac") && st != (nfsbox.AttrStats{}) {
			t.Errorf("%q: %+v", args, st)
		}
		again := callsOf(c, "GETATTR", "LOOKUP", "ACCESS") - asked
		if first != 12 || second != 12 {
			t.Errorf("%q: %d and %d files, want 12", args, first, second)
		}
		if (again > 0) != want {
			t.Errorf("%q: the second time %d questions are asked, the first time %d", args, again, asked)
		}
	}
}

// TestCopySeesChanges: what is kept of a file does not hide from a copy that the file has changed while it was read, whoever
// its owners are to be.
func TestCopySeesChanges(t *testing.T) {
	const size = 4 << 20 // the last bytes are read ahead, and bring no attributes
	old, fresh := bytes.Repeat([]byte("old "), size/4), bytes.Repeat([]byte("new "), size/4)
	owners, err := idmap.Parse([]string{"0:7"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, shown := range map[string]func(vfs.FS) vfs.FS{
		"as it is":          func(fs vfs.FS) vfs.FS { return fs },
		"with other owners": owners.Of,
	} {
		t.Run(name, func(t *testing.T) {
			var mem *memfs.FS
			var src vfs.FS
			var h vfs.Handle
			var change sync.Once
			mem = memfs.New(memfs.Options{Mode: 0o755, Fault: func(_ context.Context, op string, _ vfs.Handle) error {
				if op == "read" {
					change.Do(func() {
						if _, err := src.GetAttr(t.Context(), h, vfs.MaskV3); err != nil { // which is kept from now on
							t.Error(err)
						}
						putCached(t, mem, "f", 0o644, fresh)
					})
				}
				return nil
			}})
			putCached(t, mem, "f", 0o644, old)
			s := start(t, export.Export{Path: "/", FS: mem})
			src = shown(dial(t, "nfs://"+s.addr+"/?actimeo=600").FS())
			var a vfs.Attr
			if h, a, _, err = src.Lookup(t.Context(), rootOf(t, src), "f"); err != nil {
				t.Fatal(err)
			}
			to := memfs.New(memfs.Options{Mode: 0o755})
			_, err = transfer.File(t.Context(), transfer.Source{FS: src, Handle: h, Attr: a, Dir: rootOf(t, src), Name: "f"},
				transfer.Target{FS: to, Dir: rootOf(t, to), Name: "f"}, &transfer.Options{Pool: new(bufpool.Pool), Random: rand.Reader, Chunk: transfer.MaxChunk})
			if err != nil {
				t.Fatal(err)
			}
			_, now, _, err := mem.Lookup(t.Context(), rootOf(t, mem), "f")
			if err != nil || now.Mtime.Equal(a.Mtime) {
				t.Errorf("it has not changed, and so this proves nothing: %v", err)
			}
			_, copied, _, err := to.Lookup(t.Context(), rootOf(t, to), "f")
			if err != nil || !copied.Mtime.Equal(now.Mtime) {
				t.Errorf("the copy is of %v, and the file of %v: %v", copied.Mtime, now.Mtime, err)
			}
			if got := get(t, to, "f"); !bytes.Equal(got, fresh) {
				t.Errorf("%d bytes that are not those of the file", len(got))
			}
		})
	}
}
