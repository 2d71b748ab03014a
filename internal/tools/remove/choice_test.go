package remove

import (
	"context"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// choose removes names of the root, as far as keep does not have the paths below them.
func (x *fixture) choose(keep []string, through []string, targets ...Target) (left []string) {
	x.t.Helper()
	o := x.options()
	r := New(x.t.Context(), x.fs, o)
	for _, t := range targets {
		t.Choice = Choice{
			Chosen: t.Path,
			Choose: func(in any, e *vfs.Entry) (any, bool) {
				path := in.(string) + "/" + string(e.Name)
				return path, !slices.Contains(keep, path)
			},
			LeftOut: func(e *vfs.Entry) {
				x.mu.Lock()
				defer x.mu.Unlock()
				left = append(left, string(e.Name))
			},
			Stays: func(chosen any) bool { return slices.Contains(through, chosen.(string)) },
		}
		if err := r.Remove(t); err != nil {
			x.t.Fatal(err)
		}
	}
	if err := r.Wait(); err != nil {
		x.t.Fatal(err)
	}
	return left
}

// TestChoice: what is not chosen stays, with the directories above it, and no directory that is only gone through goes.
func TestChoice(t *testing.T) {
	x := newFixture(t, memfs.New(memfs.Options{}))
	for _, path := range []string{"a/b/keep", "a/b/go", "a/c/x", "a/d/y", "e/f"} {
		x.file(path)
	}
	left := x.choose([]string{"a/b/keep"}, []string{"a/d"}, Target{Dir: x.root, Name: "a", Path: "a"}, Target{Dir: x.root, Name: "e", Path: "e"})
	x.expect([]string{"a", "a/b", "a/b/keep", "a/d"})
	if !slices.Equal(left, []string{"keep"}) {
		t.Errorf("left out: %q", left)
	}
}

// TestInside: a directory loses what lies in it, and stays.
func TestInside(t *testing.T) {
	x := newFixture(t, memfs.New(memfs.Options{}))
	for _, path := range []string{"a/b", "c", "keep"} {
		x.file(path)
	}
	x.choose([]string{"./keep"}, nil, Target{Inside: true, Handle: x.root, Path: "."})
	x.expect([]string{"keep"})
}

// TestChoiceAgain: a directory into which something came while it was emptied is emptied by the same choice.
func TestChoiceAgain(t *testing.T) {
	x := newFixture(t, memfs.New(memfs.Options{}))
	x.file("a/b/go")
	f := &filler{FS: x.fs, x: x}
	x.fs = f
	if left := x.choose([]string{"a/b/keep"}, nil, Target{Dir: x.root, Name: "a", Path: "a"}); !slices.Equal(left, []string{"keep"}) {
		t.Errorf("left out: %q", left)
	}
	x.fs = f.FS
	x.expect([]string{"a", "a/b", "a/b/keep"})
}

// filler makes a file "keep" and another before the first directory is removed.
type filler struct {
	vfs.FS
	x    *fixture
	done bool
}

func (f *filler) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	if isDir && !f.done {
		f.done = true
		f.x.file("a/b/keep")
		f.x.file("a/b/other")
	}
	return f.FS.Remove(ctx, dir, name, isDir)
}
