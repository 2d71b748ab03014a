package iogate

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestRingGivesBack has entries of the ring given back before callers go on: one that
// comes again at once must find room for one more result.
func TestRingGivesBack(t *testing.T) {
	var head, tail uint32
	r := &ring{calls: make([]call, 4), cqes: make([]cqe, 4), cqMask: 3, cqHead: &head, cqTail: &tail}
	for i := range r.calls {
		r.calls[i].done = make(chan struct{}) // without room: results waits for the caller
		r.cqes[i] = cqe{user: uint64(i), res: int32(i)}
	}
	atomic.StoreUint32(&tail, 4)
	var all sync.WaitGroup
	all.Go(r.results)
	for i := range r.calls {
		<-r.calls[i].done
		if got := atomic.LoadUint32(&head); got <= uint32(i) {
			t.Errorf("caller %d goes on while %d entries are given back", i, got)
		}
	}
	all.Wait()
}
