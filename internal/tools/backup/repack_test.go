package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
	"github.com/nfsbox/nfsbox/internal/tools/upkeep"
	"github.com/nfsbox/nfsbox/vfs"
)

// small is the content of a file that lies in a pack, and is not packed by zstd.
func small(seed uint64) string {
	b := make([]byte, 5000)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b) //nolint:errcheck // it does not fail
	return string(b) + fmt.Sprint(seed)
}

// filesOf are the files of a tree of directories, and what is in them.
func filesOf(t *testing.T, fs vfs.FS) map[string]string {
	t.Helper()
	root, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for d, err := range fs.ReadDir(t.Context(), root, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range fs.ReadDir(t.Context(), d.Handle, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err != nil {
				t.Fatal(err)
			}
			f, _, err := fs.Open(t.Context(), vfs.At{H: e.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, e.Attr.Size)
			if _, _, err := vfs.ReadFull(t.Context(), f, b, 0); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			all[string(d.Name)+"/"+string(e.Name)] = string(b)
		}
	}
	return all
}

// prune removes what the snapshots do not need, whatever its age.
func (b *bed) prune() upkeep.PruneSummary {
	b.t.Helper()
	sum, err := upkeep.Prune(b.t.Context(), b.store, upkeep.PruneOptions{
		Grace: -1, Lease: lease.Options{Now: time.Now, Rand: rand.NewChaCha8([32]byte{}), Host: "h", Command: "prune"},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return sum
}

// waste says how much of the packs of a snapshot it does not use, and how much it uses.
func waste(s *snapshot.Snapshot) (dead, live int64) {
	for _, u := range s.PackUses() {
		dead, live = dead+u.Len-u.Used, live+u.Used
	}
	return dead, live
}

// churn is a tree whose files come, go and change by chance.
type churn struct {
	*bed
	chance *rand.Rand
	dirs   []vfs.Handle
	files  map[string]vfs.Handle
	made   uint64
}

func newChurn(t *testing.T, seed uint64) *churn {
	c := &churn{bed: newBed(t), chance: rand.New(rand.NewPCG(seed, 1)), files: make(map[string]vfs.Handle)}
	for i := range 3 {
		c.dirs = append(c.dirs, c.create(c.root, fmt.Sprint("d", i), vfs.CreateHow{Type: vfs.TypeDir}))
	}
	c.grow(60)
	return c
}

func (c *churn) grow(n int) {
	for range n {
		c.made++
		d := c.chance.IntN(len(c.dirs))
		name := fmt.Sprint("f", c.made)
		c.files[fmt.Sprint("d", d, "/", name)] = c.file(c.dirs[d], name, small(c.made))
	}
}

// change has a part of the files removed, or written anew.
func (c *churn) change(part float64) {
	names := make([]string, 0, len(c.files))
	for name := range c.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch x := c.chance.Float64(); {
		case x < part/2:
			d, base, _ := strings.Cut(name, "/")
			if _, err := c.fs.Remove(c.t.Context(), c.dirs[d[1]-'0'], base, false); err != nil {
				c.t.Fatal(err)
			}
			delete(c.files, name)
		case x < part:
			c.made++
			c.write(c.files[name], 0, small(c.made))
		}
	}
}

// TestRepack takes snapshots of a tree of which a part changes each time. Each has to stay what the tree was when it was taken. What
// packs waste stays bounded once older snapshots are forgotten, and what was not read for it was not read.
func TestRepack(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := newChurn(t, seed)
	type state struct {
		s    *snapshot.Snapshot
		want map[string]string
	}
	var states []state
	repacked := uint64(0)
	for range 6 {
		sum, s := c.backup()
		states = append(states, state{s, filesOf(t, c.fs)})
		repacked += sum.Repacked
		if n := sum.Why["damaged"]; n != 0 || !sum.Complete || sum.Read+sum.Repacked > sum.Files {
			t.Errorf("%+v", sum)
		}
		c.change(0.4)
		c.grow(10)
	}
	for i, st := range states {
		if got := filesOf(t, st.s.FS()); !maps.Equal(got, st.want) {
			t.Errorf("snapshot %d is not what the tree was", i)
		}
	}
	if repacked == 0 {
		t.Error("nothing was packed anew")
	}
	c.backup()
	c.calls["read"].Store(0)
	sum, s := c.backup() // nothing has changed: what the one before left half empty is packed anew
	if n := c.calls["read"].Load(); n != 0 || sum.Read != 0 {
		t.Errorf("%d reads: %+v", n, sum)
	}
	if n := c.damagedBut(&sum); n != 0 {
		t.Errorf("%d objects are damaged", n)
	}
	c.wantSame(s)
	c.prune()
	packs := int64(0)
	for _, key := range c.keys("sha256/") {
		if n := int64(len(c.get(key))); n > 15_000 { // parts are shorter
			packs += n
		}
	}
	dead, live := waste(s)
	if dead > live || packs != dead+live {
		t.Errorf("%d bytes of packs: %d are used, and %d are not", packs, live, dead)
	}
	if n := c.damagedBut(&sum); n != 0 {
		t.Errorf("%d objects are damaged after a prune", n)
	}
	c.wantSame(s)
}

// TestRepackDamaged damages a pack that is mostly waste. Files whose range is whole are copied, the others are read.
func TestRepackDamaged(t *testing.T) {
	b := newBed(t)
	for i := range uint64(10) {
		b.file(b.root, fmt.Sprint("f", i), small(i))
	}
	b.backup()
	for i := range 8 {
		b.remove(fmt.Sprint("f", i))
	}
	_, s := b.backup()
	if dead, live := waste(s); dead != 4*live {
		t.Errorf("%d are used, and %d are not", live, dead)
	}
	for _, key := range b.keys("sha256/") {
		if whole := b.get(key); len(whole) > 25_000 {
			at := int64(strings.Index(string(whole), small(9)))
			b.store.(*object.Memory).Corrupt(key, at+5)
		}
	}
	b.calls["read"].Store(0)
	sum, s := b.backup()
	b.wantSame(s)
	if sum.Repacked != 1 || sum.RepackedBytes != 5_001 || sum.Read != 1 || sum.Why["damaged"] != 1 {
		t.Errorf("%+v", sum)
	}
	if n := b.damagedBut(&sum); n != 0 {
		t.Errorf("%d objects are damaged", n)
	}
}

// TestRepackLinks wants an object with several names to be copied once, and its range to count once.
func TestRepackLinks(t *testing.T) {
	b := newBed(t)
	for i := range uint64(10) {
		h := b.file(b.root, fmt.Sprint("f", i), small(i))
		b.link(h, fmt.Sprint("g", i))
	}
	b.backup()
	for i := range 7 { // of what is left each name would count, and then it is more than half
		b.remove(fmt.Sprint("f", i))
		b.remove(fmt.Sprint("g", i))
	}
	b.backup()
	o := b.options()
	o.Store, o.DryRun = nil, true
	sum, err := Run(t.Context(), o)
	if err != nil || sum.Repacked != 6 || sum.Read != 0 {
		t.Errorf("a dry run: %+v, %v", sum, err)
	}
	o = b.options()
	o.Verify = true
	sum, s := b.run(o)
	b.wantSame(s)
	if uses := s.PackUses(); len(uses) != 1 || uses[0].Len != 3*5_001 || uses[0].Used != uses[0].Len || sum.Repacked != 3 || sum.Read != 0 || sum.Files != 6 {
		t.Errorf("%+v: %+v", uses, sum)
	}
}

// reads counts the reads of each object of a store, and what was read of it.
type reads struct {
	object.Store
	mu    sync.Mutex
	calls map[string]int
	bytes map[string]int64
}

func (r *reads) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	b, info, err := r.Store.Get(ctx, key, off, n)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls[key]++
		if n < 0 {
			n = info.Size
		}
		r.bytes[key] += min(n, info.Size-off)
	}
	return b, info, err
}

// TestRepackReads wants neighbours in a pack to be read together, where much of it is copied, and by themselves where little is.
func TestRepackReads(t *testing.T) {
	for _, kept := range []int{2, 20} { // one of so many
		b := newBed(t)
		const files = 500
		for i := range uint64(files) {
			b.file(b.root, fmt.Sprintf("f%03d", i), small(i))
		}
		b.backup()
		for i := range files {
			if i%kept != 0 || i == 0 { // less than half
				b.remove(fmt.Sprintf("f%03d", i))
			}
		}
		b.backup()
		pack, length := "", 0
		for _, key := range b.keys("sha256/") {
			if n := len(b.get(key)); n > length {
				pack, length = key, n
			}
		}
		store := &reads{Store: b.store, calls: make(map[string]int), bytes: make(map[string]int64)}
		b.store = store
		sum, s := b.backup()
		b.wantSame(s)
		calls, read := store.calls[pack], store.bytes[pack]
		if sum.Repacked != files/uint64(kept)-1 || sum.Read != 0 {
			t.Errorf("%+v", sum)
		}
		if near := kept == 2; near && (calls > length>>20+1 || read > int64(length)) || !near && (calls != int(sum.Repacked) || uint64(read) != sum.RepackedBytes) {
			t.Errorf("one of %d: %d reads of %d bytes of %d", kept, calls, read, length)
		}
	}
}

// TestPlanRepack wants packs to be chosen that are used by less than half, the worst first, up to the bound, and short ones when there are enough.
func TestPlanRepack(t *testing.T) {
	const full, tiny = 32 << 20, tinyPack / 4
	for _, c := range []struct {
		uses []snapshot.PackUse
		most int64
		want []int64
	}{
		{nil, 0, nil},
		{[]snapshot.PackUse{{Number: 1, Len: full, Used: full / 2}, {Number: 2, Len: full, Used: full/2 - 1}, {Number: 3, Len: full, Used: full}}, 0, []int64{2}},
		{[]snapshot.PackUse{{Number: 1, Len: full, Used: full / 3}, {Number: 2, Len: full, Used: full / 4}}, full / 2, []int64{2}},
		{[]snapshot.PackUse{{Number: 1, Len: tiny, Used: tiny}, {Number: 2, Len: tiny, Used: tiny}, {Number: 3, Len: tiny, Used: tiny}}, 0, nil},
		{[]snapshot.PackUse{{Number: 1, Len: tiny, Used: tiny}, {Number: 2, Len: tiny, Used: tiny}, {Number: 3, Len: 2 * tiny, Used: 2 * tiny}}, 0, []int64{1, 2, 3}},
	} {
		p := planRepack(c.uses, c.most)
		got := make([]int64, 0, len(p.packs))
		for n := range p.packs {
			got = append(got, n)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.uses, got, c.want)
		}
	}
}

// TestRepackBound wants no more to be copied than may be, also if the base says that its packs have less than they have.
func TestRepackBound(t *testing.T) {
	p := planRepack([]snapshot.PackUse{{Number: 7, Len: 10_000, Used: 1}}, 100)
	number := int64(7)
	c := snapshot.Content{Pieces: []snapshot.Piece{{Size: 60, Pack: &number}}}
	if !p.take(&c) || p.take(&c) {
		t.Error("120 bytes of 100 are taken, or none are")
	}
	if none := (*repack)(nil); none.take(&c) || planRepack(nil, 0).take(&c) {
		t.Error("a pack is taken that was not chosen")
	}
}

// stopping is a store that has its backup stopped by some call.
type stopping struct {
	object.Store
	calls, at int64
	stop      func()
}

func (s *stopping) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	if atomic.AddInt64(&s.calls, 1) == s.at {
		s.stop()
	}
	return s.Store.Get(ctx, key, off, n)
}

func (s *stopping) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if atomic.AddInt64(&s.calls, 1) == s.at {
		s.stop()
	}
	return s.Store.Put(ctx, key, r, o)
}

// TestRepackStopped stops a backup at each call to the store while packs are packed anew, and wants the next one to go on, and to end up
// the same.
func TestRepackStopped(t *testing.T) {
	b := newBed(t)
	for i := range uint64(10) {
		b.file(b.create(b.root, fmt.Sprint("d", i), vfs.CreateHow{Type: vfs.TypeDir}), "f", small(i))
	}
	b.backup()
	for i := range 7 {
		d, _, _, err := b.fs.Lookup(t.Context(), b.root, fmt.Sprint("d", i))
		if err == nil {
			_, err = b.fs.Remove(t.Context(), d, "f", false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b.backup()
	whole, resumed := b.store, uint64(0)
	for at := int64(1); ; at++ {
		b.store = whole
		own := b.copied()
		ctx, stop := context.WithCancel(t.Context())
		calls := &stopping{Store: own, at: at, stop: func() {}}
		b.store = calls // the base is read through it
		o := b.options()
		o.Parallel, calls.calls, calls.stop = 1, 0, stop
		_, err := Run(ctx, o)
		stop()
		b.store = own
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("call %d: %v", at, err)
		}
		sum, s := b.backup()
		b.wantSame(s)
		if dead, live := waste(s); dead != 0 || live != 3*5_001 || sum.Read != 0 || b.damagedBut(&sum) != 0 {
			t.Errorf("call %d: %d are used, and %d are not: %+v", at, live, dead, sum)
		}
		resumed += sum.Resumed
		if calls.calls < at {
			break
		}
	}
	if resumed == 0 {
		t.Error("no file that was copied was gone on from")
	}
}
