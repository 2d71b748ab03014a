package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestLeftBehind interrupts a copy whose temporaries cannot be removed: it reports some by
// name and the others by number.
func TestLeftBehind(t *testing.T) {
	const files = maxLeft + 3
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var writing atomic.Int32
	var over atomic.Bool
	src, dst := mem(t, memfs.Options{}), newTree(t, memfs.New(memfs.Options{Fault: func(call context.Context, op string, _ vfs.Handle) error {
		switch {
		case over.Load():
		case op == "remove" && ctx.Err() != nil:
			return vfs.ErrIO
		case op == "write":
			if writing.Add(1) == files {
				interrupt()
			}
			<-call.Done() // which may be a moment later than ctx's
			return call.Err()
		}
		return nil
	}}))
	for i := range files {
		src.file(fmt.Sprintf("d/%d", i), 0o600, pattern(10, byte(i)))
	}
	o, v := options(t, src, dst, "copy")
	s, err := Copy(ctx, o)
	over.Store(true)
	temps := dst.temps()
	if err == nil || s.Left != files || len(temps) != files {
		t.Errorf("%v; %d temporaries are told of, and %d are there", err, s.Left, len(temps))
	}
	var named []string
	for _, e := range v.list {
		if e.Kind == KindTemporary && e.Path != "" {
			named = append(named, "copy/"+e.Path)
		}
	}
	slices.Sort(named)
	for _, name := range named {
		if !slices.Contains(temps, name) {
			t.Errorf("%s is named, and is not there: %q", name, temps)
		}
	}
	if n := len(slices.Compact(named)); n != maxLeft || !strings.Contains(v.String(), "3 more could not be removed") {
		t.Errorf("%d are named, want %d\n%s", n, maxLeft, v)
	}
}

// slowProbe is a server on which REMOVE overtakes the probe's CREATE, if the interrupted
// caller does not wait for the CREATE.
type slowProbe struct {
	vfs.FS
	interrupt func()
	never     bool // no answer comes
}

func (f *slowProbe) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	if strings.HasPrefix(name, ".nfsbox-") {
		f.interrupt()
		if f.never || ctx.Err() != nil {
			return vfs.Handle{}, vfs.Attr{}, vfs.WCC{}, vfs.ErrUnknownOutcome
		}
	}
	return f.FS.Create(ctx, dir, name, how)
}

// TestProbeOvertaken interrupts a job in the call that makes its probe: it waits for the
// answer, and if none comes, it says what may be left, and where.
func TestProbeOvertaken(t *testing.T) {
	for _, never := range []bool{false, true} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		src.file("d/f", 0o600, nil)
		ctx, interrupt := context.WithCancel(t.Context())
		o, v := options(t, src, dst, "copy")
		o.Dest.FS = &slowProbe{dst.fs, interrupt, never}
		s, err := Copy(ctx, o)
		if err == nil || s.Left != 0 != never || len(dst.temps()) != 0 {
			t.Errorf("no answer %v: %v; %d told of, %q left\n%s", never, err, s.Left, dst.temps(), v)
		}
		if never && !slices.ContainsFunc(v.list, func(e progress.Event) bool {
			return e.Kind == KindTemporary && strings.HasPrefix(e.Path, ".nfsbox-")
		}) {
			t.Errorf("the temporary is not named in the copy's root:\n%s", v)
		}
	}
}

// deadlyProbe is a server that dies at a call of the probe: from then on it answers nothing.
type deadlyProbe struct {
	vfs.FS
	first string // the operation
	dead  atomic.Bool
}

// longPatience is that of a client which waits longer than cleaning up does.
const longPatience = 2 * cleanupTime

func (f *deadlyProbe) ask(ctx context.Context, op, name string) error {
	if op == f.first && strings.HasSuffix(name, composed) {
		f.dead.Store(true)
	}
	if !f.dead.Load() {
		return nil
	}
	select {
	case <-time.After(longPatience):
		return fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, vfs.ErrNoAnswer)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, ctx.Err())
	}
}

func (f *deadlyProbe) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	if err := f.ask(ctx, "create", name); err != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.WCC{}, err
	}
	return f.FS.Create(ctx, dir, name, how)
}

func (f *deadlyProbe) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	if err := f.ask(ctx, "lookup", name); err != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.Attr{}, err
	}
	return f.FS.Lookup(ctx, dir, name)
}

func (f *deadlyProbe) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	if err := f.ask(ctx, "remove", name); err != nil {
		return vfs.WCC{}, err
	}
	return f.FS.Remove(ctx, dir, name, isDir)
}

// TestProbeSilent: the server dies while the job tries out the directory. Whichever call is
// the first without an answer, the job says that the server is lost, and does not ask it
// call after call.
func TestProbeSilent(t *testing.T) {
	for _, first := range []string{"create", "lookup", "remove"} {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
				src.file("d/f", 0o600, nil)
				o, v := options(t, src, dst, "copy")
				o.Dest.FS = &deadlyProbe{FS: dst.fs, first: first}
				began := time.Now()
				s, err := Copy(t.Context(), o)
				if code := s.ExitCode(err); !errors.Is(err, vfs.ErrNoAnswer) || code != ExitUnreachable || s.Left != 1 {
					t.Errorf("%v: exit code %d, %d temporaries are told of\n%s", err, code, s.Left, v)
				}
				if took := time.Since(began); took > longPatience+cleanupTime {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
