package nlm

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/proto/nlm4"
)

// ledger is what clients believe that they hold of one file. No two beliefs may
// ever conflict.
type ledger struct {
	mu   sync.Mutex
	held map[string]byterange.Set
}

func (l *ledger) put(who string, s byterange.Span) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, set := range l.held {
		if have, found := set.Conflict(s); found && other != who {
			return fmt.Errorf("%s is given %+v, %s has %+v", who, s, other, have)
		}
	}
	l.held[who] = l.held[who].Put(s)
	return nil
}

// take comes before the server is told, so that the process that is given the range next
// does not find it taken.
func (l *ledger) take(who string, s byterange.Span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[who] = l.held[who].Take(s)
}

// TestStorm has processes of three clients lock, wait, cancel, and unlock
// at random, and holds what they are given against a ledger.
func TestStorm(t *testing.T) {
	const (
		clients, processes, steps = 3, 4, 120
		size                      = 12
		patience                  = 40 * time.Second // more than the pauses of the sender
	)
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, Options{})
			fh := l.file("f", 0o666)
			book := &ledger{held: make(map[string]byterange.Set)}
			var wg sync.WaitGroup
			for c := range clients {
				g := l.guest(string(rune('a'+c)), fmt.Sprintf("192.0.2.%d", 11+c))
				waits := make([]chan byterange.Span, processes)
				var mu sync.Mutex
				waiting := make([]*byterange.Span, processes) // what each waits for
				for i := range waits {
					waits[i] = make(chan byterange.Span, 1)
				}
				g.answers(func(a *nlm4.Nlm4Testargs) (nlm4.Nlm4Stats, error) {
					span, _ := byterange.Of(a.Alock.LOffset, a.Alock.LLen, a.Exclusive)
					mu.Lock()
					defer mu.Unlock()
					w := waiting[a.Alock.Svid]
					if w == nil || *w != span {
						return nlm4.NLM4_DENIED, nil
					}
					waiting[a.Alock.Svid] = nil
					if err := book.put(fmt.Sprint(g.name, a.Alock.Svid), span); err != nil {
						t.Error(err)
					}
					waits[a.Alock.Svid] <- span
					return nlm4.NLM4_GRANTED, nil
				})
				for p := range int32(processes) {
					wg.Go(func() {
						rnd := rand.New(rand.NewPCG(seed, uint64(c*processes)+uint64(p)))
						who := fmt.Sprint(g.name, p)
						for range steps {
							first := rnd.Uint64N(size)
							w := want{fh: fh, svid: p, off: first, len: 1 + rnd.Uint64N(size-first), exclusive: rnd.IntN(2) == 0, block: rnd.IntN(3) > 0}
							span, _ := byterange.Of(w.off, w.len, w.exclusive)
							time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond)
							if rnd.IntN(2) == 0 { // more locks than are freed would end in silence
								book.take(who, byterange.Span{Last: byterange.Max})
								expect(t, "unlock", g.unlock(want{fh: fh, svid: p}), nlm4.NLM4_GRANTED)
								continue
							}
							if w.block {
								mu.Lock()
								waiting[p] = &span
								mu.Unlock()
							}
							if !w.exclusive {
								// What was held alone becomes shared while the call is under way.
								book.take(who, span)
							}
							switch st := g.lock(w); st {
							case nlm4.NLM4_GRANTED:
								mu.Lock()
								if waiting[p] = nil; len(waits[p]) > 0 {
									<-waits[p]
								}
								mu.Unlock()
								if err := book.put(who, span); err != nil {
									t.Error(err)
								}
							case nlm4.NLM4_BLOCKED:
								select {
								case <-waits[p]:
								case <-time.After(time.Duration(rnd.IntN(int(patience)))):
									mu.Lock()
									given := waiting[p] == nil
									waiting[p] = nil
									mu.Unlock()
									if given {
										<-waits[p]
									} else {
										g.cancel(w)
									}
								}
							case nlm4.NLM4_DENIED:
								mu.Lock()
								waiting[p] = nil
								mu.Unlock()
							default:
								t.Errorf("%s: %v", who, st)
							}
						}
						book.take(who, byterange.Span{Last: byterange.Max})
						g.unlock(want{fh: fh, svid: p})
					})
				}
			}
			wg.Wait()
			time.Sleep(2 * grantFor)
			synctest.Wait()
			if st := l.svc.Stats(); st.Locks != 0 || st.Queued != 0 || len(l.svc.files) != 0 || len(l.svc.grants) != 0 {
				t.Errorf("seed %d: %+v, %d files, %d grants", seed, st, len(l.svc.files), len(l.svc.grants))
			}
			if st := l.svc.Stats(); st.Wakened == 0 || st.Denied == 0 || st.Granted == 0 {
				t.Errorf("seed %d: no storm: %+v", seed, st)
			}
		})
	}
}
