package export

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// yielding is a file system that lets other goroutines run between a look-up and a
// change.
type yielding struct{ *memfs.FS }

func (f *yielding) As(*vfs.Caller) vfs.FS { return f }

func (f *yielding) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	defer func() {
		for range 10 {
			runtime.Gosched()
		}
	}()
	return f.FS.Lookup(ctx, dir, name)
}

// TestWatchedNames makes files, links, renames and removes them, from several goroutines
// in one directory. Each file is watched as soon as it is known, few at a time, so that
// often there is no watch. In the end, the file of a watcher that was not told must still
// exist.
func TestWatchedNames(t *testing.T) {
	const changers, changes, names = 4, 4000, 3
	fs := &yielding{memory()}
	table := testTable(t, Key{}, Export{Path: "/", FS: fs})
	root, _, err := table.As(nil).Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type grant struct {
		h vfs.Handle
		told
		stop func()
	}
	var wg sync.WaitGroup
	var answered sync.RWMutex // held for reading until a change is
	for i := range changers {
		wg.Go(func() {
			v := table.For(remote(fmt.Sprintf("192.0.2.%d:700", i)), &vfs.Caller{})
			chance := rand.New(rand.NewPCG(uint64(i), 1))
			name := func() string { return fmt.Sprint(chance.IntN(names)) }
			ctx := t.Context()
			var held *grant
			check := func() {
				if held == nil {
					return
				}
				_, err := v.GetAttr(ctx, held.h, vfs.MaskV3)
				answered.Lock()
				defer answered.Unlock()
				if err != nil && held.take() == 0 {
					t.Errorf("a file is gone, and nobody was told: %v", err)
				}
				held.stop()
				held = nil
			}
			for range changes {
				what := chance.IntN(6)
				if what > 1 {
					answered.RLock()
				}
				switch what {
				case 0, 1:
					// What there is under a name is watched, then looked at.
					check()
					h, _, _, err := v.Lookup(ctx, root, name())
					if err != nil {
						continue
					}
					g := &grant{h: h}
					if g.stop, err = v.Watch(h, g.changed); err != nil {
						t.Error(err)
						return
					}
					if _, err := v.GetAttr(ctx, h, vfs.MaskV3); err == nil {
						held = g
					} else {
						g.stop()
					}
				case 2:
					_, _, _, _ = v.Create(ctx, root, name(), &vfs.CreateHow{Type: vfs.TypeReg})
				case 3:
					_, _ = v.Remove(ctx, root, name(), false)
				default:
					_, _, _ = v.Rename(ctx, root, name(), root, name())
				}
				if what > 1 {
					answered.RUnlock()
				}
			}
			check()
		})
	}
	wg.Wait()
	if n := table.users[fs].watches.n.Load(); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}

// TestWatchFirst sets modes one after another, and reloads, while other goroutines watch
// and then look, again and again: none of them keeps an outdated mode.
func TestWatchFirst(t *testing.T) {
	const looking, modes = 3, 300
	fs := memory()
	table := testTable(t, Key{}, Export{Path: "/", FS: fs}, Export{Path: "/looked-at", FS: fs})
	v := table.As(nil).(*View)
	_, h := put(t, v, "f")
	seen, _, err := v.Mount(t.Context(), "/looked-at")
	if err != nil {
		t.Fatal(err)
	}
	if seen, _, _, err = v.Lookup(t.Context(), seen, "f"); err != nil {
		t.Fatal(err)
	}
	set := func(mode uint32) {
		if _, err := v.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}, nil); err != nil {
			t.Error(err)
		}
		if err := table.Replace(Export{Path: "/", FS: fs}, Export{Path: "/looked-at", FS: fs, ReadOnly: mode%2 == 1}); err != nil {
			t.Error(err)
		}
	}
	set(0)
	type grant struct {
		told
		mode uint32
	}
	var believed [looking]atomic.Pointer[grant]
	var wg sync.WaitGroup
	var over atomic.Bool
	for i := range looking {
		wg.Go(func() {
			for !over.Load() {
				g := &grant{}
				stop, err := v.Watch(seen, g.changed)
				if err != nil {
					t.Error(err)
					return
				}
				a, err := v.GetAttr(t.Context(), seen, vfs.MaskV3)
				if err != nil {
					t.Error(err)
				}
				g.mode = a.Mode
				believed[i].Store(g)
				for g.was.Load() == 0 && !over.Load() {
					runtime.Gosched()
				}
				stop()
			}
		})
	}
	for mode := range uint32(modes) {
		set(mode + 1)
		// Also what is believed from here on is of now.
		for i := range believed {
			if g := believed[i].Load(); g != nil && g.mode <= mode && g.was.Load() == 0 {
				t.Errorf("mode %#o is believed in after %#o was set", g.mode, mode+1)
			}
		}
	}
	over.Store(true)
	wg.Wait()
}
