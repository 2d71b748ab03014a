package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	loadWorkers = 64
	loadOps     = 60 // of each worker
	loadFile    = 24 << 10
)

// TestFaultsUnderLoad has 64 callers do a bit of everything over one client,
// while the connection is cut every 777 calls and replies are delayed, doubled
// and put into another order. Every worker knows what its directory must hold,
// and every byte says where it belongs.
func TestFaultsUnderLoad(t *testing.T) {
	need.Time(t, "many clients over a network at fault")
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel() // localfs waits for the disk
			for _, seed := range seeds(t, 1) {
				load(t, b.make(t), seed)
			}
		})
	}
}

func load(t *testing.T, at vfs.FS, seed uint64) {
	f := overTCP(t, at, seed, "timeo=100&retrans=5")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	shared, err := mkfile(ctx, f.fs, f.root, "shared", pattern(1, 1, 0, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	workers := make([]*worker, loadWorkers)
	for i := range workers {
		w := &worker{f: f, id: uint64(i + 2), rand: rand.New(rand.NewPCG(seed, uint64(i))), shared: shared, files: make(map[string]uint64), unsure: make(map[string]bool)}
		if w.dir, _, _, err = f.fs.Create(ctx, f.root, fmt.Sprintf("dir%d", i), &vfs.CreateHow{Type: vfs.TypeDir}); err != nil {
			t.Fatal(err)
		}
		workers[i] = w
	}
	f.p.SetRules(
		rpcfault.Rule{Every: 777, Fault: rpcfault.Fault{Kind: rpcfault.CutBefore}},
		rpcfault.Rule{Skip: 300, Every: 1177, Fault: rpcfault.Fault{Kind: rpcfault.CutInReply, At: rpcfault.Anywhere, Reset: true}},
		rpcfault.Rule{Probability: 0.05, Fault: rpcfault.Fault{Kind: rpcfault.DelayReply, Wait: time.Millisecond, Jitter: 10 * time.Millisecond}},
		rpcfault.Rule{Probability: 0.05, Fault: rpcfault.Fault{Kind: rpcfault.DuplicateReply}},
		rpcfault.Rule{Probability: 0.05, Fault: rpcfault.Fault{Kind: rpcfault.Reorder, Count: 5}},
		rpcfault.Rule{Probability: 0.05, Fault: rpcfault.Fault{Kind: rpcfault.Fragment, Count: 1001}},
		rpcfault.Rule{Procs: []*xdr.Proc{nfs3.NFSPROC3_READ}, Probability: 0.002, Fault: rpcfault.Fault{Kind: rpcfault.CutInReply, At: rpcfault.Anywhere}},
	)
	var fails failures
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			for range loadOps {
				if err := w.step(ctx); err != nil {
					fails.add("seed %d, worker %d: %v", seed, w.id, err)
					return
				}
			}
		})
	}
	wg.Wait()
	f.p.SetRules()
	f.s.end() // which waits for what lost connections have left in it
	f.s.begin()
	for _, w := range workers {
		if err := w.settle(ctx); err != nil {
			fails.add("seed %d, worker %d, in the end: %v", seed, w.id, err)
		}
	}
	fails.report(t)
	s := f.p.Stats()
	if s.Injected[rpcfault.CutBefore] < 5 || s.Injected[rpcfault.Reorder] < 100 {
		t.Errorf("hardly any faults: %v", f.p)
	}
	unknown := 0
	for _, w := range workers {
		unknown += len(w.unsure)
	}
	c := f.c.Stats()
	t.Logf("%v; %d names in doubt; %d RPCs, %d sent again, %d reconnects", f.p, unknown, c.RPCs, c.Retransmits, c.Reconnects)
}

// mkfile makes a file that was not there.
func mkfile(ctx context.Context, f vfs.FS, dir vfs.Handle, name string, data []byte) (vfs.Handle, error) {
	h, _, _, err := f.Create(ctx, dir, name, &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}})
	if err != nil {
		return h, err
	}
	return h, write(ctx, f, dir, name, data)
}

// worker works in a directory of its own, and knows what must be in it.
type worker struct {
	f      *faulty
	id     uint64
	rand   *rand.Rand
	shared vfs.Handle
	dir    vfs.Handle
	files  map[string]uint64 // versions of their contents; 0: empty
	next   uint64
	// A change whose outcome is unknown may also still be under way: its names
	// are left alone from then on. Of a rename there is one in the end.
	unsure  map[string]bool
	renamed [][2]string
}

// pick is one of the worker's files, or "".
func (w *worker) pick() string {
	if len(w.files) == 0 {
		return ""
	}
	return slices.Sorted(maps.Keys(w.files))[w.rand.IntN(len(w.files))]
}

func (w *worker) fresh() string {
	w.next++
	return fmt.Sprintf("%s%d", strings.Repeat("n", 1+w.rand.IntN(40)), w.next)
}

// step does one thing at random.
func (w *worker) step(ctx context.Context) error {
	name := w.pick()
	op := w.rand.IntN(9)
	if name == "" {
		op = 0
	}
	switch op {
	case 0:
		return w.create(ctx, w.fresh())
	case 1, 2:
		return w.write(ctx, name)
	case 3:
		return w.check(ctx, name)
	case 4:
		return w.readShared(ctx)
	case 5:
		return w.lookup(ctx, name)
	case 6:
		if len(w.files) < 4 {
			return w.create(ctx, w.fresh())
		}
		return w.remove(ctx, name)
	case 7:
		return w.rename(ctx, name, w.fresh())
	default:
		return w.list(ctx)
	}
}

// doubt reports whether err leaves open what has become of the names, and takes
// them out of the game.
func (w *worker) doubt(err error, names ...string) bool {
	if !errors.Is(err, vfs.ErrUnknownOutcome) {
		return false
	}
	for _, name := range names {
		w.unsure[name] = true
		delete(w.files, name)
	}
	return true
}

func (w *worker) create(ctx context.Context, name string) error {
	_, _, _, err := w.f.fs.Create(ctx, w.dir, name, &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}})
	switch {
	case err == nil:
		w.files[name] = 0
	case !w.doubt(err, name):
		return fmt.Errorf("create %s: %w", name, err)
	}
	return nil
}

func (w *worker) content(name string) []byte {
	if v := w.files[name]; v > 0 {
		return pattern(w.id, v, 0, loadFile)
	}
	return nil
}

func (w *worker) write(ctx context.Context, name string) error {
	w.next++
	if err := write(ctx, w.f.fs, w.dir, name, pattern(w.id, w.next, 0, loadFile)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	w.files[name] = w.next
	return nil
}

func (w *worker) check(ctx context.Context, name string) error {
	h, _, _, err := w.f.fs.Lookup(ctx, w.dir, name)
	if err != nil {
		return fmt.Errorf("look up %s: %w", name, err)
	}
	want := w.content(name)
	a, err := w.f.fs.GetAttr(ctx, h, vfs.MaskV3)
	if err != nil || a.Size != uint64(len(want)) || a.Type != vfs.TypeReg {
		return wrong(err, "attributes of %s: size %d and not %d, %v", name, a.Size, len(want), a.Type)
	}
	got, err := read(ctx, w.f.fs, h, 0, len(want))
	if err != nil || !bytes.Equal(got, want) {
		return wrong(err, "content of %s is not version %d", name, w.files[name])
	}
	return nil
}

func (w *worker) readShared(ctx context.Context) error {
	off, n := w.rand.IntN(900<<10), 1+w.rand.IntN(100<<10)
	got, err := read(ctx, w.f.fs, w.shared, off, n)
	if err != nil || !bytes.Equal(got, pattern(1, 1, off, n)) {
		return wrong(err, "%d shared bytes at %d", n, off)
	}
	return nil
}

func (w *worker) lookup(ctx context.Context, name string) error {
	if _, a, _, err := w.f.fs.Lookup(ctx, w.dir, name); err != nil || (a.Valid != 0 && a.Type != vfs.TypeReg) {
		return wrong(err, "look up %s: %v", name, a.Type)
	}
	if _, _, _, err := w.f.fs.Lookup(ctx, w.dir, "none"); !errors.Is(err, vfs.ErrNoEnt) {
		return wrong(err, "look up what is not there")
	}
	return nil
}

func (w *worker) remove(ctx context.Context, name string) error {
	_, err := w.f.fs.Remove(ctx, w.dir, name, false)
	switch {
	case err == nil:
		delete(w.files, name)
	case !w.doubt(err, name):
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

func (w *worker) rename(ctx context.Context, from, to string) error {
	_, _, err := w.f.fs.Rename(ctx, w.dir, from, w.dir, to)
	switch {
	case err == nil:
		w.files[to] = w.files[from]
		delete(w.files, from)
	case w.doubt(err, from, to):
		w.renamed = append(w.renamed, [2]string{from, to})
	default:
		return fmt.Errorf("rename %s: %w", from, err)
	}
	return nil
}

func (w *worker) list(ctx context.Context) error {
	got, err := names(ctx, w.f.fs, w.dir)
	got = slices.DeleteFunc(got, func(name string) bool { return w.unsure[name] })
	if want := slices.Sorted(maps.Keys(w.files)); err != nil || !slices.Equal(got, want) {
		return wrong(err, "the listing is %v and not %v", got, want)
	}
	return nil
}

// settle checks everything, when all is quiet.
func (w *worker) settle(ctx context.Context) error {
	if err := w.list(ctx); err != nil {
		return err
	}
	for name := range w.files {
		if err := w.check(ctx, name); err != nil {
			return err
		}
	}
	all, err := names(ctx, w.f.fs, w.dir)
	if err != nil {
		return err
	}
	for _, r := range w.renamed {
		if slices.Contains(all, r[0]) == slices.Contains(all, r[1]) {
			return fmt.Errorf("of %v there must be one: %v", r, all)
		}
	}
	return nil
}
