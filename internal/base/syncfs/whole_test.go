package syncfs

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// rig counts the syncs of both kinds.
type rig struct {
	*Whole
	mu            sync.Mutex
	wholes, alone int
	err           error         // of the next syncs of the whole
	takes         time.Duration // each of them
}

func newRig() *rig {
	r := &rig{}
	r.Whole = New(func(int) error {
		r.mu.Lock()
		r.wholes++
		err, takes := r.err, r.takes
		r.mu.Unlock()
		time.Sleep(takes)
		return err
	}, 0, time.Now)
	return r
}

func (r *rig) call(t *testing.T) {
	if err := r.Or(func() error { r.mu.Lock(); defer r.mu.Unlock(); r.alone++; return nil }); err != nil {
		t.Error(err)
	}
}

func (r *rig) counts() [2]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return [2]int{r.wholes, r.alone}
}

// TestWholeIsShared: calls that come while one sync runs share the next, which begins after they came.
func TestWholeIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.takes = time.Millisecond
		var all sync.WaitGroup
		all.Go(func() { r.call(t) })
		synctest.Wait()
		for range 20 {
			all.Go(func() { r.call(t) })
		}
		synctest.Wait()
		if c := r.counts(); c != [2]int{1, 0} {
			t.Errorf("while the first runs: %v", c)
		}
		all.Wait()
		if c := r.counts(); c != [2]int{2, 0} {
			t.Errorf("in the end: %v, and two syncs serve all", c)
		}
	})
}

// TestWholeFails: a failed sync does not say whose bytes are lost, and the next one would not tell of
// it again. So those that it served, those that wait for the next, and all later ones sync alone.
func TestWholeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.takes, r.err = time.Millisecond, errors.New("the disk")
		var all sync.WaitGroup
		all.Go(func() { r.call(t) })
		synctest.Wait()
		all.Go(func() { r.call(t) })
		synctest.Wait()
		r.mu.Lock()
		r.err = nil
		r.mu.Unlock()
		all.Wait()
		r.call(t)
		if c := r.counts(); c != [2]int{1, 3} {
			t.Errorf("%v, want one failed sync and three alone", c)
		}
	})
}

// TestWholeIsDear: after a sync that took long, objects are synced alone for rests times as long.
func TestWholeIsDear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.takes = longest + longestCall
		r.call(t)
		r.call(t)
		if c := r.counts(); c != [2]int{2, 0} {
			t.Errorf("as long as it may take: %v", c)
		}
		r.takes++
		r.call(t)
		time.Sleep(rests*r.takes - 1)
		r.call(t)
		if c := r.counts(); c != [2]int{3, 1} {
			t.Errorf("after one that took longer: %v", c)
		}
		time.Sleep(time.Nanosecond)
		r.call(t)
		if c := r.counts(); c != [2]int{4, 1} {
			t.Errorf("after the rest: %v", c)
		}
	})
}
