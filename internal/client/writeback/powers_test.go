package writeback_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// able is a file system with every power of which a wrapper has an opinion. It notes
// what reaches it.
type able struct {
	*memfs.FS
	mu    sync.Mutex
	calls []string
}

func (a *able) As(*vfs.Caller) vfs.FS { return a }

func (a *able) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, what)
}

func (a *able) Sync(context.Context, vfs.Handle) error {
	a.note("sync")
	return nil
}

func (a *able) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	a.note("setacl")
	return a.FS.SetACL(ctx, h, acl)
}

func (a *able) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, opened, err := a.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	return &ableFile{f, a}, opened, nil
}

type ableFile struct {
	vfs.File
	a *able
}

func (f *ableFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	f.a.note("commit")
	return f.File.Commit(ctx, off, n, w)
}

// TestPowersOfTheWrapper are those of what it wraps, and not those that lead around
// the dirty bytes.
func TestPowersOfTheWrapper(t *testing.T) {
	mem := memfs.New(memfs.Options{})
	over := func(fs vfs.FS) vfs.FS { return writeback.New(fs, writeback.Options{}) }
	bare := over(struct{ vfs.FS }{mem})
	for _, x := range []struct {
		power string
		has   func(any) bool
		able  bool
	}{
		{"Syncer", vfs.Has[vfs.Syncer], true},
		{"ACLer", vfs.Has[vfs.ACLer], true},
		{"Locker", vfs.Has[vfs.Locker], true},
		{"HostOpener", vfs.Has[vfs.HostOpener], false}, // though the file system below has it
	} {
		all := over(&able{FS: mem})
		if got := x.has(all); got != x.able {
			t.Errorf("over a file system with all powers: %s is %t", x.power, got)
		}
		if got := x.has(all.As(&vfs.Caller{UID: 7})); got != x.able {
			t.Errorf("another caller's view of it: %s is %t", x.power, got)
		}
		if x.has(bare) || x.has(over(bare)) {
			t.Errorf("over a file system with none: there is a %s", x.power)
		}
	}
	if !vfs.Has[vfs.Closer](bare) {
		t.Error("it holds resources, and cannot be closed")
	}
}

// TestSyncReachesBelow commits what is dirty, and then has the file system below make
// it stable.
func TestSyncReachesBelow(t *testing.T) {
	for _, x := range []struct {
		power string
		use   func(vfs.FS, vfs.Handle) error
		want  []string
	}{
		{"Syncer", func(f vfs.FS, h vfs.Handle) error {
			s, _ := vfs.As[vfs.Syncer](f)
			return s.Sync(t.Context(), h)
		}, []string{"commit", "sync"}},
		{"ACLer", func(f vfs.FS, h vfs.Handle) error {
			// A WRITE behind it might be refused.
			a, _ := vfs.As[vfs.ACLer](f)
			acl, err := a.ACL(t.Context(), h)
			if err != nil {
				return err
			}
			return a.SetACL(t.Context(), h, acl)
		}, []string{"commit", "setacl"}},
	} {
		below := &able{FS: memfs.New(memfs.Options{})}
		f := writeback.New(below, writeback.Options{})
		root, _, err := f.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		file, opened, err := f.Open(t.Context(), vfs.At{Dir: root, Name: "f"}, &vfs.OpenHow{
			Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var w vfs.Written
		if _, err := file.WriteAt(t.Context(), []byte("dirty"), 0, vfs.Unstable, &w); err != nil {
			t.Fatal(err)
		}
		if err := x.use(f, opened.H); err != nil || !slices.Equal(below.calls, x.want) {
			t.Errorf("%s: below came %q, %v; want %q", x.power, below.calls, err, x.want)
		}
		if err := file.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// passer passes questions on to below. A call that comes to it panics: it has no FS.
type passer struct {
	vfs.FS
	below vfs.FS
}

func (p *passer) As(c *vfs.Caller) vfs.FS { return &passer{below: p.below.As(c)} }
func (p *passer) Asked() vfs.FS           { return vfs.Asked(p.below) }

// TestQuestionsPassLayers: what is asked of names and attributes goes to the FS that answers it, past
// the layers between, for every view.
func TestQuestionsPassLayers(t *testing.T) {
	wb := writeback.New(&passer{below: &passer{below: memfs.New(memfs.Options{})}}, writeback.Options{})
	for _, fs := range []vfs.FS{wb, wb.As(&vfs.Caller{})} {
		root, _, err := fs.Root(t.Context())
		if err != nil {
			t.Fatal("Root:", err)
		}
		if _, err := fs.GetAttr(t.Context(), root, vfs.MaskV3); err != nil {
			t.Error("GetAttr:", err)
		}
		if _, _, err := fs.Access(t.Context(), root, vfs.AccessLookup); err != nil {
			t.Error("Access:", err)
		}
		if _, _, _, err := fs.Lookup(t.Context(), root, ".."); err != nil {
			t.Error("Lookup:", err)
		}
		for _, err := range fs.ReadDir(t.Context(), root, vfs.Pos{}, 0, 0) {
			t.Error("ReadDir:", err)
		}
	}
}
