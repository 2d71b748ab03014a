package walk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// roundTrip is how long a page of a listing takes, in the time of a bubble.
const roundTrip = 40 * time.Millisecond

// far is a tree at the end of a slow line, in pages of perPage entries. It counts calls.
type far struct {
	in      map[uint64][]*vfs.Entry
	perPage int
	broken  func(dir uint64, calls int) error

	mu    sync.Mutex
	calls map[uint64]int // listings of a directory
	all   int
	open  int // iterations
	most  int
}

// grow makes a tree of n directories: each has up to width of them, and files.
func grow(n, width, files int) *far {
	f := &far{in: make(map[uint64][]*vfs.Entry), calls: make(map[uint64]int), perPage: 100}
	next := uint64(2)
	for dir := uint64(1); dir <= uint64(n); dir++ {
		for i := range uint64(files) {
			f.add(dir, fmt.Sprint("f", i), 1_000_000+dir*1000+i, vfs.TypeReg)
		}
		for i := 0; i < width && next <= uint64(n); i++ {
			f.add(dir, fmt.Sprint("d", next), next, vfs.TypeDir)
			next++
		}
	}
	return f
}

func (f *far) add(dir uint64, name string, n uint64, t vfs.Type) {
	f.in[dir] = append(f.in[dir], entry(name, n, t, uint64(len(f.in[dir]))+1))
}

func (f *far) list(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		f.mu.Lock()
		f.calls[dir]++
		f.all++
		calls := f.calls[dir]
		f.open++
		f.most = max(f.most, f.open)
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			f.open--
			f.mu.Unlock()
		}()
		time.Sleep(roundTrip)
		if f.broken != nil {
			if err := f.broken(dir, calls); err != nil {
				yield(nil, err)
				return
			}
		}
		for i, e := range f.in[dir][from.Cookie:] {
			if i > 0 && i%f.perPage == 0 {
				time.Sleep(roundTrip)
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (f *far) fs() *hooked { return invented(f.list) }

// local is a file system that keeps memory for each directory (vfs.Forgetter).
type local struct{ vfs.FS }

func (local) Forget(vfs.Handle) {}

// TestAheadRoundTrips: 401 directories, visited by one worker one after the other, take the
// round trips of a few.
func TestAheadRoundTrips(t *testing.T) {
	for _, tt := range []struct {
		name  string
		width int
		trips int
	}{{"all in one", 400, 24}, {"twenty times twenty", 20, 34}, {"four in each", 4, 60}, {"two in each", 2, 90}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := grow(401, tt.width, 3)
				l := newLog(t)
				begin := time.Now()
				var first time.Duration
				l.onEntry = func(*Dir, *vfs.Entry) error {
					if first == 0 {
						first = time.Since(begin)
					}
					return nil
				}
				if err := l.walk(f.fs(), Options{Parallel: 1}); err != nil {
					t.Fatal(err)
				}
				took := int(time.Since(begin) / roundTrip)
				if t.Logf("%d round trips, %d listings", took, f.all); took > tt.trips {
					t.Errorf("%d round trips, want at most %d", took, tt.trips)
				}
				if first != roundTrip {
					t.Errorf("the first entry came after %v", first)
				}
				if len(l.entries) != 3*401 || f.all > 401+2*401/queuedPerDir || f.most > aheadListings+1 || f.open != 0 {
					t.Errorf("%d entries by %d listings, %d at once, %d still open", len(l.entries), f.all, f.most, f.open)
				}
			})
		})
	}
}

// journal is a Visitor that records every call in order.
type journal struct {
	lines []string
	skip  func(*Dir) bool
}

func (j *journal) Enter(_ context.Context, d *Dir) error {
	if j.lines = append(j.lines, "enter "+d.Path("")); j.skip != nil && j.skip(d) {
		return ErrSkipDir
	}
	return nil
}

func (j *journal) Entry(_ context.Context, d *Dir, e *vfs.Entry) error {
	j.lines = append(j.lines, fmt.Sprint("entry ", d.Path(string(e.Name)), e.FileID))
	return nil
}

func (j *journal) Fault(_ context.Context, d *Dir, name string, err error) error {
	j.lines = append(j.lines, fmt.Sprint("fault ", d.Path(name), err))
	return nil
}

func (j *journal) Leave(_ context.Context, d *Dir, incomplete error) error {
	j.lines = append(j.lines, fmt.Sprint("leave ", d.Path(""), incomplete))
	return nil
}

// TestAheadOrder: the calls for a random tree, and their order, are the same with and without
// listings ahead. The tree has directories larger than what is read ahead, some that cannot
// be listed, names that are refused, and loops.
func TestAheadOrder(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			f := grow(1, 0, 0)
			for n := uint64(2); n < 3000; n++ {
				dir, typ, name := 1+r.Uint64N(min(n-1, 60)), vfs.TypeReg, fmt.Sprint(n)
				switch r.IntN(200) {
				case 0, 1, 2:
					name = "../" + name
				case 3:
					f.add(dir, "up"+name, 1+r.Uint64N(60), vfs.TypeDir)
				}
				if n < 61 || r.IntN(4) == 0 {
					typ = vfs.TypeDir
				}
				f.add(dir, name, n, typ)
			}
			f.broken = func(dir uint64, _ int) error {
				if dir%17 == 5 {
					return vfs.ErrAccess
				}
				return nil
			}
			skip := func(d *Dir) bool { return number(d.Handle)%13 == 7 }
			told := func(fs vfs.FS) []string {
				j := &journal{skip: skip}
				if err := Tree(t.Context(), fs, handle(1), Options{Parallel: 1, MaxDepth: 7}, j); err != nil {
					t.Fatal(err)
				}
				return j.lines
			}
			want := told(local{f.fs()})
			f.most = 0
			got := told(f.fs())
			if f.most < aheadListings/2 || f.most > aheadListings+1 {
				t.Errorf("%d listings at once", f.most)
			}
			if !slices.Equal(got, want) {
				i := 0
				for i < min(len(got), len(want)) && got[i] == want[i] {
					i++
				}
				t.Errorf("of %d and %d lines, the %dth differ: %q", len(got), len(want), i, slices.Concat(got[i:min(i+2, len(got))], want[i:min(i+2, len(want))]))
			}
		})
	}
}

// TestAheadBounds: a visitor holds one entry for an hour. What is read ahead meanwhile is
// bounded, and the walk ends afterwards.
func TestAheadBounds(t *testing.T) {
	for name, f := range map[string]*far{
		"a million directories":  nil,
		"large directories":      grow(150, 20, 400),
		"small directories":      grow(1500, 60, 30),
		"empty directories":      grow(5000, 100, 0),
		"directories in a chain": grow(1000, 1, 1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fs *hooked
				all := 0
				if f != nil {
					fs, all = f.fs(), len(f.in)
				} else {
					fs = million()
				}
				var once sync.Once
				seen := 0
				l := counting{enter: func(d *Dir) error {
					if seen++; f == nil && seen == 20_000 { // of a million, time for no more
						return io.EOF
					}
					if d.depth == 0 {
						return nil
					}
					once.Do(func() { time.Sleep(time.Hour) })
					w := d.w
					w.mu.Lock()
					defer w.mu.Unlock()
					a := w.ahead
					if a.dirs > aheadDirs || a.running > aheadListings+1 || a.entries.Load() > aheadEntries+aheadListings+aheadPerDir ||
						a.order.Len() > aheadEntries+aheadDirs+len(w.stack) {
						t.Fatalf("%d directories, %d under way, %d entries, %d planned", a.dirs, a.running, a.entries.Load(), a.order.Len())
					}
					return nil
				}}
				err := Tree(t.Context(), fs, handle(1), Options{Parallel: 1}, l)
				if f == nil && !errors.Is(err, io.EOF) || f != nil && err != nil {
					t.Fatal(err)
				}
				if f != nil && (f.open != 0 || seen < all) {
					t.Errorf("%d of %d directories, %d listings still open", seen, all, f.open)
				}
			})
		})
	}
}

// million is a tree of a million directories, a hundred in each.
func million() *hooked {
	return invented(func(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			for i := from.Cookie; i < 100 && dir < 1_000_000; i++ {
				if !yield(entry(fmt.Sprint(i), dir*100+1+i, vfs.TypeDir, i+1), nil) {
					return
				}
			}
		}
	})
}

// counting is a Visitor that counts directories.
type counting struct{ enter func(d *Dir) error }

func (c counting) Enter(_ context.Context, d *Dir) error                    { return c.enter(d) }
func (counting) Entry(context.Context, *Dir, *vfs.Entry) error              { return nil }
func (counting) Fault(_ context.Context, _ *Dir, _ string, err error) error { return err }
func (counting) Leave(context.Context, *Dir, error) error                   { return nil }

// TestAheadFailed: a directory that could not be listed ahead is listed again at its turn.
func TestAheadFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := grow(50, 49, 1)
		f.broken = func(dir uint64, calls int) error {
			if dir != 1 && calls == 1 {
				return vfs.ErrNoAnswer
			}
			return nil
		}
		l := newLog(t)
		if err := l.walk(f.fs(), Options{Parallel: 1}); err != nil {
			t.Fatal(err)
		}
		if len(l.entries) < 49 || len(l.faults) > 1 {
			t.Errorf("%d entries, faults %v", len(l.entries), l.faults)
		}
	})
}

// TestAheadGivenUp: a walk that ends early, or skips directories, leaves no listing open.
func TestAheadGivenUp(t *testing.T) {
	for _, parallel := range []int{1, 4} {
		for stop := range 5 {
			synctest.Test(t, func(t *testing.T) {
				f := grow(60, 7, 300)
				n := 0
				l := newLog(t)
				l.onEnter = func(d *Dir) error {
					switch n++; {
					case n > 10*stop:
						return io.EOF
					case d.Parent != nil && n%3 == 0:
						return ErrSkipDir
					}
					return nil
				}
				if err := l.walk(f.fs(), Options{Parallel: parallel}); err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				if f.open != 0 {
					t.Errorf("%d listings are open", f.open)
				}
			})
		}
	}
}
