package attrcache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/attrcache"
	"github.com/nfsbox/nfsbox/vfs"
)

// late is a file system whose answers to questions come late, if hold says so.
type late struct {
	vfs.FS
	hold func()
}

func (l *late) As(c *vfs.Caller) vfs.FS { return &late{l.FS.As(c), l.hold} }
func (l *late) Unwrap() any             { return l.FS }

func (l *late) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	defer l.hold()
	return l.FS.GetAttr(ctx, h, want)
}

func (l *late) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, d vfs.Attr, err error) {
	defer l.hold()
	return l.FS.Lookup(ctx, dir, name)
}

func (l *late) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	defer l.hold()
	return l.FS.Access(ctx, h, want)
}

// TestLateAnswers: an answer that was given before a change, and comes after it, is not kept; nor is one that comes after a
// later one.
func TestLateAnswers(t *testing.T) {
	root := func(r *rig) vfs.Handle { return r.root }
	for name, c := range map[string]struct {
		ask    func(r *rig, fs vfs.FS, h vfs.Handle) error
		change func(r *rig, fs vfs.FS, h vfs.Handle) error
	}{
		"GetAttr and SetAttr": {
			func(r *rig, fs vfs.FS, h vfs.Handle) error {
				_, err := fs.GetAttr(r.t.Context(), h, vfs.MaskV3)
				return err
			},
			func(r *rig, fs vfs.FS, h vfs.Handle) error { r.chmod(fs, h, 0o600); return nil },
		},
		"GetAttr and Write": {
			func(r *rig, fs vfs.FS, h vfs.Handle) error {
				_, err := fs.GetAttr(r.t.Context(), h, vfs.MaskV3)
				return err
			},
			func(r *rig, _ vfs.FS, h vfs.Handle) error {
				var w vfs.Written
				_, err := r.open(h).WriteAt(r.t.Context(), []byte("data"), 0, vfs.Unstable, &w)
				return err
			},
		},
		"Lookup and Remove": {
			func(r *rig, fs vfs.FS, _ vfs.Handle) error {
				_, _, _, err := fs.Lookup(r.t.Context(), root(r), "f")
				return err
			},
			func(r *rig, fs vfs.FS, _ vfs.Handle) error {
				return second(fs.Remove(r.t.Context(), root(r), "f", false))
			},
		},
		"Lookup and Rename": {
			func(r *rig, fs vfs.FS, _ vfs.Handle) error {
				_, _, _, err := fs.Lookup(r.t.Context(), root(r), "f")
				return err
			},
			func(r *rig, fs vfs.FS, _ vfs.Handle) error {
				_, _, err := fs.Rename(r.t.Context(), root(r), "f", root(r), "g")
				return err
			},
		},
		"no name and Create": {
			func(r *rig, fs vfs.FS, _ vfs.Handle) error {
				_, _, _, err := fs.Lookup(r.t.Context(), root(r), "new")
				if errors.Is(err, vfs.ErrNoEnt) {
					return nil
				}
				return err
			},
			func(r *rig, fs vfs.FS, _ vfs.Handle) error { r.put(fs, root(r), "new", vfs.TypeReg); return nil },
		},
		"Access and SetAttr": {
			func(r *rig, fs vfs.FS, h vfs.Handle) error {
				_, _, err := fs.As(&vfs.Caller{UID: 7}).Access(r.t.Context(), h, vfs.AccessRead)
				return err
			},
			func(r *rig, fs vfs.FS, h vfs.Handle) error { r.chmod(fs, h, 0o600); return nil },
		},
		"another's Lookup and Remove of a known name": {
			func(r *rig, fs vfs.FS, _ vfs.Handle) error {
				_, _, _, err := fs.As(&vfs.Caller{UID: 7}).Lookup(r.t.Context(), root(r), "f")
				return err
			},
			func(r *rig, fs vfs.FS, _ vfs.Handle) error {
				return second(fs.Remove(r.t.Context(), root(r), "f", false))
			},
		},
		"Access and a change that does not say to what": {
			func(r *rig, fs vfs.FS, h vfs.Handle) error {
				_, _, err := fs.As(&vfs.Caller{UID: 7}).Access(r.t.Context(), h, vfs.AccessRead)
				return err
			},
			func(r *rig, fs vfs.FS, h vfs.Handle) error { return tag(r, fs, h) },
		},
		"Access and such a change that is forgotten": {
			func(r *rig, fs vfs.FS, h vfs.Handle) error {
				_, _, err := fs.As(&vfs.Caller{UID: 7}).Access(r.t.Context(), h, vfs.AccessRead)
				return err
			},
			func(r *rig, fs vfs.FS, h vfs.Handle) error {
				defer func() {
					for i := range 8 {
						r.put(fs, root(r), fmt.Sprint("other", i), vfs.TypeReg)
					}
				}()
				return tag(r, fs, h)
			},
		},
		"Access and another's SetAttr that is seen": {
			func(r *rig, fs vfs.FS, h vfs.Handle) error {
				_, _, err := fs.As(&vfs.Caller{UID: 7}).Access(r.t.Context(), h, vfs.AccessRead)
				return err
			},
			func(r *rig, _ vfs.FS, h vfs.Handle) error {
				r.chmod(r.server, h, 0o600)
				for _, err := range r.fs.ReadDir(r.t.Context(), r.root, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
					r.ok(err)
				}
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, attrcache.Options{Times: long})
				h := r.put(r.server, r.root, "f", vfs.TypeReg)
				var gate chan struct{}
				below := &late{FS: doubtful{r.server}}
				below.hold = func() {
					if gate != nil {
						<-gate
					}
				}
				r.fs = attrcache.New(below, attrcache.Options{Times: long, Objects: 6})
				r.mode(r.root)
				r.find(r.fs, r.root, "f")
				if !strings.Contains(name, "another") {
					r.fs = attrcache.New(below, attrcache.Options{Times: long, Objects: 6}) // which knows nothing yet
				}
				gate = make(chan struct{})
				asked := make(chan error, 1)
				go func() { asked <- c.ask(r, r.fs, h) }()
				synctest.Wait() // the server has answered
				r.ok(c.change(r, r.fs, h))
				close(gate)
				r.ok(<-asked)
				gate = nil
				differences(r, []vfs.Handle{h, r.root}, []string{"f", "g", "new"})
			})
		})
	}
}

// tag sets an extended attribute, which moves an object's ctime.
func tag(r *rig, fs vfs.FS, h vfs.Handle) error {
	x, ok := vfs.As[vfs.Xattrer](fs)
	if !ok {
		r.t.Fatal("there are no extended attributes")
	}
	return x.SetXattr(r.t.Context(), h, "user.a", []byte("value"), vfs.XattrEither)
}

// slowChange is a file system whose answers to SetAttr come late.
type slowChange struct {
	vfs.FS
	gate chan struct{}
}

func (s *slowChange) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	defer func() { <-s.gate }()
	return s.FS.SetAttr(ctx, h, set, guard)
}

// TestDuringAChange: while a call changes an object nothing is believed of it, nor kept.
func TestDuringAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{})
		h := r.put(r.server, r.root, "f", vfs.TypeReg)
		below := &slowChange{r.server, make(chan struct{})}
		r.fs = attrcache.New(below, attrcache.Options{Times: long})
		r.mode(h)
		done := make(chan error, 1)
		go func() {
			_, err := r.fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil)
			done <- err
		}()
		synctest.Wait() // the server has made the change
		for range 2 {
			r.want("during a change", r.asks(func() {
				if got := r.mode(h); got != 0o600 {
					t.Errorf("mode %o, though the server says another", got)
				}
			}, "getattr"), 1)
		}
		close(below.gate)
		r.ok(<-done)
		r.want("after it", r.asks(func() { r.mode(h) }, "getattr"), 0)
	})
}

// differences compares all that the client says, to several callers, with what the server says.
func differences(r *rig, handles []vfs.Handle, names []string) {
	r.t.Helper()
	ctx := context.Background()
	for _, caller := range []*vfs.Caller{nil, {UID: 7}, {UID: 8, GID: 9}} {
		kept, server := r.fs.As(caller), r.server.As(caller)
		for _, h := range handles {
			a, err := kept.GetAttr(ctx, h, vfs.MaskV3)
			b, want := server.GetAttr(ctx, h, vfs.MaskV3)
			a.Atime = b.Atime // which is no change
			a.Valid, b.Valid = a.Valid&vfs.MaskV3, b.Valid&vfs.MaskV3
			a.Btime = b.Btime
			if statusOf(err) != statusOf(want) || err == nil && a != b {
				r.t.Fatalf("attributes of %v: %+v, %v; want %+v, %v", h, a, err, b, want)
			}
			got, _, err := kept.Access(ctx, h, 0x3f)
			may, _, want := server.Access(ctx, h, 0x3f)
			if statusOf(err) != statusOf(want) || got != may {
				r.t.Fatalf("rights on %v of %+v: %v, %v; want %v, %v", h, caller, got, err, may, want)
			}
			if err == nil && a.Type == vfs.TypeDir {
				for _, name := range names {
					got, _, _, err := kept.Lookup(ctx, h, name)
					is, _, _, want := server.Lookup(ctx, h, name)
					if statusOf(err) != statusOf(want) || got != is {
						r.t.Fatalf("%s in %v, for %+v: %v, %v; want %v, %v", name, h, caller, got, err, is, want)
					}
				}
			}
		}
	}
}

func statusOf(err error) vfs.Status {
	s, _ := vfs.StatusOf(err)
	return s
}

// TestFailures: what a change that failed was about is asked for anew. It may have taken effect.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: long})
		h := r.put(r.server, r.root, "f", vfs.TypeReg)
		for name, call := range map[string]func() error{
			"setattr": func() error {
				_, err := r.fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}, nil)
				return err
			},
			"remove": func() error { return second(r.fs.Remove(t.Context(), r.root, "f", false)) },
			"create": func() error {
				_, _, _, err := r.fs.Create(t.Context(), r.root, "g", &vfs.CreateHow{Type: vfs.TypeReg})
				return err
			},
		} {
			r.mode(h)
			r.mode(r.root)
			r.find(r.fs, r.root, "f")
			r.find(r.fs, r.root, "g")
			r.failing(func(op string) error {
				if op == name {
					return errors.Join(vfs.ErrIO, vfs.ErrUnknownOutcome)
				}
				return nil
			})
			if err := call(); !errors.Is(err, vfs.ErrUnknownOutcome) {
				t.Fatal(name, err)
			}
			r.failing(nil)
			if r.asks(func() { r.mode(h); r.mode(r.root); r.find(r.fs, r.root, "f"); r.find(r.fs, r.root, "g") }, "getattr", "lookup") == 0 {
				t.Errorf("%s: nothing is asked for anew", name)
			}
		}
	})
}

// TestStale: a handle that the server calls stale is looked up anew.
func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: seconds(0, 0, 600, 600)})
		h := r.put(r.server, r.root, "f", vfs.TypeReg)
		r.find(r.fs, r.root, "f")
		r.ok(second(r.server.Remove(t.Context(), r.root, "f", false)))
		other := r.put(r.server, r.root, "f", vfs.TypeReg)
		if got, _ := r.find(r.fs, r.root, "f"); got != h {
			t.Fatal("the name is not kept")
		}
		if _, err := r.fs.GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
			t.Fatal(err)
		}
		if got, _ := r.find(r.fs, r.root, "f"); got != other {
			t.Error("the name leads to a stale handle")
		}
	})
}
