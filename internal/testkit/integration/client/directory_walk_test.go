package client

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// census is a walk's visitor that counts.
type census struct{ dirs, entries, faults atomic.Int64 }

func (c *census) Enter(context.Context, *walk.Dir) error             { c.dirs.Add(1); return nil }
func (c *census) Entry(context.Context, *walk.Dir, *vfs.Entry) error { c.entries.Add(1); return nil }
func (c *census) Leave(context.Context, *walk.Dir, error) error      { return nil }
func (c *census) Fault(_ context.Context, _ *walk.Dir, _ string, err error) error {
	c.faults.Add(1)
	return err
}

// TestWalkCalls walks a tree of some hundred directories, and counts what the
// server was asked: READDIRPLUS once for each directory (but for the one that
// needs several pages), and one GETATTR for the root.
func TestWalkCalls(t *testing.T) {
	const dirs, files = 300, 5
	mem := memfs.New(memfs.Options{Mode: 0o777})
	root, _, err := mem.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	make := func(dir vfs.Handle, name string, typ vfs.Type) vfs.Handle {
		h, _, _, err := mem.Create(t.Context(), dir, name, &vfs.CreateHow{Type: typ})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	all := []vfs.Handle{root}
	for i := range dirs - 1 {
		all = append(all, make(all[i/3], fmt.Sprint("dir", i), vfs.TypeDir))
	}
	for _, dir := range all {
		for i := range files {
			make(dir, fmt.Sprint("file", i), vfs.TypeReg)
		}
	}
	const many = 1500
	for i := range many {
		make(all[dirs-1], fmt.Sprint("one of many ", i), vfs.TypeReg)
	}
	s := start(t, export.Export{Path: "/", FS: mem})
	fs := dial(t, "nfs://"+s.addr+"/").FS()
	if root, _, err = fs.Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := s.srv.Stats().Calls
	var c census
	if err := walk.Tree(t.Context(), fs, root, walk.Options{}, &c); err != nil {
		t.Fatal(err)
	}
	if c.dirs.Load() != dirs || c.entries.Load() != dirs*files+many || c.faults.Load() != 0 {
		t.Errorf("%d directories, %d entries, %d faults", c.dirs.Load(), c.entries.Load(), c.faults.Load())
	}
	for name, n := range s.srv.Stats().Calls {
		n -= before[name]
		switch {
		case n == 0:
		case name == "READDIRPLUS" && n >= dirs && n <= dirs+4:
		case name == "GETATTR" && n == 1:
		default:
			t.Errorf("%d calls of %s", n, name)
		}
	}
}
