package lease

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// options are those of a process that others cannot find out about.
func options(kind Kind, wait time.Duration) Options {
	return Options{
		Kind: kind, Now: time.Now, Rand: crand.Reader, Host: "here", Command: "a test", Wait: wait,
		process: &process{PID: 1},
	}
}

func take(t *testing.T, store object.Store, o Options) *Lease {
	t.Helper()
	l, err := Take(t.Context(), store, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closed(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// leases are the keys of what is among the leases of a store.
func leases(t *testing.T, store object.Store) (keys []string) {
	t.Helper()
	for info, err := range object.All(t.Context(), store, prefix) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func put(t *testing.T, store object.Store, key, content string) {
	t.Helper()
	if _, err := store.Put(t.Context(), key, strings.NewReader(content), object.PutOptions{Size: -1}); err != nil {
		t.Fatal(err)
	}
}

// TestKinds has two leases meet, of each two kinds.
func TestKinds(t *testing.T) {
	for _, first := range []Kind{Backup, Read, Prune} {
		for _, second := range []Kind{Backup, Read, Prune} {
			t.Run(fmt.Sprintf("%s and %s", first, second), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := object.NewMemory(object.MemoryOptions{})
					a := take(t, store, options(first, 0))
					b, err := Take(t.Context(), store, options(second, 0))
					if first != Prune && second != Prune {
						if err != nil {
							t.Fatal(err)
						}
						closed(t, b)
					} else {
						var held *HeldError
						if !errors.As(err, &held) || !errors.Is(err, ErrHeld) || held.Holder.Kind != first || held.Holder.Host != "here" {
							t.Fatalf("%v", err)
						}
					}
					closed(t, a)
					closed(t, take(t, store, options(second, 0)))
					if left := leases(t, store); len(left) > 0 {
						t.Errorf("left: %v", left)
					}
				})
			})
		}
	}
}

// TestWaits has each kind wait until the other has gone, and not longer than it may.
func TestWaits(t *testing.T) {
	for _, kind := range []Kind{Backup, Prune} {
		other := Prune
		if kind == Prune {
			other = Read
		}
		synctest.Test(t, func(t *testing.T) {
			store := object.NewMemory(object.MemoryOptions{})
			a := take(t, store, options(other, 0))
			begun := time.Now()
			told := 0
			o := options(kind, 12*time.Minute)
			o.Waiting = func(h Holder) {
				told++
				if h.Kind != other {
					t.Errorf("told of %s", h.Text())
				}
			}
			if _, err := Take(t.Context(), store, o); !errors.Is(err, ErrHeld) {
				t.Fatal(err)
			}
			if d := time.Since(begun); d < 12*time.Minute || d > 12*time.Minute+2*poll || told != 1 {
				t.Errorf("waited for %v, and told %d times", d, told)
			}
			go func() {
				time.Sleep(20 * time.Minute)
				closed(t, a)
			}()
			begun = time.Now()
			o.Wait = 2 * time.Hour
			closed(t, take(t, store, o))
			if d := time.Since(begun); d < 20*time.Minute || d > 20*time.Minute+2*poll {
				t.Errorf("waited for %v", d)
			}
			if told != 2 {
				t.Errorf("told %d times", told)
			}
		})
	}
}

// TestRefresh wants a lease to be there for as long as it is held, and to be proved.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := object.NewMemory(object.MemoryOptions{})
		l := take(t, store, options(Backup, 0))
		for range 100 {
			time.Sleep(47 * time.Second)
			synctest.Wait()
			if keys := leases(t, store); len(keys) == 0 || len(keys) > kept {
				t.Fatalf("%v", keys)
			}
			if err := l.Prove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := Take(t.Context(), store, options(Prune, 0)); !errors.Is(err, ErrHeld) {
				t.Fatal(err)
			}
			if d := time.Until(l.StoreTime()); d != 0 {
				t.Fatalf("the store's clock is %v off", d)
			}
		}
		closed(t, l)
		if err := l.Prove(t.Context()); err == nil {
			t.Error("a lease that was closed is proved")
		}
	})
}

// TestSince wants a lease to say the same time for as long as it is held: when its holder began to ask for it, though that had to wait and put
// others before.
func TestSince(t *testing.T) {
	for _, kind := range []Kind{Backup, Prune} {
		other := Prune
		if kind == Prune {
			other = Backup
		}
		synctest.Test(t, func(t *testing.T) {
			store := object.NewMemory(object.MemoryOptions{})
			a := take(t, store, options(other, 0))
			time.AfterFunc(5*time.Minute, func() { closed(t, a) })
			asked := time.Now()
			l := take(t, store, options(kind, time.Hour))
			for range 5 {
				_, err := Take(t.Context(), store, options(other, 0))
				if held, ok := errors.AsType[*HeldError](err); !ok || !held.Holder.Began.Equal(asked) {
					t.Errorf("asked for at %v: %v", asked, err)
				}
				time.Sleep(3 * refresh)
				synctest.Wait()
			}
			closed(t, l)
		})
	}
}

// faulty fails as tests want it to.
type faulty struct {
	object.Store
	mu   sync.Mutex
	fail func(op, key string) error
}

func (f *faulty) set(fail func(op, key string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func (f *faulty) fault(op, key string) error {
	f.mu.Lock()
	fail := f.fail
	f.mu.Unlock()
	if fail == nil {
		return nil
	}
	return object.Fail(op, key, fail(op, key))
}

func (f *faulty) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if err := f.fault("put", key); err != nil {
		return object.Info{}, err
	}
	return f.Store.Put(ctx, key, r, o)
}

func (f *faulty) Delete(ctx context.Context, key string) error {
	if err := f.fault("delete", key); err != nil {
		return err
	}
	return f.Store.Delete(ctx, key)
}

func (f *faulty) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	if err := f.fault("list", prefix); err != nil {
		return object.Page{}, err
	}
	return f.Store.List(ctx, prefix, after, limit)
}

var errAway = errors.New("the store is away")

// TestLost takes the store away from a holder: it gives up before another takes it for dead.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := object.NewMemory(object.MemoryOptions{})
		store := &faulty{Store: memory}
		l := take(t, store, options(Prune, 0))
		store.set(func(op, _ string) error { return errAway })
		begun := time.Now()
		o := options(Backup, time.Hour)
		other := take(t, memory, o)
		if d := time.Since(begun); d < Life || d > Life+refresh+2*poll {
			t.Errorf("it was dead after %v", d)
		}
		if cause := context.Cause(l.Context()); !errors.Is(cause, ErrLost) {
			t.Errorf("the holder's context ended with %v", cause)
		}
		if err := l.Prove(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("proof: %v", err)
		}
		store.set(nil)
		if err := l.Prove(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("proof, when the store is back: %v", err)
		}
		closed(t, l)
		closed(t, other)
	})
}

// TestAway has the store away for less than that: the lease is held all the time.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: object.NewMemory(object.MemoryOptions{})}
		l := take(t, store, options(Backup, 0))
		for range 3 {
			store.set(func(op, _ string) error { return errAway })
			time.Sleep(trust - refresh - time.Second)
			store.set(nil)
			time.Sleep(again + time.Second)
			if err := l.Prove(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		closed(t, l)
	})
}

// TestAsleep has a holder that was taken for dead come back: it finds out by its proof, and by its refresh.
func TestAsleep(t *testing.T) {
	for _, proves := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := object.NewMemory(object.MemoryOptions{})
			l := take(t, store, options(Backup, 0))
			for _, key := range leases(t, store) { // as one does that has waited, while the holder's clock stood still
				if err := store.Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			if proves {
				if err := l.Prove(t.Context()); !errors.Is(err, ErrLost) {
					t.Errorf("proof: %v", err)
				}
			}
			time.Sleep(refresh + time.Second)
			synctest.Wait()
			if cause := context.Cause(l.Context()); !errors.Is(cause, ErrLost) {
				t.Errorf("its context ended with %v", cause)
			}
			closed(t, l)
			if left := leases(t, store); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestGone wants the lease of a process that has gone to be over at once, and that of one that is there not to be.
func TestGone(t *testing.T) {
	here := self()
	if here.Boot == "" {
		t.Skip("NOT TESTED: this system does not tell boots apart")
	}
	const never = 1<<31 - 1 // above the largest pid of Linux
	for name, c := range map[string]struct {
		process
		host string
		gone bool
	}{
		"this one":             {here, "here", false},
		"gone":                 {process{never, here.Boot, 1}, "here", true},
		"its number was given": {process{here.PID, here.Boot, here.Start + 1}, "here", true},
		"another boot":         {process{never, "other", 1}, "here", false},
		"another host":         {process{never, here.Boot, 1}, "there", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := object.NewMemory(object.MemoryOptions{})
			o := options(Prune, 0)
			o.Host, o.process = c.host, &c.process
			l := take(t, store, o)
			o = options(Backup, 0)
			o.process = &here
			b, err := Take(t.Context(), store, o)
			if (err == nil) != c.gone {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				closed(t, b)
			}
			closed(t, l)
		})
	}
}

// TestJunk has many files of others among the leases: they stop everybody, and are gone after Life.
func TestJunk(t *testing.T) {
	for _, kind := range []Kind{Backup, Prune} {
		synctest.Test(t, func(t *testing.T) {
			store := object.NewMemory(object.MemoryOptions{})
			for i := range 1200 { // more than a page
				put(t, store, fmt.Sprintf("%sjunk-%d", prefix, i), strings.Repeat("[", i%100))
			}
			put(t, store, prefix+"prune-0123456789abcdef0123456789abcdef-00000001", strings.Repeat("x", maxContent+1))
			time.Sleep(Life - time.Second)
			if _, err := Take(t.Context(), store, options(kind, 0)); !errors.Is(err, ErrHeld) {
				t.Fatal(err)
			}
			begun := time.Now()
			l := take(t, store, options(kind, time.Hour))
			if d := time.Since(begun); d < time.Second || d > 3*poll {
				t.Errorf("waited for %v", d)
			}
			closed(t, l)
			if left := leases(t, store); len(left) > 0 {
				t.Errorf("%d are left", len(left))
			}
		})
	}
}

// TestFuture has a lease that says it was put in a year, as a clock that was wrong leaves it.
func TestFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		store := object.NewMemory(object.MemoryOptions{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		ahead.Store(int64(365 * 24 * time.Hour))
		put(t, store, prefix+"prune-0123456789abcdef0123456789abcdef-00000001", "")
		ahead.Store(0)
		begun := time.Now()
		closed(t, take(t, store, options(Backup, time.Hour)))
		if d := time.Since(begun); d < Life || d > Life+2*poll {
			t.Errorf("waited for %v", d)
		}
	})
}

// TestListing has a store whose listing lacks what was just put, or fails: nothing is taken.
func TestListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := object.NewMemory(object.MemoryOptions{})
		store := &faulty{Store: memory}
		store.set(func(op, _ string) error {
			if op == "list" {
				return errAway
			}
			return nil
		})
		if _, err := Take(t.Context(), store, options(Prune, time.Hour)); !errors.Is(err, errAway) {
			t.Error(err)
		}
		if _, err := Take(t.Context(), blind{memory}, options(Prune, time.Hour)); err == nil || !strings.Contains(err.Error(), "cannot be relied on") {
			t.Error(err)
		}
		if left := leases(t, memory); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// blind lists nothing.
type blind struct{ object.Store }

func (blind) List(context.Context, string, string, int) (object.Page, error) {
	return object.Page{}, nil
}

// TestEnds ends the context of a wait, and of a lease.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := object.NewMemory(object.MemoryOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		l, err := Take(ctx, store, options(Prune, 0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Take(ctx, store, options(Backup, time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait() // a context's waiters may go on before those that it was given to have ended
		if err := l.Prove(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		closed(t, l)
		if left := leases(t, store); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestApart has many take leases of all kinds at random: an exclusive one is held by nobody else meanwhile.
func TestApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: object.NewMemory(object.MemoryOptions{})}
		store.set(func(string, string) error { // calls take a while, so that they overlap
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
			return nil
		})
		var shared, exclusive, taken atomic.Int64
		var all sync.WaitGroup
		for i := range 6 {
			kind := []Kind{Backup, Read, Prune}[i%3]
			all.Go(func() {
				for range 10 {
					time.Sleep(time.Duration(rand.IntN(60)) * time.Second)
					l, err := Take(t.Context(), store, options(kind, time.Hour))
					if errors.Is(err, ErrHeld) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					taken.Add(1)
					count := &shared
					if kind == Prune {
						count = &exclusive
					}
					count.Add(1)
					for range 10 {
						if e, s := exclusive.Load(), shared.Load(); e > 1 || e == 1 && s > 0 {
							t.Errorf("%d exclusive leases and %d shared ones at once", e, s)
						}
						time.Sleep(time.Duration(rand.IntN(20_000)) * time.Millisecond)
					}
					count.Add(-1)
					closed(t, l)
				}
			})
		}
		all.Wait()
		if taken.Load() < 30 {
			t.Errorf("%d of 60 were taken", taken.Load())
		}
	})
}

// FuzzHolder wants whatever is in a lease to be refused, or to be in bounds and written again as it was.
func FuzzHolder(f *testing.F) {
	h := Holder{Kind: Prune, Host: "host", Command: "nfsbox\x1b[31m", Began: time.Unix(1_700_000_000, 0).UTC(), process: process{7, "boot", 9}}
	whole, err := h.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"kind":"read"}`))
	f.Add([]byte(`{"kind":"other","pid":-1}`))
	f.Add(bytes.Repeat([]byte("["), maxContent))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHolder(b)
		if err != nil {
			return
		}
		if text := h.Text(); strings.ContainsAny(text, "\x1b\n\x00") {
			t.Fatalf("%q", text)
		}
		again, err := h.encode()
		if err != nil {
			if _, ok := errors.AsType[*json.MarshalerError](err); ok { // a year that RFC 3339 has not
				return
			}
			t.Fatal(err)
		}
		if len(again) > maxContent+maxContent/2 {
			t.Fatalf("%d bytes", len(again))
		}
	})
}

// FuzzName wants a key to be refused, or to be that of the name that was read.
func FuzzName(f *testing.F) {
	f.Add("leases/prune-0123456789abcdef0123456789abcdef-00000001")
	f.Add("leases/backup-0123456789abcdef0123456789abcdef-99999999")
	f.Add("leases/")
	f.Fuzz(func(t *testing.T, key string) {
		if n, ok := parseName(key); ok && (n.key() != key || object.CheckKey(key) != nil) {
			t.Fatalf("%q is read as %+v", key, n)
		}
	})
}
