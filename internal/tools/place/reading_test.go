package place

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
)

// reader is a Reading that notes what it is told.
type reader struct {
	Reading
	mu    sync.Mutex
	notes []string
}

func newReader(wait time.Duration) *reader {
	r := &reader{Reading: Reading{Lease: lease.Options{Now: time.Now, Rand: rand.Reader, Command: "a test", Wait: wait}}}
	r.Note = func(kind, text string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.notes = append(r.notes, kind+": "+text)
	}
	return r
}

// told wants a note for each of want, and no other.
func (r *reader) told(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.notes) != len(want) {
		t.Fatalf("it was told %q, want %q", r.notes, want)
	}
	for i := range want {
		if !strings.Contains(r.notes[i], want[i]) {
			t.Errorf("it was told %q, want %q", r.notes[i], want[i])
		}
	}
}

// begin has r read a store.
func (r *reader) begin(t *testing.T, s object.Store) *Store {
	t.Helper()
	of := &Store{Store: s, Text: "STORE"}
	var err error
	if of.held, err = r.take(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	return of
}

// pruned tries to prune.
func pruned(t *testing.T, s object.Store) (*lease.Lease, error) {
	return lease.Take(t.Context(), s, lease.Options{Kind: lease.Prune, Now: time.Now, Rand: rand.Reader, Host: "another"})
}

// unwritable is a store that is only read.
type unwritable struct{ object.Store }

var errUnwritable = errors.New("only to be read")

func (unwritable) Put(context.Context, string, io.Reader, object.PutOptions) (object.Info, error) {
	return object.Info{}, errUnwritable
}

// TestReading: a store that is read is not pruned until it is closed, and a prune that is under way is waited for.
func TestReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := object.NewMemory(object.MemoryOptions{})
		r := newReader(time.Hour)
		s := r.begin(t, store)
		time.Sleep(time.Hour)
		if _, err := pruned(t, store); !errors.Is(err, lease.ErrHeld) || !strings.Contains(err.Error(), "read (a test)") {
			t.Error(err)
		}
		s.held.end()
		p, err := pruned(t, store)
		if err != nil {
			t.Fatal(err)
		}
		r.told(t)
		time.AfterFunc(time.Minute, func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		r = newReader(time.Hour)
		s = r.begin(t, store)
		r.told(t, "waiting: it waits until this has ended: prune on another")
		if _, err := pruned(t, store); !errors.Is(err, lease.ErrHeld) {
			t.Error(err)
		}
		s.held.end()
	})
}

// TestReadingUnheld: without a lease a store is read as well, and that is told: where it cannot be written to, and where a prune goes on
// and on.
func TestReadingUnheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := object.NewMemory(object.MemoryOptions{})
		r := newReader(time.Hour)
		if s := r.begin(t, unwritable{store}); s.held != nil {
			t.Error("a lease was taken")
		}
		r.told(t, "lease: STORE is read without a lease: do not forget and prune there before this has ended, as what is removed meanwhile is an error. There is none: a lease of the store: only to be read")

		p, err := pruned(t, store)
		if err != nil {
			t.Fatal(err)
		}
		r = newReader(time.Minute)
		r.begin(t, store)
		r.told(t, "waiting: ", ". There is none: somebody else uses the store: prune on another")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := r.take(ctx, &Store{Store: store}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}

	})
}

// TestReadingLost: a lease that is lost is taken again, when what has taken it for dead is done. A store that cannot be written to any more is
// read without one.
func TestReadingLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := object.NewMemory(object.MemoryOptions{})
		r := newReader(time.Hour)
		of := &onlySometimes{Store: store}
		s := r.begin(t, of)
		taken := func() {
			for info, err := range object.All(t.Context(), store, "leases/") {
				if err = errors.Join(err, store.Delete(t.Context(), info.Key)); err != nil {
					t.Fatal(err)
				}
			}
		}
		taken()
		p, err := pruned(t, store)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		r.told(t, "lease: STORE is read without a lease for a while", "waiting: ")
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		r.told(t, "without a lease for a while", "waiting: ", "lease: STORE is read with a lease again")
		if _, err := pruned(t, store); !errors.Is(err, lease.ErrHeld) {
			t.Error(err)
		}
		taken()
		of.never.Store(true)
		time.Sleep(2 * time.Hour)
		r.told(t, "without a lease for a while", "waiting: ", "with a lease again", "without a lease for a while", "without a lease from now on: do not forget and prune there")
		s.held.end()

		of.never.Store(false)
		r = newReader(time.Hour)
		s = r.begin(t, of)
		taken()
		of.never.Store(true)
		time.Sleep(lease.Life)
		s.held.end() // it does not wait for the lease
		r.told(t, "without a lease for a while")
	})
}

// onlySometimes is a store that may be written to at times.
type onlySometimes struct {
	object.Store
	never atomic.Bool
}

func (s *onlySometimes) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if s.never.Load() {
		return object.Info{}, errUnwritable
	}
	return s.Store.Put(ctx, key, r, o)
}
