package job

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// away is a source in which one object is missing when its turn comes. It is back after one
// LOOKUP; until then its handle is stale.
type away struct {
	vfs.FS
	on   vfs.Handle
	name string     // the object's
	then vfs.Handle // has the name meanwhile; zero: nothing has; the object's own: it has no links
	gone bool       // it does not come back

	looked atomic.Bool
}

func (f *away) dead(h vfs.Handle) bool { return h == f.on && (f.gone || !f.looked.Load()) }

func (f *away) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if f.dead(at.H) {
		return nil, vfs.Opened{}, vfs.ErrStale
	}
	return f.FS.Open(ctx, at, how)
}

func (f *away) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	if f.dead(h) {
		return "", vfs.Attr{}, vfs.ErrStale
	}
	return f.FS.Readlink(ctx, h)
}

func (f *away) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	if f.dead(dir) {
		return func(yield func(*vfs.Entry, error) bool) { yield(nil, vfs.ErrStale) }
	}
	return f.FS.ReadDir(ctx, dir, from, want, n)
}

func (f *away) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, d vfs.Attr, err error) {
	if name != f.name || f.looked.Swap(true) && !f.gone {
		return f.FS.Lookup(ctx, dir, name)
	}
	if f.then.IsZero() {
		return h, a, d, vfs.ErrNoEnt
	}
	if a, err = f.GetAttr(ctx, f.then, vfs.MaskV3); f.then == f.on {
		a.Nlink = 0
	}
	return f.then, a, d, err
}

// awayTests say what is away for a while, and whether another object has its name then.
var awayTests = []struct {
	path string
	then string
	gone bool
}{
	{"f", "", false}, {"d/f", "", false}, {"l", "", false}, {"d", "", false},
	{"f", "g", false}, {"d/f", "g", false}, {"l", "m", false}, {"d", "e", false},
	{"f", "", true}, {"d", "", true}, {"f", "g", true}, {"d", "e", true},
	{"d", "d", true},
}

// awaySource is a tree with one object that is away for a while.
func awaySource(t *testing.T, path, then string, gone bool) *away {
	src := mem(t, memfs.Options{})
	for _, name := range []string{"f", "g", "d/f", "e/h"} {
		src.file(name, 0o644, []byte("text"))
	}
	for _, name := range []string{"l", "m"} {
		src.make(name, vfs.CreateHow{Type: vfs.TypeSymlink, Target: name + " leads here"})
	}
	src.settle()
	f := &away{FS: src.fs, on: src.at(path), name: path[strings.LastIndexByte(path, '/')+1:], gone: gone}
	if then != "" {
		f.then = src.at(then)
	}
	return f
}

// TestSourceAway: an object that was missing when its turn came, and is back in the end, has
// failed. So has one that was copied while another had its name. If it stays away, it is a note.
func TestSourceAway(t *testing.T) {
	for _, c := range awayTests {
		f := awaySource(t, c.path, c.then, c.gone)
		o, v := options(t, newTree(t, f), mem(t, memfs.Options{}), "copy")
		s, err := Copy(t.Context(), o)
		told := strings.Contains(v.String(), "it is back")
		if c.gone && (s.ExitCode(err) != ExitDone || told) || !c.gone && (s.ExitCode(err) != ExitIncomplete || s.Errors != 1 || s.Vanished > 0 || !told) {
			t.Errorf("%+v: %v, %+v\n%s", c, err, s, v)
		}
	}
}

// TestVerifySourceAway: a directory that is compared likewise.
func TestVerifySourceAway(t *testing.T) {
	for _, c := range awayTests {
		if c.path != "d" {
			continue
		}
		f, dst := awaySource(t, c.path, c.then, c.gone), awaySource(t, "f", "", false)
		o, v := options(t, newTree(t, f), newTree(t, dst.FS), "")
		s, err := Verify(t.Context(), VerifyOptions{Source: o.Source, Dest: o.Dest, Pool: o.Pool, Now: o.Now, Progress: o.Progress})
		if told := strings.Contains(v.String(), "it is back"); told == c.gone || (s.Errors > 0) == c.gone || err != nil {
			t.Errorf("%+v: %v, %+v\n%s", c, err, s, v)
		}
	}
}

// stopping is a source whose copy is interrupted while the source is asked for.
type stopping struct {
	vfs.FS
	stop context.CancelFunc
}

func (f stopping) GetAttr(ctx context.Context, _ vfs.Handle, _ vfs.Mask) (vfs.Attr, error) {
	f.stop()
	return vfs.Attr{}, ctx.Err()
}

// TestInterruptedWhileAsked: a job that is interrupted while it asks for its source reports
// what it has held back, and does not end as if the source had been there.
func TestInterruptedWhileAsked(t *testing.T) {
	src := mem(t, memfs.Options{})
	o, v := options(t, src, mem(t, memfs.Options{}), "")
	ctx, stop := context.WithCancel(t.Context())
	c := &outcomes{progress: o.Progress, source: source{at: Place{stopping{src.fs, stop}, src.root}}}
	watched, end := c.watch(ctx, func() int { return 0 })
	c.fail(watched, "f", transfer.ErrVanished)
	if err := end(nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the job ends with %v", err)
	}
	if n := o.Progress.Get(progress.Vanished); n != 1 || !strings.Contains(v.String(), "f") {
		t.Errorf("%d are told:\n%s", n, v)
	}
}
