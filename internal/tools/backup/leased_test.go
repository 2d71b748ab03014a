package backup

import (
	"context"
	crand "crypto/rand"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
	"github.com/nfsbox/nfsbox/internal/tools/upkeep"
	"github.com/nfsbox/nfsbox/vfs"
)

var errAway = errors.New("the store cannot be reached")

// link is the way of one host to a store.
type link struct {
	object.Store
	put func(key string) // is called before a Put that is not of a lease

	mu   sync.Mutex
	away bool
}

func (l *link) set(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
}

func (l *link) err(op, key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return object.Fail(op, key, errAway)
	}
	return nil
}

// Put goes on to the store also if ctx has ended meanwhile, as a call does that is on its way.
func (l *link) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if l.put != nil && !strings.HasPrefix(key, "leases/") {
		l.put(key)
		ctx = context.WithoutCancel(ctx)
	}
	if err := l.err("put", key); err != nil {
		return object.Info{}, err
	}
	return l.Store.Put(ctx, key, r, o)
}

func (l *link) Stat(ctx context.Context, key string) (object.Info, error) {
	if err := l.err("stat", key); err != nil {
		return object.Info{}, err
	}
	return l.Store.Stat(ctx, key)
}

func (l *link) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	if err := l.err("list", prefix); err != nil {
		return object.Page{}, err
	}
	return l.Store.List(ctx, prefix, after, limit)
}

func (l *link) Delete(ctx context.Context, key string) error {
	if err := l.err("delete", key); err != nil {
		return err
	}
	return l.Store.Delete(ctx, key)
}

// lost is a backup that finds content in the store which no snapshot needs any more. While its host cannot reach the store, another host
// prunes that.
type lost struct {
	*bed
	link   *link
	h      vfs.Handle // a file that is read last, perhaps
	pruned uint64
}

func newLost(t *testing.T) *lost {
	l := &lost{bed: newBed(t)}
	f := l.file(l.root, "f", noise(300<<10))
	first, _ := l.backup()
	l.write(f, 0, "another")
	l.backup()
	ref, err := snapshot.Named(t.Context(), l.store, first.Snapshot)
	if err == nil {
		err = l.store.Delete(t.Context(), ref.Key())
	}
	if err != nil {
		t.Fatal(err)
	}
	l.write(f, 0, noise(300 << 10)[:len("another")])
	l.h = l.file(l.root, "z", "small")
	l.now = l.now.Add(time.Minute)
	l.link = &link{Store: l.store}
	return l
}

// apart has the host cut off from the store until another one has pruned it.
func (l *lost) apart() {
	l.link.set(true)
	sum, err := upkeep.Prune(context.Background(), l.store, upkeep.PruneOptions{
		Grace: -1, Lease: lease.Options{Now: time.Now, Rand: crand.Reader, Host: "another", Wait: time.Hour},
	})
	if err != nil {
		l.t.Error(err)
	}
	l.pruned += sum.Removed
	l.link.set(false)
}

func (l *lost) leased(ctx context.Context) (Summary, error) {
	o := Options{FS: l.fs, Root: l.root, Store: l.link, Meta: snapshot.Meta{Name: "t"}, Now: l.time, Parallel: 1}
	return Leased(ctx, o, lease.Options{Now: time.Now, Rand: crand.Reader, Host: "here"})
}

// whole wants so many snapshots, all of them whole, and no lease.
func (l *lost) whole(snapshots uint64) {
	l.t.Helper()
	sum, err := upkeep.Check(l.t.Context(), l.store, upkeep.CheckOptions{ReadData: 1})
	if err != nil || sum.Damaged > 0 || sum.Snapshots != snapshots || sum.Partials > 0 {
		l.t.Errorf("%+v, %v", sum, err)
	}
	if keys := l.keys("leases/"); len(keys) > 0 {
		l.t.Errorf("leases are left: %v", keys)
	}
}

// TestLeaseLost takes the lease from a backup, and has pruned what it has found: while it reads the tree, and while its root is on the way
// to the store. It begins again, and what it publishes is whole.
func TestLeaseLost(t *testing.T) {
	for _, where := range []string{"tree", "snapshots/"} {
		synctest.Test(t, func(t *testing.T) {
			l := newLost(t)
			if where == "tree" {
				l.fault = func(_ context.Context, op string, h vfs.Handle) error {
					if op == "read" && h == l.h && l.pruned == 0 {
						l.apart()
					}
					return nil
				}
			} else {
				l.link.put = func(key string) {
					if strings.HasPrefix(key, where) && l.pruned == 0 {
						l.apart()
					}
				}
			}
			sum, err := l.leased(t.Context())
			if err != nil || !sum.Complete || sum.Again != 1 || l.pruned == 0 {
				t.Errorf("%s: %+v, %v, with %d objects that were pruned", where, sum, err, l.pruned)
			}
			l.whole(2)
		})
	}
}

// TestLeaseNotHad has the store stay away: the backup waits for it a while, and then fails in words.
func TestLeaseNotHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLost(t)
		l.fault = func(ctx context.Context, op string, h vfs.Handle) error {
			if op == "read" && h == l.h {
				l.link.set(true)
				<-ctx.Done()
			}
			return nil
		}
		begun := time.Now()
		sum, err := l.leased(t.Context())
		if !errors.Is(err, errAway) || !strings.Contains(err.Error(), "a lease of the store") || sum.Snapshot != "" {
			t.Errorf("%+v, %v", sum, err)
		}
		if d := time.Since(begun); d < lease.Patience || d > lease.Patience+lease.Life+2*time.Minute {
			t.Errorf("it took %v", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := l.leased(ctx); !errors.Is(err, errAway) {
			t.Error(err)
		}
	})
}

// TestLeaseLostForGood has a root that was put too late, and that cannot be taken back either: that is said, and nothing is tried on top of
// it.
func TestLeaseLostForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLost(t)
		stays := &staying{link: l.link}
		l.link.put = func(key string) {
			if strings.HasPrefix(key, "snapshots/") {
				l.apart()
			}
		}
		o := Options{FS: l.fs, Root: l.root, Store: stays, Meta: snapshot.Meta{Name: "t"}, Now: l.time}
		sum, err := Leased(t.Context(), o, lease.Options{Now: time.Now, Rand: crand.Reader})
		if !errors.Is(err, snapshot.ErrUnproved) || sum.Again != 0 || sum.Snapshot != "" {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

// staying removes no root.
type staying struct{ *link }

func (s *staying) Delete(ctx context.Context, key string) error {
	if strings.HasPrefix(key, "snapshots/") {
		return object.Fail("delete", key, errAway)
	}
	return s.link.Delete(ctx, key)
}

// full is a store that has no room for content any more.
type full struct{ object.Store }

func (f full) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if strings.HasPrefix(key, "sha256/") {
		return object.Info{}, object.Fail("put", key, object.ErrNoSpace)
	}
	return f.Store.Put(ctx, key, r, o)
}

// TestFullStore: a backup that the store has no room for gives its lease back, so that a prune can make room at once.
func TestFullStore(t *testing.T) {
	b := newBed(t)
	b.file(b.root, "f", "content")
	o := b.options()
	o.Store = full{b.store}
	how := lease.Options{Now: time.Now, Rand: crand.Reader, Host: "host"}
	if _, err := Leased(t.Context(), o, how); !errors.Is(err, object.ErrNoSpace) {
		t.Fatal(err)
	}
	how.Host = "another" // which cannot see that a process has gone
	if _, err := upkeep.Prune(t.Context(), b.store, upkeep.PruneOptions{All: true, Grace: -1, Lease: how}); err != nil {
		t.Error(err)
	}
}
