package vfstest

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// melted are read-only views with one lie each, by the test that must find it.
var melted = map[string]func(*ice){
	"same-attributes": func(f *ice) { f.attr = func(a *vfs.Attr) { a.Mode &^= 0o4000 } },
	"same-content":    func(f *ice) { f.file = func(g vfs.File) vfs.File { return upper{g} } },
	"same-links":      func(f *ice) { f.target = func(s string) string { return "x" + s[1:] } },
	"same-lists":      func(f *ice) { f.unlisted = true },
	"same-xattrs":     func(f *ice) { f.unmarked = true },
	"same-rights":     func(f *ice) { f.all = true },
	"same-holes":      func(f *ice) { f.file = func(g vfs.File) vfs.File { return solid{g} } },
	"read-only":       func(f *ice) { f.writes = true },
	"reopened":        nil, // another tree is opened
}

// TestFrozen judges a read-only view, and wants each lie of one to be found, in a process of its own.
func TestFrozen(t *testing.T) {
	if name := os.Getenv(mutantEnv); name != "" {
		runFrozenOver(t, melted[name])
		return
	}
	runFrozenOver(t, func(*ice) {})
	for name := range melted {
		t.Run("lie-about-"+name, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFrozen$/^"+name+"$", "-test.timeout=60s")
			child.Env = append(os.Environ(), mutantEnv+"="+name)
			out, err := child.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !regexp.MustCompile(`--- FAIL: TestFrozen/`+name+` `).Match(out) {
				t.Fatalf("the suite does not find it: %v\n%s", err, out)
			}
		})
	}
}

func runFrozenOver(t *testing.T, lie func(*ice)) {
	Run(t, Config{
		New: func(*testing.T) vfs.FS { return memfs.New(memfs.Options{}) },
		Freeze: func(_ *testing.T, f vfs.FS) vfs.FS {
			v := ice{below: f, powers: f.(powers)}
			if lie != nil {
				lie(&v)
			}
			return v
		},
		Restart: func(_ *testing.T, f vfs.FS) vfs.FS {
			if lie == nil {
				return memfs.New(memfs.Options{ID: 7})
			}
			f.(ice).below.(*memfs.FS).Restart()
			return f
		},
		Callers: true,
	})
}

// ice is a read-only view of a file system, which shows it truly unless a field says otherwise.
type ice struct {
	vfs.ReadOnly
	below    vfs.FS
	powers   powers                  // of below
	attr     func(*vfs.Attr)         // changes what GetAttr says
	file     func(vfs.File) vfs.File // and what Open gives
	target   func(string) string     // and where links lead
	all      bool                    // every caller may do all
	unlisted bool                    // access control lists are hidden
	unmarked bool                    // extended attributes too
	writes   bool                    // these can be set
}

type powers interface {
	vfs.ACLer
	vfs.Xattrer
}

func (f ice) As(c *vfs.Caller) vfs.FS {
	if !f.all {
		f.below = f.below.As(c)
	}
	return f
}

func (f ice) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) { return f.below.Root(ctx) }

func (f ice) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	return f.below.Info(ctx, h, want)
}

func (f ice) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	a, err := f.below.GetAttr(ctx, h, want)
	if f.attr != nil {
		f.attr(&a)
	}
	return a, err
}

func (f ice) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	return f.below.Access(ctx, h, want&(vfs.AccessRead|vfs.AccessLookup|vfs.AccessExecute))
}

func (f ice) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, dirAttr vfs.Attr, err error) {
	return f.below.Lookup(ctx, dir, name)
}

func (f ice) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	s, a, err := f.below.Readlink(ctx, h)
	if err == nil && f.target != nil {
		s = f.target(s)
	}
	return s, a, err
}

func (f ice) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return f.below.ReadDir(ctx, dir, from, want, maxBytes)
}

func (f ice) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	o, err := vfs.Readable(ctx, f, at, how)
	if err != nil {
		return nil, o, err
	}
	file, o, err := f.below.Open(ctx, at, how)
	if err != nil {
		return nil, o, err
	}
	if f.file != nil {
		file = f.file(file)
	}
	return iceFile{file}, o, nil
}

func (f ice) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	if f.unlisted {
		return vfs.ACL{Access: aclOf(7, 7, 7)}, nil
	}
	return f.powers.ACL(ctx, h)
}

func (ice) SetACL(context.Context, vfs.Handle, vfs.ACL) error { return vfs.ErrROFS }

func (f ice) Xattrs(ctx context.Context, h vfs.Handle) ([]string, error) {
	all, err := f.powers.Xattrs(ctx, h)
	if f.unmarked {
		all = nil
	}
	return all, err
}

func (f ice) Xattr(ctx context.Context, h vfs.Handle, name string) ([]byte, error) {
	return f.powers.Xattr(ctx, h, name)
}

func (ice) RemoveXattr(context.Context, vfs.Handle, string) error { return vfs.ErrROFS }

func (f ice) SetXattr(ctx context.Context, h vfs.Handle, name string, value []byte, how vfs.XattrHow) error {
	if f.writes {
		return f.powers.SetXattr(ctx, h, name, value, how)
	}
	return vfs.ErrROFS
}

// iceFile is a file that nobody changes.
type iceFile struct{ vfs.File }

func (f iceFile) Unwrap() any { return f.File }

func (f iceFile) WriteAt(context.Context, []byte, uint64, vfs.Stability, *vfs.Written) (int, error) {
	return 0, vfs.ErrROFS
}
func (f iceFile) Truncate(context.Context, uint64) (vfs.WCC, error) { return vfs.WCC{}, vfs.ErrROFS }

// upper lies about one byte.
type upper struct{ vfs.File }

func (f upper) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	n, eof, err := f.File.ReadAt(ctx, p, off, post)
	if off <= 3 && off+uint64(n) > 3 {
		p[3-off] ^= 1
	}
	return n, eof, err
}

// solid says that all is data.
type solid struct{ vfs.File }

func (solid) NextData(_ context.Context, off uint64) (uint64, error) { return off, nil }

func (f solid) NextHole(ctx context.Context, off uint64) (uint64, error) {
	return f.File.(vfs.HoleSeeker).NextHole(ctx, 1<<62)
}
