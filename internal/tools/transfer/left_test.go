package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// overtaken is a server that is slow to make what has a temporary name. The caller
// is interrupted meanwhile. If it goes, its REMOVE overtakes the call, which is carried
// out behind it.
type overtaken struct {
	vfs.FS
	interrupt func()
	never     bool // the answer comes too late for anybody
	late      func()
}

// makes does a call that makes something, or has it done behind the next Remove.
func (f *overtaken) makes(ctx context.Context, name string, do func() error) error {
	if !IsTemp(name, "") {
		return do()
	}
	f.interrupt()
	if f.never {
		<-ctx.Done()
	}
	if ctx.Err() == nil {
		return do()
	}
	f.late = func() { _ = do() }
	return errors.Join(vfs.ErrUnknownOutcome, ctx.Err())
}

func (f *overtaken) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (file vfs.File, o vfs.Opened, err error) {
	err = f.makes(ctx, at.Name, func() error {
		file, o, err = f.FS.Open(context.WithoutCancel(ctx), at, how)
		if err == nil && f.late != nil {
			err = file.Close(context.WithoutCancel(ctx))
		}
		return err
	})
	return file, o, err
}

func (f *overtaken) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (h vfs.Handle, a vfs.Attr, w vfs.WCC, err error) {
	err = f.makes(ctx, name, func() error {
		h, a, w, err = f.FS.Create(context.WithoutCancel(ctx), dir, name, how)
		return err
	})
	return h, a, w, err
}

func (f *overtaken) Link(ctx context.Context, h, dir vfs.Handle, name string) (a vfs.Attr, w vfs.WCC, err error) {
	err = f.makes(ctx, name, func() error {
		a, w, err = f.FS.Link(context.WithoutCancel(ctx), h, dir, name)
		return err
	})
	return a, w, err
}

func (f *overtaken) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	wcc, err := f.FS.Remove(ctx, dir, name, isDir)
	if f.late != nil {
		f.late()
		f.late = nil
	}
	return wcc, err
}

// TestOvertaken interrupts a copy in the call that makes its temporary: nothing is
// left of it. If the call is not answered for too long, the copy says what may be left.
func TestOvertaken(t *testing.T) {
	for _, c := range []struct {
		name string
		copy func(ctx context.Context, src, dst *end, to Target, o *Options) error
	}{
		{"file", func(ctx context.Context, src, _ *end, to Target, o *Options) error {
			_, err := File(ctx, src.file("a", pattern(10)), to, o)
			return err
		}},
		{"symbolic link", func(ctx context.Context, src, _ *end, to Target, o *Options) error {
			_, err := Symlink(ctx, src.make("a", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"}), to, o)
			return err
		}},
		{"pipe", func(ctx context.Context, src, _ *end, to Target, o *Options) error {
			_, err := Node(ctx, src.make("a", vfs.CreateHow{Type: vfs.TypeFIFO}), to, o)
			return err
		}},
		{"hard link", func(ctx context.Context, _, dst *end, to Target, o *Options) error {
			return Link(ctx, dst.file("b", nil).Handle, to, o)
		}},
		{"probe", func(ctx context.Context, src, _ *end, to Target, o *Options) error {
			_, err := Probe(ctx, to, src.fs, src.root, o)
			return err
		}},
	} {
		for _, never := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, never answered %v", c.name, never), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
					dst.file("there", pattern(5))
					ctx, interrupt := context.WithCancel(t.Context())
					slow := &overtaken{FS: dst.fs, interrupt: interrupt, never: never}
					err := c.copy(ctx, src, dst, Target{FS: slow, Dir: dst.root, Name: "there"}, options(t))
					left, told := errors.AsType[*LeftError](err)
					var temps []string
					for _, name := range dst.names() {
						if IsTemp(name, "") {
							temps = append(temps, name)
						}
					}
					switch {
					case !never && (told || len(temps) > 0):
						t.Errorf("%s: left behind: %q, %v", c.name, temps, err)
					case never && (!told || !slices.Equal(temps, left.Names)):
						t.Errorf("%s, not answered: left behind: %q, told: %v", c.name, temps, err)
					}
					if !errors.Is(err, context.Canceled) {
						t.Errorf("%s: %v", c.name, err)
					}
				})
			})
		}
	}
}

// TestUnansweredTemporary: of a call that was never answered the temporary may appear
// yet. Another name does, and the copy tells of the first one.
func TestUnansweredTemporary(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	deaf := &unansweredOnce{FS: dst.fs}
	res, err := File(t.Context(), src.file("f", pattern(10)), Target{FS: deaf, Dir: dst.root, Name: "f"}, options(t))
	if err != nil || !slices.Equal(res.Left, []string{deaf.name}) {
		t.Errorf("%v; told of %v, want %s", err, res.Left, deaf.name)
	}
	dst.noTemps()
}

// unansweredOnce loses the first Open that makes something, and says that it does not know.
type unansweredOnce struct {
	vfs.FS
	name string
}

func (f *unansweredOnce) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if f.name == "" {
		f.name = at.Name
		return nil, vfs.Opened{}, vfs.ErrUnknownOutcome
	}
	return f.FS.Open(ctx, at, how)
}

// stubborn is a server that removes nothing.
type stubborn struct{ vfs.FS }

func (stubborn) Remove(context.Context, vfs.Handle, string, bool) (vfs.WCC, error) {
	return vfs.WCC{}, vfs.ErrIO
}

// changing is a source with a file that changes when it is read, so many times.
func changing(t *testing.T, times int) Source {
	t.Helper()
	var in hooks
	src := mem(t, memfs.Options{Fault: in.fault})
	from := src.file("f", pattern(10))
	in.start(0, nil)
	in.before = func(op string) {
		if op == "read" && times > 0 {
			times--
			src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Unix(int64(times), 0)})
		}
	}
	return from
}

// temporaries are the names of temporaries in the root.
func (e *end) temporaries() (temps []string) {
	e.t.Helper()
	for _, name := range e.names() {
		if IsTemp(name, "") {
			temps = append(temps, name)
		}
	}
	slices.Sort(temps)
	return temps
}

// TestTemporariesOfEarlierAttempts: a file changes while it is copied, and is copied again. A
// temporary that the first attempt could not remove is told of in the end, whether or not the
// second attempt succeeds.
func TestTemporariesOfEarlierAttempts(t *testing.T) {
	for _, times := range []int{1, 1000} {
		dst := mem(t, memfs.Options{})
		res, err := File(t.Context(), changing(t, times), Target{FS: stubborn{dst.fs}, Dir: dst.root, Name: "f"}, options(t))
		told := res.Left
		if left, ok := errors.AsType[*LeftError](err); ok {
			told = left.Names
		}
		slices.Sort(told)
		if temps := dst.temporaries(); len(temps) == 0 || !slices.Equal(told, temps) || (err == nil) != (times == 1) {
			t.Errorf("%d changes: left behind: %q, told of %q: %v", times, temps, told, err)
		}
	}
}

// TestUnansweredTemporaryOfFailure: the copy fails after a temporary that may appear yet. Its
// error names that.
func TestUnansweredTemporaryOfFailure(t *testing.T) {
	dst := mem(t, memfs.Options{})
	deaf := &unansweredOnce{FS: dst.fs}
	_, err := File(t.Context(), changing(t, 1000), Target{FS: deaf, Dir: dst.root, Name: "f"}, options(t))
	left, ok := errors.AsType[*LeftError](err)
	if !errors.Is(err, ErrChanged) || !ok || !slices.Equal(left.Names, []string{deaf.name}) {
		t.Errorf("%v, want it to name %s", err, deaf.name)
	}
}
