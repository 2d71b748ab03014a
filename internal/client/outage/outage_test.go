package outage_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/outage"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

func over(t *testing.T, below vfs.FS, o outage.Options) *outage.FS {
	t.Helper()
	f := outage.New(below, o)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// TestSuite runs the suite over the wrapper.
func TestSuite(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		New: func(t *testing.T) vfs.FS {
			return over(t, memfs.New(memfs.Options{}), outage.Options{Answer: time.Minute, Offline: time.Hour})
		},
		Callers: true,
	})
}

// TestSuitePowers proves the powers that the wrapper passes on.
func TestSuitePowers(t *testing.T) {
	vfstest.RunPowers(t, vfstest.PowersConfig{New: func(t *testing.T, below vfs.FS) vfs.FS {
		return over(t, below, outage.Options{Answer: time.Minute})
	}})
}

// far is a server that may fall silent: its calls then wait until their context ends, or it answers again. A change that
// waited is then made.
type far struct {
	vfs.FS
	*line
}

type line struct {
	mu    sync.Mutex
	up    chan struct{} // closed: it answers
	calls int
}

func newFar() far {
	l := &line{up: make(chan struct{})}
	close(l.up)
	return far{memfs.New(memfs.Options{Mode: 0o777}), l}
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = make(chan struct{})
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.up)
}

func (l *line) wait(ctx context.Context) error {
	l.mu.Lock()
	up := l.up
	l.calls++
	l.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f far) Unwrap() any { return f.FS }

func (f far) As(c *vfs.Caller) vfs.FS { return far{f.FS.As(c), f.line} }

func (f far) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	if err := f.wait(ctx); err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	return f.FS.Root(ctx)
}

func (f far) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	if err := f.wait(ctx); err != nil {
		return vfs.Attr{}, err
	}
	return f.FS.GetAttr(ctx, h, want)
}

func (f far) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	if err := f.wait(ctx); err != nil {
		return 0, vfs.Attr{}, err
	}
	return f.FS.Access(ctx, h, want)
}

func (f far) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, d vfs.Attr, err error) {
	if err := f.wait(ctx); err != nil {
		return h, a, d, err
	}
	return f.FS.Lookup(ctx, dir, name)
}

func (f far) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (h vfs.Handle, a vfs.Attr, w vfs.WCC, err error) {
	if err := f.wait(ctx); err != nil {
		return h, a, w, err
	}
	return f.FS.Create(ctx, dir, name, how)
}

func (f far) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (w vfs.WCC, err error) {
	if err := f.wait(ctx); err != nil {
		return w, err
	}
	return f.FS.Remove(ctx, dir, name, isDir)
}

var dirHow = &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}}

func root(t *testing.T, f vfs.FS) vfs.Handle {
	t.Helper()
	h, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestSilence: the first call waits as long as it may, the next ones not at all, and when the server is back all
// goes on.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newFar()
		var told []bool
		var mu sync.Mutex
		f := outage.New(below, outage.Options{Changed: func(silent bool) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, silent)
		}})
		defer func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}()
		dir := root(t, f)
		time.Sleep(time.Hour)
		below.cut()
		for i, want := range []time.Duration{outage.DefaultAnswer, 0, 0} {
			began := time.Now()
			_, err := f.GetAttr(t.Context(), dir, vfs.MaskV3)
			if !errors.Is(err, vfs.ErrBusy) || errors.Is(err, context.DeadlineExceeded) || time.Since(began) != want {
				t.Errorf("call %d: %v after %v", i, err, time.Since(began))
			}
		}
		if !f.Silent() {
			t.Error("nobody knows that it is silent")
		}
		time.Sleep(time.Hour)
		below.mend()
		time.Sleep(10 * time.Second)
		if _, err := f.GetAttr(t.Context(), dir, vfs.MaskV3); err != nil || f.Silent() {
			t.Errorf("when it is back: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 2 || !told[0] || told[1] {
			t.Errorf("told: %v", told)
		}
	})
}

// TestSlowIsNotSilent: a server that answers others is asked on.
func TestSlowIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newFar()
		f := outage.New(below, outage.Options{})
		dir := root(t, f)
		below.cut()
		done := make(chan error, 1)
		go func() {
			_, err := f.GetAttr(t.Context(), dir, vfs.MaskV3)
			done <- err
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		if _, err := f.Info(t.Context(), dir, vfs.InfoLimits); err != nil { // which is answered
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, vfs.ErrBusy) || f.Silent() {
			t.Errorf("%v; silent: %t", err, f.Silent())
		}
		below.mend()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestOwnEnd: a caller that gives up by itself gets its own error, and nobody is called silent.
func TestOwnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newFar()
		f := outage.New(below, outage.Options{})
		dir := root(t, f)
		below.cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.GetAttr(ctx, dir, vfs.MaskV3); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, vfs.ErrBusy) || f.Silent() {
			t.Errorf("%v; silent: %t", err, f.Silent())
		}
		if _, err := f.Remove(ctx, dir, "x", false); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, vfs.ErrUnknownOutcome) {
			t.Errorf("a change that was not begun: %v", err)
		}
		later, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.Remove(later, dir, "x", false); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, vfs.ErrUnknownOutcome) {
			t.Errorf("a change: %v", err)
		}
		below.mend()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestChangeIsTakenOver: a change whose answer did not come is made once. Its maker gets the outcome when it comes again, and only
// once; others do not.
func TestChangeIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newFar()
		f := outage.New(below, outage.Options{})
		ann, ben := f.As(&vfs.Caller{UID: 1, Client: "10.0.0.1"}), f.As(&vfs.Caller{UID: 1, Client: "10.0.0.2"})
		dir := root(t, f)
		below.cut()
		make := func(who vfs.FS) error {
			_, _, _, err := who.Create(t.Context(), dir, "lock", dirHow)
			return err
		}
		if err := make(ann); !errors.Is(err, vfs.ErrBusy) || errors.Is(err, vfs.ErrUnknownOutcome) {
			t.Errorf("without an answer: %v", err)
		}
		if err := make(ben); !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("while it is silent: %v", err)
		}
		below.mend()
		time.Sleep(10 * time.Second) // the server is asked again
		if err := make(ben); !errors.Is(err, vfs.ErrExist) {
			t.Errorf("the other client: %v", err)
		}
		if err := make(ann); err != nil {
			t.Errorf("its maker: %v", err)
		}
		if err := make(ann); !errors.Is(err, vfs.ErrExist) {
			t.Errorf("its maker, once more: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestOutcomeIsForgotten: an outcome that nobody asks for is not kept for ever.
func TestOutcomeIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newFar()
		f := outage.New(below, outage.Options{})
		dir := root(t, f)
		below.cut()
		if _, _, _, err := f.Create(t.Context(), dir, "lock", dirHow); !errors.Is(err, vfs.ErrBusy) {
			t.Error(err)
		}
		below.mend()
		time.Sleep(time.Hour)
		if _, _, _, err := f.Create(t.Context(), dir, "lock", dirHow); !errors.Is(err, vfs.ErrExist) {
			t.Errorf("an hour later: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestOffline: what was told is told on, to whom it was told, for as long as it may.
func TestOffline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newFar()
		f := outage.New(below, outage.Options{Offline: 12 * time.Hour})
		ann, ben := f.As(&vfs.Caller{UID: 1}), f.As(&vfs.Caller{UID: 2})
		dir := root(t, f)
		if _, _, _, err := f.Create(t.Context(), dir, "d", dirHow); err != nil {
			t.Fatal(err)
		}
		h, attr, _, err := ann.Lookup(t.Context(), dir, "d")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ann.Access(t.Context(), dir, vfs.AccessLookup); err != nil {
			t.Fatal(err)
		}
		rights, _, err := ann.Access(t.Context(), h, vfs.AccessRead|vfs.AccessModify)
		if err != nil {
			t.Fatal(err)
		}
		below.cut()
		same := func() {
			t.Helper()
			if got, _, _, err := ann.Lookup(t.Context(), dir, "d"); err != nil || got != h {
				t.Errorf("LOOKUP: %v, %v", got, err)
			}
			if got, err := ann.GetAttr(t.Context(), h, vfs.MaskV3); err != nil || got.FileID != attr.FileID {
				t.Errorf("GETATTR: %+v, %v", got, err)
			}
			if got, _, err := ann.Access(t.Context(), h, vfs.AccessRead); err != nil || got != rights&vfs.AccessRead {
				t.Errorf("ACCESS: %v of %v, %v", got, rights, err)
			}
			if got, _, err := f.Root(t.Context()); err != nil || got != dir {
				t.Errorf("root: %v", err)
			}
		}
		same()
		for what, err := range map[string]error{
			"another's LOOKUP":   second(ben.Lookup(t.Context(), dir, "d")),
			"another's ACCESS":   third(ben.Access(t.Context(), h, vfs.AccessRead)),
			"an unknown right":   third(ann.Access(t.Context(), h, vfs.AccessExecute)),
			"an unknown name":    second(ann.Lookup(t.Context(), dir, "other")),
			"a change":           fourth(ann.Create(t.Context(), dir, "e", dirHow)),
			"an unknown object":  last(ann.GetAttr(t.Context(), vfs.Handle{}, vfs.MaskV3)),
			"a listing of names": listed(t, ann, dir),
		} {
			if !errors.Is(err, vfs.ErrBusy) {
				t.Errorf("%s: %v", what, err)
			}
		}
		time.Sleep(11 * time.Hour)
		same()
		time.Sleep(2 * time.Hour)
		if _, err := ann.GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("13 hours later: %v", err)
		}
		below.mend()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestOfflineRightsEnd: a right that was told before the object changed is no right.
func TestOfflineRightsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newFar()
		f := outage.New(below, outage.Options{Offline: time.Hour})
		ann := f.As(&vfs.Caller{UID: 1})
		dir := root(t, f)
		if _, _, err := ann.Access(t.Context(), dir, vfs.AccessRead); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := f.SetAttr(t.Context(), dir, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o700}, nil); err != nil {
			t.Fatal(err)
		}
		below.cut()
		if got, _, err := ann.Access(t.Context(), dir, vfs.AccessRead); !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("%v, %v", got, err)
		}
		below.mend()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

func second(_ vfs.Handle, _, _ vfs.Attr, err error) error         { return err }
func third(_ vfs.Access, _ vfs.Attr, err error) error             { return err }
func fourth(_ vfs.Handle, _ vfs.Attr, _ vfs.WCC, err error) error { return err }
func last(_ vfs.Attr, err error) error                            { return err }
func listed(t *testing.T, f vfs.FS, dir vfs.Handle) (err error) {
	for _, err = range f.ReadDir(t.Context(), dir, vfs.Pos{}, 0, 0) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestUnlockGoesOn: the end of a lock is passed on to a silent server, too.
func TestUnlockGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newFar()
		f := outage.New(below, outage.Options{})
		dir := root(t, f)
		h, _, _, err := f.Create(t.Context(), dir, "f", &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o666}})
		if err != nil {
			t.Fatal(err)
		}
		l := vfs.Lock{Owner: vfs.Owner{Client: "a"}, Exclusive: true}
		if err := f.Lock(t.Context(), h, &l); err != nil {
			t.Fatal(err)
		}
		below.cut()
		if _, err := f.GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrBusy) {
			t.Fatal(err)
		}
		if err := f.Lock(t.Context(), h, &l); !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("a lock of a silent server: %v", err)
		}
		if err := f.Unlock(t.Context(), h, &l); err != nil {
			t.Errorf("unlocked: %v", err)
		}
		below.mend()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}
