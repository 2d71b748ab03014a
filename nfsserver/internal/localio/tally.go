package localio

import "sync"

// tally counts something in all, and by user. Its lock is taken last, after any others.
type tally struct {
	most, mostOfUser int // bounds

	mu  sync.Mutex
	all int            // guarded by mu
	of  map[uint32]int // guarded by mu; by uid, of users who have any
}

func newTally(most, mostOfUser int) *tally {
	return &tally{most: most, mostOfUser: mostOfUser, of: make(map[uint32]int)}
}

// take counts one more for a user. At a bound it is false, and counts nothing.
func (t *tally) take(uid uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all >= t.most || t.of[uid] >= t.mostOfUser {
		return false
	}
	t.all++
	t.of[uid]++
	return true
}

// give takes back n that were counted.
func (t *tally) give(uid uint32, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all -= n
	if t.of[uid] -= n; t.of[uid] == 0 {
		delete(t.of, uid)
	}
}

func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}
