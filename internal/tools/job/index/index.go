package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
)

// Key is what an entry is found by: a hash, of which any part is as good as random. Keys that
// begin alike are neighbours.
type Key [16]byte

// Log is a log of entries, which only grows while an index is open.
type Log interface {
	// Keys calls yield with number and key of each good entry in [from, to), or up to the log's
	// end, in order. It returns the first error of yield.
	Keys(from, to uint64, yield func(uint64, Key) error) error
	// Mark is a checksum of entry n; an error says that the log has no such entry.
	Mark(n uint64) (uint32, error)
	// Sync makes the entries stable.
	Sync() error
}

// bounds are an index's own; those of tests are smaller.
type bounds struct {
	inMemory int // maxTail
	perChunk int // maxChunk
	atOnce   int // maxMerged
	sparse   int // maxSparse
	sync     func(*os.File) error
	// before, if not nil, is called before each change of the directory, which fails with its error.
	before func() error
}

const (
	// maxTail is how many entries behind the last segment stay in memory. If there are more,
	// they become a segment when the index is opened.
	maxTail = 1 << 16
	// maxChunk is how many entries are sorted in memory at once, in 12 MiB. More become another
	// segment.
	maxChunk = 1 << 19
	// maxMerged is how many segments are merged at once. Of more, some are merged first.
	maxMerged = 64
	// maxRebuilt is how often an index is completed after a damage. A further one is an error:
	// the disk does not keep what is written.
	maxRebuilt = 4
)

// Index is the index of a log. Its methods may be called concurrently, but for Close.
type Index struct {
	ctx      context.Context // of the run that has it open
	dir      *os.Root
	identity [32]byte
	log      Log
	bounds

	mu       sync.RWMutex // for writing: the index is completed
	round    int          // how often it was
	entries  uint64       // of the log: up to where it was good on opening
	segments []*segment   // oldest first
	fresh    int          // segments from here on are chunks
	tail     []item       // behind the segments
	missing  uint64
	err      error // why entries are missing
	cache    cache
}

// Open opens the index of log in dir, and completes it. Only one program may have it open. When
// ctx ends, so does the work on segments, now and later, with its error; what is complete stays.
// Another error is one of reading the log.
func Open(ctx context.Context, dir *os.Root, identity [32]byte, log Log) (*Index, error) {
	return open(ctx, dir, identity, log, bounds{inMemory: maxTail, perChunk: maxChunk, atOnce: maxMerged, sparse: maxSparse, sync: (*os.File).Sync})
}

func open(ctx context.Context, dir *os.Root, identity [32]byte, log Log, b bounds) (*Index, error) {
	x := &Index{ctx: ctx, dir: dir, identity: identity, log: log, bounds: b, entries: math.MaxUint64}
	if err := x.mend(x.complete()); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// Entries is up to which entry the log was good when the index was opened.
func (x *Index) Entries() uint64 { return x.entries }

// Missing says how many of the entries cannot be found, and why.
func (x *Index) Missing() (uint64, error) { return x.missing, x.err }

// Close closes the index. No call may be under way.
func (x *Index) Close() error {
	if x == nil {
		return nil
	}
	var err error
	for _, s := range x.segments {
		err = errors.Join(err, s.file.Close())
	}
	x.segments = nil
	return err
}

// Find calls is with the numbers of entries that have the key, from the last, until it returns
// true or an error. It reports whether is has returned true.
func (x *Index) Find(key Key, is func(n uint64) (bool, error)) (bool, error) {
	for {
		x.mu.RLock()
		round := x.round
		found, err := x.find(key, is)
		x.mu.RUnlock()
		damaged := (*damage)(nil)
		if !errors.As(err, &damaged) {
			return found, err
		}
		if err := x.heal(round, damaged.segment); err != nil {
			return false, err
		}
	}
}

func (x *Index) find(key Key, is func(n uint64) (bool, error)) (bool, error) {
	at, _ := slices.BinarySearchFunc(x.tail, toItem(key, math.MaxUint64), item.compare)
	for at--; at >= 0 && x.tail[at].sameKey(toItem(key, 0)); at-- {
		if ok, err := is(x.tail[at].entry); ok || err != nil {
			return ok, err
		}
	}
	for _, s := range slices.Backward(x.segments) {
		n, ok, err := s.find(&x.cache, key)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		if ok, err := is(n); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// heal completes the index after a damage that a look-up has met in the given round.
func (x *Index) heal(round int, s *segment) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.round != round {
		return nil // another look-up has met it, too
	}
	return x.mend(&damage{segment: s})
}

// mend removes the segments that err says are damaged, and completes the index, until there are
// no more of them.
func (x *Index) mend(err error) error {
	for damaged := (*damage)(nil); errors.As(err, &damaged) && x.round < maxRebuilt; {
		x.round++
		_ = x.Close() // nothing was written to these files
		x.cache.clear()
		if rerr := x.dir.Remove(damaged.segment.name()); rerr != nil {
			return fmt.Errorf("remove a damaged index: %w", rerr)
		}
		err = x.complete()
	}
	return err
}

// complete opens the segments that are there, and adds those that are missing.
func (x *Index) complete() error {
	if err := x.openSegments(); err != nil {
		return err
	}
	x.fresh, x.tail, x.missing, x.err = len(x.segments), nil, 0, nil
	var chunk []item
	end := x.covered()
	err := x.log.Keys(end, x.entries, func(n uint64, key Key) (err error) {
		if n%blockKeys == 0 && x.ctx.Err() != nil {
			return x.ctx.Err()
		}
		if x.err != nil {
			x.missing++
		} else {
			chunk, err = x.take(chunk, toItem(key, n))
		}
		end = n + 1
		return err
	})
	if err != nil {
		return err
	}
	x.entries = end
	if x.err == nil && (len(chunk) > x.inMemory || len(chunk) > 0 && len(x.segments) > x.fresh) {
		if chunk, err = x.spill(chunk); err != nil {
			return err
		}
	}
	if len(chunk) > 0 {
		slices.SortFunc(chunk, item.compare)
		x.tail = chunk
	}
	return x.compact()
}

// take adds an item to the chunk, which becomes a segment when it is full.
func (x *Index) take(chunk []item, one item) ([]item, error) {
	if len(chunk) == x.inMemory && cap(chunk) < x.perChunk {
		chunk = append(make([]item, 0, x.perChunk), chunk...)
	}
	if chunk = append(chunk, one); len(chunk) < x.perChunk {
		return chunk, nil
	}
	return x.spill(chunk)
}

// spill makes the chunk a segment, and returns an empty one. If that fails, which x.err then says,
// it returns the chunk.
func (x *Index) spill(chunk []item) ([]item, error) {
	if x.err = x.log.Sync(); x.err != nil {
		return chunk, nil
	}
	from, to := x.covered(), chunk[len(chunk)-1].entry+1
	slices.SortFunc(chunk, item.compare)
	x.err = x.write(from, to, len(chunk), func(w *writer) error {
		for _, one := range chunk {
			if err := w.add(one); err != nil {
				return err
			}
		}
		return nil
	})
	if x.err != nil {
		return chunk, x.ctx.Err()
	}
	if len(x.segments)-x.fresh < x.atOnce {
		return chunk[:0], nil
	}
	x.fresh++
	return chunk[:0], x.merge(x.fresh - 1)
}
