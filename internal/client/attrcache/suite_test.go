package attrcache_test

import (
	"context"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/attrcache"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// long are times that do not end while a test runs.
var long = attrcache.Times{FileMin: time.Hour, FileMax: time.Hour, DirMin: time.Hour, DirMax: time.Hour}

// doubtful is a file system that proves of no change that it was the only one, as a server of NFSv3.
type doubtful struct{ vfs.FS }

func (d doubtful) As(c *vfs.Caller) vfs.FS { return doubtful{d.FS.As(c)} }
func (d doubtful) Unwrap() any             { return d.FS }

func (d doubtful) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	w, err := d.FS.SetAttr(ctx, h, set, guard)
	w.Atomic = false
	return w, err
}

func (d doubtful) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	h, a, w, err := d.FS.Create(ctx, dir, name, how)
	w.Atomic = false
	return h, a, w, err
}

func (d doubtful) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	a, w, err := d.FS.Link(ctx, h, dir, name)
	w.Atomic = false
	return a, w, err
}

func (d doubtful) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	w, err := d.FS.Remove(ctx, dir, name, isDir)
	w.Atomic = false
	return w, err
}

func (d doubtful) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	from, to, err = d.FS.Rename(ctx, fromDir, fromName, toDir, toName)
	from.Atomic, to.Atomic = false, false
	return from, to, err
}

func memory() vfs.FS { return memfs.New(memfs.Options{ReadMax: 8 << 10, WriteMax: 8 << 10}) }

// stacks are ways in which it stands.
var stacks = map[string]func(*testing.T) vfs.FS{
	"alone": func(*testing.T) vfs.FS { return attrcache.New(memory(), attrcache.Options{Times: long}) },
	"below write-behind": func(*testing.T) vfs.FS {
		return writeback.New(attrcache.New(memory(), attrcache.Options{Times: long}), writeback.Options{})
	},
	"without proof": func(*testing.T) vfs.FS {
		return writeback.New(attrcache.New(doubtful{memory()}, attrcache.Options{Times: long}), writeback.Options{})
	},
	"small": func(*testing.T) vfs.FS {
		return attrcache.New(memory(), attrcache.Options{Times: long, Objects: 3, MaxNames: 3})
	},
	"without names": func(*testing.T) vfs.FS {
		return attrcache.New(memory(), attrcache.Options{Times: long, Names: attrcache.NamesNone})
	},
}

// TestSuite runs the suite over the wrapper.
func TestSuite(t *testing.T) {
	for _, name := range []string{"alone", "without proof"} { // the others draw operations
		t.Run(name, func(t *testing.T) { vfstest.Run(t, vfstest.Config{New: stacks[name], Callers: true}) })
	}
}

// TestSuiteModel draws more operations than the suite does.
func TestSuiteModel(t *testing.T) {
	for name, make := range stacks {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				vfstest.RunModel(t, vfstest.Config{New: make, Callers: true}, seed, 1000)
			}
		})
	}
}

// TestSuitePowers proves the powers that the wrapper passes on, alone and below write-behind.
func TestSuitePowers(t *testing.T) {
	vfstest.RunPowers(t, vfstest.PowersConfig{New: func(_ *testing.T, over vfs.FS) vfs.FS {
		return attrcache.New(over, attrcache.Options{Times: long})
	}})
	vfstest.RunPowers(t, vfstest.PowersConfig{New: func(_ *testing.T, over vfs.FS) vfs.FS {
		return writeback.New(attrcache.New(over, attrcache.Options{Times: long}), writeback.Options{})
	}})
}
