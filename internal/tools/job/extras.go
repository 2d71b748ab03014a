package job

import (
	"hash/maphash"
	"sync"
)

// maxExtras bounds the names that only the destination had when a directory was listed first, and that
// are remembered, at about 20 bytes each. Further ones stay, and the sync is not complete: the same
// command deletes them.
const maxExtras = 1 << 21

// extras are the names that only the destination had when the source was listed first, as hashes of
// their paths. What the source had then, and lost while the sync went on, is not deleted: it may be
// empty because something is mounted there no more. Methods may be called concurrently.
type extras struct {
	mu    sync.Mutex
	seed  maphash.Seed
	names map[uint64]struct{}
	over  uint64 // names beyond maxExtras
	later uint64 // names that were no extras at first
}

// add remembers a path.
func (x *extras) add(path string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.names == nil {
		x.seed, x.names = maphash.MakeSeed(), make(map[uint64]struct{})
	}
	if len(x.names) >= maxExtras {
		x.over++
		return
	}
	x.names[maphash.String(x.seed, path)] = struct{}{}
}

// has reports whether a path is remembered.
func (x *extras) has(path string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.names == nil {
		return false
	}
	_, ok := x.names[maphash.String(x.seed, path)]
	return ok
}

// late counts a name that is not remembered, and would be deleted if it were.
func (x *extras) late() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.later++
}

// left returns how many names stay that the source has lost meanwhile, and how many of the others
// there were no place for.
func (x *extras) left() (later, over uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.later - min(x.later, x.over), x.over
}
