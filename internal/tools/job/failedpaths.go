package job

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// maxFailedPaths bounds the items that are known to have failed, at about 40 bytes each. Further ones are
// counted and reported again if a later look finds them again, and they fail again.
const maxFailedPaths = 1 << 16

// failedPaths are the items that have failed, as hashes of their paths and reasons. Methods may be called concurrently.
type failedPaths struct {
	again atomic.Bool // items are met that have been met before

	mu     sync.Mutex
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

// first reports whether it is told for the first time that path has failed for this reason. Until items are
// met again it is: a listing may have a name twice.
func (f *failedPaths) first(path, why string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hashes == nil {
		f.seed, f.hashes = maphash.MakeSeed(), make(map[uint64]struct{})
	}
	h := maphash.Comparable(f.seed, [2]string{path, why})
	if _, ok := f.hashes[h]; ok {
		return !f.again.Load()
	}
	if len(f.hashes) < maxFailedPaths {
		f.hashes[h] = struct{}{}
	}
	return true
}
