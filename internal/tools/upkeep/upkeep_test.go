package upkeep

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/backup"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
	"github.com/nfsbox/nfsbox/vfs"
)

// clock is one that tests set forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time            { return time.Unix(1_800_000_000, c.ahead.Load()) }
func (c *clock) set(forward time.Duration) { c.ahead.Add(int64(forward)) }

// bed is a tree, a clock and a store.
type bed struct {
	t      testing.TB
	clock  clock
	memory *object.Memory
	fs     *memfs.FS
	root   vfs.Handle
	plain  bool // files are stored as they are
}

func newBed(t testing.TB) *bed {
	b := &bed{t: t}
	b.memory = object.NewMemory(object.MemoryOptions{Now: b.clock.now})
	b.fs = memfs.New(memfs.Options{Now: b.clock.now})
	root, _, err := b.fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.root = root
	return b
}

// noise is n bytes that do not pack.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := mathrand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b)
	return b
}

// file makes a file anew, below directories that are made as well.
func (b *bed) file(path string, content []byte) {
	b.t.Helper()
	ctx, at := b.t.Context(), b.root
	parts := strings.Split(path, "/")
	for _, name := range parts[:len(parts)-1] {
		h, _, _, err := b.fs.Lookup(ctx, at, name)
		if errors.Is(err, vfs.ErrNoEnt) {
			h, _, _, err = b.fs.Create(ctx, at, name, &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}})
		}
		if err != nil {
			b.t.Fatal(err)
		}
		at = h
	}
	name := parts[len(parts)-1]
	h, _, _, err := b.fs.Lookup(ctx, at, name)
	if errors.Is(err, vfs.ErrNoEnt) {
		h, _, _, err = b.fs.Create(ctx, at, name, &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}})
	}
	if err != nil {
		b.t.Fatal(err)
	}
	f, _, err := b.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		b.t.Fatal(err)
	}
	var w vfs.Written
	if _, err := f.Truncate(ctx, 0); err != nil {
		b.t.Fatal(err)
	}
	if _, err := vfs.WriteFull(ctx, f, content, 0, vfs.FileSync, &w); err != nil {
		b.t.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		b.t.Fatal(err)
	}
}

// backup backs the tree up a minute later, on top of the last one of the name.
func (b *bed) backup(store object.Store, name string, prove func(context.Context) error) error {
	b.clock.set(time.Minute)
	o := backup.Options{FS: b.fs, Root: b.root, Store: store, Meta: snapshot.Meta{Name: name, Tags: []string{"all"}}, Now: b.clock.now, Prove: prove, Plain: b.plain}
	if ref, err := snapshot.Find(b.t.Context(), store, name); err == nil {
		if o.Base, err = snapshot.Open(b.t.Context(), store, ref); err != nil {
			return err
		}
	} else if !errors.Is(err, snapshot.ErrNoSnapshot) {
		return err
	}
	sum, err := backup.Run(b.t.Context(), o)
	if err == nil && !sum.Complete {
		err = errors.New("it is incomplete")
	}
	return err
}

func (b *bed) mustBackup(name string) {
	b.t.Helper()
	if err := b.backup(b.memory, name, nil); err != nil {
		b.t.Fatal(err)
	}
}

// holder is whose the leases are.
func (b *bed) holder() lease.Options {
	return lease.Options{Now: b.clock.now, Rand: rand.Reader, Host: "here", Command: "a test"}
}

// check checks all, and returns what is damaged.
func (b *bed) check(store object.Store, part float64) (sum CheckSummary, found []Damage) {
	b.t.Helper()
	sum, err := Check(b.t.Context(), store, CheckOptions{ReadData: part, Rand: rand.Reader, Found: func(d Damage) { found = append(found, d) }})
	if err != nil {
		b.t.Fatal(err)
	}
	if int(sum.Damaged) != len(found) {
		b.t.Errorf("%d are damaged, and %d told", sum.Damaged, len(found))
	}
	return sum, found
}

func (b *bed) clean(store object.Store) CheckSummary {
	b.t.Helper()
	sum, found := b.check(store, 1)
	if len(found) > 0 {
		b.t.Fatalf("%+v", found)
	}
	return sum
}

// content are the keys of all content.
func (b *bed) content() (keys []string) {
	b.t.Helper()
	for info, err := range object.All(b.t.Context(), b.memory, contentPrefix) {
		if err != nil {
			b.t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func (b *bed) prune(store object.Store, o PruneOptions) (PruneSummary, error) {
	if o.Lease.Now == nil {
		o.Lease = b.holder()
	}
	if o.Grace == 0 {
		o.Grace = time.Nanosecond
	}
	b.clock.set(time.Second)
	return Prune(b.t.Context(), store, o)
}

// forget keeps the newest snapshots of all names.
func (b *bed) forget(keep int) ForgetSummary {
	b.t.Helper()
	sum, err := Forget(b.t.Context(), b.memory, ForgetOptions{KeepLast: keep})
	if err != nil {
		b.t.Fatal(err)
	}
	return sum
}

// grown is a store of a few snapshots, of which some were forgotten: with small files, and large ones.
func grown(t testing.TB) *bed {
	b := newBed(t)
	for i := range 3 {
		b.file("same", noise(1, 300_000))
		b.file("small", noise(uint64(10+i), 5000))
		b.file("dir/large", noise(uint64(20+i), 400_000))
		b.file("dir/empty", nil)
		b.file("dir/\xff", []byte(strings.Repeat(fmt.Sprint(i), 1000)))
		b.mustBackup("a")
		b.mustBackup("b")
	}
	b.forget(2)
	b.plain = true
	return b
}

// TestPrune removes what nothing needs, and no more; a rehearsal says the same before.
func TestPrune(t *testing.T) {
	b := grown(t)
	b.file("cut", noise(7, 9<<20))
	b.mustBackup("b")
	b.forget(2)
	before := b.clean(b.memory)
	if before.Snapshots != 4 || before.Unused == 0 || before.ReadObjects == 0 {
		t.Fatalf("%+v", before)
	}
	keys := b.content()
	dry, err := b.prune(b.memory, PruneOptions{DryRun: true})
	if err != nil || dry.Removed != before.Unused || dry.RemovedBytes != before.UnusedBytes || !slices.Equal(b.content(), keys) {
		t.Fatalf("%+v: %v, and the check %+v", dry, err, before)
	}
	got, err := b.prune(b.memory, PruneOptions{})
	dry.DryRun = false
	if err != nil || got != dry || got.Snapshots != 4 || got.Missing != 0 {
		t.Fatalf("%+v, and the rehearsal said %+v: %v", got, dry, err)
	}
	after := b.clean(b.memory)
	if after.Unused != 0 || after.Objects > before.Objects || uint64(len(b.content())) != uint64(len(keys))-got.Removed {
		t.Fatalf("%+v", after)
	}
	if again, err := b.prune(b.memory, PruneOptions{}); err != nil || again.Removed != 0 {
		t.Fatalf("%+v: %v", again, err)
	}
	for info, err := range object.All(t.Context(), b.memory, "leases/") {
		t.Errorf("left: %s, %v", info.Key, err)
	}
}

// TestPruneWithout has a rehearsal say what a prune removes after a forget that was rehearsed as well, and nothing removed so.
func TestPruneWithout(t *testing.T) {
	b := grown(t)
	gone := make(map[string]bool)
	o := ForgetOptions{KeepLast: 1, DryRun: true, Item: func(i ForgetItem) { gone[i.Snapshot] = i.Forgotten }}
	if sum, err := Forget(t.Context(), b.memory, o); err != nil || sum.Forgotten != 2 {
		t.Fatalf("%+v: %v", sum, err)
	}
	keys := b.content()
	if sum, err := b.prune(b.memory, PruneOptions{Without: gone}); err == nil || !slices.Equal(b.content(), keys) {
		t.Fatalf("%+v", sum)
	}
	now, err := b.prune(b.memory, PruneOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	dry, err := b.prune(b.memory, PruneOptions{DryRun: true, Without: gone})
	if err != nil || dry.Removed <= now.Removed || dry.Snapshots != 2 || !slices.Equal(b.content(), keys) {
		t.Fatalf("%+v, and with all %+v: %v", dry, now, err)
	}
	b.forget(1)
	dry.DryRun = false
	if got, err := b.prune(b.memory, PruneOptions{}); err != nil || got != dry {
		t.Errorf("%+v, and the rehearsal said %+v: %v", got, dry, err)
	}
	for key := range gone {
		gone[key] = true
	}
	if sum, err := b.prune(b.memory, PruneOptions{DryRun: true, Without: gone}); !errors.Is(err, ErrEmpty) {
		t.Errorf("%+v: %v", sum, err)
	}
	b.clean(b.memory)
}

// TestPruneGrace keeps what is young.
func TestPruneGrace(t *testing.T) {
	b := grown(t)
	sum, err := b.prune(b.memory, PruneOptions{Grace: 24 * time.Hour})
	if err != nil || sum.Removed != 0 || sum.Young == 0 || sum.YoungBytes == 0 {
		t.Fatalf("%+v: %v", sum, err)
	}
	b.clock.set(24 * time.Hour)
	if sum, err = b.prune(b.memory, PruneOptions{Grace: 24 * time.Hour}); err != nil || sum.Removed == 0 || sum.Young != 0 {
		t.Fatalf("%+v: %v", sum, err)
	}
}

// TestPruneRefuses wants nothing to be removed where a listing or a root cannot be relied on.
func TestPruneRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(b *bed) object.Store
		all   bool
		want  error
	}{
		"a damaged root": {func(b *bed) object.Store {
			b.memory.Corrupt(rootKeys(b)[0], 10)
			return b.memory
		}, true, ErrUnreadable},
		"a lost part": {func(b *bed) object.Store {
			if err := b.memory.Delete(b.t.Context(), object.ContentKey(b.used(snapshot.UsePart))); err != nil {
				b.t.Fatal(err)
			}
			return b.memory
		}, true, ErrUnreadable},
		"a lost table": {func(b *bed) object.Store {
			if err := b.memory.Delete(b.t.Context(), object.ContentKey(b.used(snapshot.UseTable))); err != nil {
				b.t.Fatal(err)
			}
			return b.memory
		}, true, ErrUnreadable},
		"junk among the roots": {func(b *bed) object.Store {
			put(b.t, b.memory, "snapshots/junk", "x")
			return b.memory
		}, true, ErrUnreadable},
		"no snapshot": {func(b *bed) object.Store {
			for _, key := range rootKeys(b) {
				if err := b.memory.Delete(b.t.Context(), key); err != nil {
					b.t.Fatal(err)
				}
			}
			return b.memory
		}, false, ErrEmpty},
		"roots that are hidden": {func(b *bed) object.Store { return &hides{Store: b.memory} }, true, ErrUnproved},
		"a listing that fails": {func(b *bed) object.Store {
			return &stops{Store: b.memory, list: "snapshots/"}
		}, true, errStopped},
	} {
		t.Run(name, func(t *testing.T) {
			b := grown(t)
			store := c.spoil(b)
			keys := b.content()
			sum, err := b.prune(store, PruneOptions{All: c.all})
			if !errors.Is(err, c.want) || sum.Removed != 0 || !slices.Equal(keys, b.content()) {
				t.Errorf("%+v: %v, want %v", sum, err, c.want)
			}
		})
	}
	b := newBed(t)
	put(t, b.memory, object.ContentKey(object.SumOf([]byte("x"))), "x")
	b.clock.set(time.Hour)
	if sum, err := b.prune(b.memory, PruneOptions{All: true}); err != nil || sum.Removed != 1 {
		t.Errorf("all: %+v: %v", sum, err)
	}
}

// used is an object that the last snapshot uses so.
func (b *bed) used(kind snapshot.UseKind) (sum object.Sum) {
	b.t.Helper()
	roots, err := snapshot.Roots(b.t.Context(), b.memory, "")
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := snapshot.Open(b.t.Context(), b.memory, roots[len(roots)-1])
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := s.Uses(b.t.Context(), snapshot.UsesOptions{Use: func(u *snapshot.Use, _ *snapshot.Site) error {
		if u.Kind == kind {
			sum = u.Sum
		}
		return nil
	}}); err != nil || sum.IsZero() {
		b.t.Fatalf("no such object: %v", err)
	}
	return sum
}

func rootKeys(b *bed) (keys []string) {
	roots, err := snapshot.Roots(b.t.Context(), b.memory, "")
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range roots {
		keys = append(keys, roots[i].Key())
	}
	return keys
}

func put(t testing.TB, store object.Store, key, content string) {
	t.Helper()
	if _, err := store.Put(t.Context(), key, strings.NewReader(content), object.PutOptions{Size: -1}); err != nil {
		t.Fatal(err)
	}
}

// hides lists the first snapshot once.
type hides struct {
	object.Store
	listed atomic.Int64
}

func (h *hides) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	p, err := h.Store.List(ctx, prefix, after, limit)
	if prefix == "snapshots/" && len(p.Objects) > 0 && h.listed.Add(1) > 1 {
		p.Objects = p.Objects[1:]
	}
	return p, err
}

// stops fails from a call on, as a process does that is killed then; or always, when it lists a prefix.
type stops struct {
	object.Store
	list  string
	after int64 // calls
	calls atomic.Int64
}

var errStopped = errors.New("killed")

func (s *stops) call() error {
	if s.list == "" && s.calls.Add(1) > s.after {
		return errStopped
	}
	return nil
}

func (s *stops) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if err := s.call(); err != nil {
		return object.Info{}, err
	}
	return s.Store.Put(ctx, key, r, o)
}

func (s *stops) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	if err := s.call(); err != nil {
		return nil, object.Info{}, err
	}
	return s.Store.Get(ctx, key, off, n)
}

func (s *stops) Stat(ctx context.Context, key string) (object.Info, error) {
	if err := s.call(); err != nil {
		return object.Info{}, err
	}
	return s.Store.Stat(ctx, key)
}

func (s *stops) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	if err := s.call(); err != nil || s.list == prefix {
		return object.Page{}, errStopped
	}
	return s.Store.List(ctx, prefix, after, limit)
}

func (s *stops) Delete(ctx context.Context, key string) error {
	if err := s.call(); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}

// TestPruneStopped stops a prune at each of its calls. What is left is whole, and the next one goes on once the lease has died.
func TestPruneStopped(t *testing.T) {
	b := grown(t)
	for n := int64(0); ; n++ {
		_, err := b.prune(&stops{Store: b.memory, after: n}, PruneOptions{})
		if sum, found := b.check(b.memory, 0); len(found) > 0 || sum.Snapshots != 4 {
			t.Fatalf("stopped after %d calls: %+v, %+v", n, sum, found)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errStopped) {
			t.Fatalf("stopped after %d calls: %v", n, err)
		}
		b.clock.set(lease.Life + time.Minute)
	}
	if sum := b.clean(b.memory); sum.Unused != 0 {
		t.Errorf("%+v", sum)
	}
}

// beforeRoot calls prune before a snapshot becomes visible.
type beforeRoot struct {
	object.Store
	prune func()
}

func (s *beforeRoot) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if strings.HasPrefix(key, "snapshots/") {
		s.prune()
	}
	return s.Store.Put(ctx, key, r, o)
}

// TestBackupAndPrune has a prune run when a backup has found the content that it needs in the store, where no snapshot has it any more. Without its
// lease the snapshot is damaged, so the lease is what protects it.
func TestBackupAndPrune(t *testing.T) {
	for _, leased := range []bool{true, false} {
		b := newBed(t)
		b.file("f", noise(1, 300_000))
		b.mustBackup("a")
		b.file("f", noise(2, 300_000))
		b.mustBackup("a")
		b.forget(1)
		b.file("f", noise(1, 300_000)) // as the forgotten one had it
		pruned := 0
		store := &beforeRoot{b.memory, func() {
			pruned++
			sum, err := b.prune(b.memory, PruneOptions{})
			if leased && !errors.Is(err, lease.ErrHeld) || !leased && (err != nil || sum.Removed == 0) {
				t.Errorf("%+v: %v", sum, err)
			}
		}}
		prove := func(context.Context) error { return nil }
		if leased {
			o := b.holder()
			o.Kind = lease.Backup
			l, err := lease.Take(t.Context(), b.memory, o)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close() //nolint:errcheck // a store in memory
			prove = l.Prove
		}
		if err := b.backup(store, "a", prove); err != nil || pruned != 1 {
			t.Fatalf("%d prunes: %v", pruned, err)
		}
		_, found := b.check(b.memory, 1)
		if leased && len(found) > 0 || !leased && len(found) == 0 {
			t.Errorf("with a lease: %v: %+v", leased, found)
		}
	}
}

// TestTwoHosts has one host back up, and another forget and prune, at random moments: every snapshot is whole.
func TestTwoHosts(t *testing.T) {
	rounds := 15
	if os.Getenv("NFSBOX_SOAK") != "" {
		rounds = 1000
	}
	b := newBed(t)
	b.plain = true
	b.mustBackup("a")
	done := make(chan struct{})
	var all sync.WaitGroup
	var pruned, gaveWay atomic.Int64
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			b.forget(1)
			switch sum, err := b.prune(b.memory, PruneOptions{}); {
			case errors.Is(err, lease.ErrHeld):
				gaveWay.Add(1)
			case err != nil:
				t.Error(err)
				return
			default:
				pruned.Add(int64(sum.Removed))
			}
		}
	})
	r := mathrand.New(mathrand.NewPCG(1, 2))
	for made := 0; made < rounds && !t.Failed(); {
		for i := range 2 {
			b.file(fmt.Sprintf("f%d", i), noise(uint64(r.IntN(3)), 260<<10))
		}
		o := b.holder()
		o.Kind = lease.Backup
		l, err := lease.Take(t.Context(), b.memory, o)
		if errors.Is(err, lease.ErrHeld) {
			continue
		}
		if err == nil {
			err = b.backup(b.memory, "a", l.Prove)
			_, found := b.check(b.memory, 1) // while the lease is held: nothing is forgotten of it
			if err == nil && len(found) > 0 {
				err = fmt.Errorf("%+v", found)
			}
			made++
			err = errors.Join(err, l.Close())
		}
		if err != nil {
			t.Errorf("backup %d: %v", made, err)
		}
	}
	close(done)
	all.Wait()
	b.clean(b.memory)
	t.Logf("%d objects were removed, %d prunes gave way", pruned.Load(), gaveWay.Load())
}

// TestCheckDamages damages each object in each way, and wants it to be named with just the files that cannot be read.
func TestCheckDamages(t *testing.T) {
	b := newBed(t)
	for i := range 2 {
		b.file(fmt.Sprintf("d%d/small", i), noise(uint64(i), 1000))
		b.file(fmt.Sprintf("d%d/large", i), noise(uint64(10+i), 270_000))
	}
	b.mustBackup("a")
	b.file("d0/small", noise(50, 2000))
	b.mustBackup("a")
	keys := append(b.content(), rootKeys(b)...)
	r := mathrand.New(mathrand.NewPCG(3, 4))
	for _, key := range keys {
		whole := contentOf(t, b.memory, key)
		for way, damage := range map[string]func() []byte{
			"a bit":     func() []byte { c := bytes.Clone(whole); c[r.IntN(len(c))] ^= 1 << r.IntN(8); return c },
			"truncated": func() []byte { return whole[:r.IntN(len(whole))] },
			"longer":    func() []byte { return append(bytes.Clone(whole), 'x') },
			"missing":   func() []byte { return nil },
		} {
			bad := damage()
			if err := b.memory.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if bad != nil {
				put(t, b.memory, key, string(bad))
			}
			want := unreadable(t, b.memory)
			_, found := b.check(b.memory, 1)
			isRoot := strings.HasPrefix(key, "snapshots/")
			if isRoot && way == "missing" { // it was forgotten, as far as anybody knows
				want = nil
			} else if len(found) != 1 || found[0].Object != key {
				t.Errorf("%s of %s: %+v", way, key, found)
			}
			var hurt []string
			for _, d := range found {
				for _, h := range d.Hurts {
					hurt = append(hurt, h.Snapshot+" "+h.Path)
				}
			}
			slices.Sort(hurt)
			if way != "longer" && !isRoot && !covers(hurt, want) {
				t.Errorf("%s of %s hurts\n%q, and cannot be read:\n%q", way, key, hurt, want)
			}
			put(t, b.memory, key, string(whole))
		}
	}
	b.clean(b.memory)
}

// covers reports whether hurt is what cannot be read, or directories above that.
func covers(hurt, want []string) bool {
	used := make([]bool, len(hurt))
	for _, w := range want {
		ok := false
		for i, h := range hurt {
			if h == w || strings.HasSuffix(h, " /") && strings.HasPrefix(w, strings.TrimSuffix(h, "/")) || strings.HasSuffix(h, "/") && strings.HasPrefix(w, h) {
				used[i], ok = true, true
			}
		}
		if !ok {
			return false
		}
	}
	return !slices.Contains(used, false)
}

// unreadable are the files of the bed of TestCheckDamages that cannot be read.
func unreadable(t *testing.T, store object.Store) (all []string) {
	roots, err := snapshot.Roots(t.Context(), store, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range roots {
		s, err := snapshot.Open(t.Context(), store, roots[i])
		if err != nil {
			continue
		}
		fs := s.FS()
		root, _, err := fs.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for d := range 2 {
			for _, name := range []string{"small", "large"} {
				path := fmt.Sprintf("d%d/%s", d, name)
				if !canRead(t, fs, root, path) {
					all = append(all, roots[i].Text()+" "+path)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

func canRead(t *testing.T, fs vfs.FS, root vfs.Handle, path string) bool {
	at, err := vfs.Resolve(t.Context(), fs, root, path, false)
	if err != nil {
		return false
	}
	f, _, err := fs.Open(t.Context(), vfs.At{H: at.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return false
	}
	defer f.Close(t.Context()) //nolint:errcheck // nothing is written
	b := make([]byte, 300_000)
	_, _, err = f.ReadAt(t.Context(), b, 0, nil)
	return err == nil
}

func contentOf(t *testing.T, store object.Store, key string) []byte {
	t.Helper()
	r, _, err := store.Get(t.Context(), key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // nothing is written
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unread is a store of which one object may not be read.
type unread struct {
	object.Store
	key string
}

func (s *unread) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	if key == s.key {
		return nil, object.Info{}, object.Fail("get", key, os.ErrPermission)
	}
	return s.Store.Get(ctx, key, off, n)
}

// TestJunk has what is no root among the roots, and one that may not be read: a check names them and looks at the others, forget judges the
// others, and a prune says what to do.
func TestJunk(t *testing.T) {
	b := grown(t)
	root := rootKeys(b)[0]
	put(t, b.memory, "snapshots/junk", "x")
	store := &unread{b.memory, root}
	sum, found := b.check(store, 1)
	if sum.Snapshots != 3 || len(found) != 2 || found[0].Object != root || found[0].Problem != Unreadable || len(found[0].Hurts) != 1 ||
		found[1].Object != "snapshots/junk" || found[1].Problem != Format || len(found[1].Hurts) != 0 {
		t.Errorf("%+v: %+v", sum, found)
	}
	forgot, err := Forget(t.Context(), store, ForgetOptions{KeepLast: 1, DryRun: true})
	if err != nil || forgot.Errors != 2 || forgot.Kept != 2 || forgot.Forgotten != 1 {
		t.Errorf("%+v: %v", forgot, err)
	}
	if _, err := b.prune(store, PruneOptions{}); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "move what is not the store's out of it") {
		t.Error(err)
	}
	if err := b.memory.Delete(t.Context(), "snapshots/junk"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.prune(store, PruneOptions{}); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "as a user who may read it") {
		t.Error(err)
	}
}

// TestCheckSample reads about the part that is asked for, and everything in many samples.
func TestCheckSample(t *testing.T) {
	b := newBed(t)
	b.plain = true
	for i := range 40 {
		b.file(fmt.Sprint(i), noise(uint64(i), 257<<10))
	}
	b.mustBackup("a")
	read := uint64(0)
	for range 10 {
		sum, _ := b.check(b.memory, 0.25)
		read += sum.ReadObjects
	}
	if read < 10 || read > 300 { // 100 is a quarter
		t.Errorf("%d of %d", read, 10*40)
	}
	if sum, _ := b.check(b.memory, 0); sum.ReadObjects != 0 {
		t.Errorf("%+v", sum)
	}
	for _, part := range []float64{-1, 2} {
		if _, err := Check(t.Context(), b.memory, CheckOptions{ReadData: part}); err == nil {
			t.Errorf("%v is taken", part)
		}
	}
}

// TestRounds wants a round that has little room to give all in the end, each once.
func TestRounds(t *testing.T) {
	r := newNeeds(64)
	var got []object.Sum
	for first := true; first || r.next(); first = false {
		for i := range 900 {
			r.add(need{object.SumOf([]byte(fmt.Sprint(i % 300))), int64(i%2) - 1})
		}
		r.sort()
		if len(r.items) > 64 {
			t.Fatalf("%d items", len(r.items))
		}
		for _, n := range r.items {
			got = append(got, n.sum)
		}
	}
	if len(got) != 300 || !slices.IsSortedFunc(got, func(a, b object.Sum) int { return bytes.Compare(a[:], b[:]) }) {
		t.Errorf("%d", len(got))
	}
}

// TestRoundsOfOne wants more ranges of one object than a round has room for to come in several rounds, each once.
func TestRoundsOfOne(t *testing.T) {
	r := newRefs(64)
	var got []uint32
	for first := true; first || r.next(); first = false {
		for i := range uint32(600) {
			r.add(ref{sum: object.SumOf(nil), at: i * 7 % 300, n: 1})
		}
		r.sort()
		for i := range r.items {
			got = append(got, r.items[i].at)
		}
	}
	if len(got) != 300 || !slices.IsSorted(got) {
		t.Errorf("%d", len(got))
	}
}

// TestCheckInRounds wants a check whose rounds have no room for all files of a pack to find what one round finds, and to count each object once.
func TestCheckInRounds(t *testing.T) {
	b := newBed(t)
	for i := range 50 {
		b.file(fmt.Sprint(i), noise(uint64(i), 1000))
	}
	b.mustBackup("a")
	pack := object.ContentKey(b.used(snapshot.UseData))
	whole := contentOf(t, b.memory, pack)
	for _, bad := range []int{-1, 0, len(whole) / 2, len(whole) - 1} {
		content := bytes.Clone(whole)
		if bad >= 0 {
			content[bad] ^= 1
		}
		if err := b.memory.Delete(t.Context(), pack); err != nil {
			t.Fatal(err)
		}
		put(t, b.memory, pack, string(content))
		run := func(ranges int) (sum CheckSummary, found []Damage) {
			c := &check{
				store: b.memory, o: &CheckOptions{ReadData: 1, Found: func(d Damage) { found = append(found, d) }}, sum: &sum,
				bad: newDamages(), hurt: make(map[string]struct{}), ranges: ranges,
			}
			if err := c.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			return sum, found
		}
		want, all := run(roundRefs)
		sum, found := run(8)
		if sum != want || len(found) != len(all) || (len(all) > 0) != (bad >= 0) {
			t.Errorf("byte %d: %+v, %+v, want %+v, %+v", bad, sum, found, want, all)
		}
	}
}
