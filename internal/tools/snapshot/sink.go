package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// maxEncoders bounds how many processors pack at once. Each has a window of packWindow.
const (
	maxEncoders = 4
	packWindow  = 1 << 20
)

// sink puts content into a store. It is safe for concurrent use.
type sink struct {
	store object.Store
	enc   *zstd.Encoder
	plain bool // content is not packed
	mend  *mender

	stored atomic.Int64 // bytes that the store did not have
	dup    atomic.Int64 // bytes that it had

	mu   sync.Mutex
	uses packUses
	sums []object.Sum         // of numbered objects; zero: it is not complete, or was dropped
	nums map[object.Sum]int64 // of packs that an earlier snapshot has
	open map[int64]struct{}   // those that are not complete
	err  error                // why the snapshot cannot be finished

	moved chan struct{} // closed when a number is complete, or the snapshot cannot be finished any more
}

func newSink(store object.Store) (*sink, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(packWindow),
		zstd.WithEncoderConcurrency(min(maxEncoders, runtime.GOMAXPROCS(0))), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	return &sink{store: store, enc: enc, mend: newMender(), uses: newPackUses(), nums: make(map[object.Sum]int64), open: make(map[int64]struct{}), moved: make(chan struct{})}, nil
}

// pack returns b as it is to be stored: by zstd if that saves a tenth. packed is its length then, else 0.
func (s *sink) pack(b []byte) (stored []byte, packed int64) {
	if s.plain {
		return b, 0
	}
	z := s.enc.EncodeAll(b, make([]byte, 0, len(b)/2))
	if len(z) > len(b)-len(b)/10 || len(z) >= len(b) {
		return b, 0
	}
	return z, int64(len(z))
}

// put stores b, which is not empty, as an object of its own.
func (s *sink) put(ctx context.Context, b []byte) (Piece, error) {
	stored, packed := s.pack(b)
	sum, err := s.raw(ctx, stored)
	return Piece{Size: int64(len(b)), Packed: packed, Sum: digest(sum)}, err
}

// raw stores b as it is.
func (s *sink) raw(ctx context.Context, b []byte) (object.Sum, error) {
	sum := object.SumOf(b)
	_, stored, err := object.PutContent(ctx, s.store, sum, int64(len(b)), bytes.NewReader(b))
	if err == nil && !stored {
		stored, err = s.rely(ctx, sum, b)
	} else if err == nil {
		s.renewed(sum)
	}
	switch {
	case err != nil:
	case stored:
		s.stored.Add(int64(len(b)))
	default:
		s.dup.Add(int64(len(b)))
	}
	return sum, err
}

// number takes the next number, for an object that is not complete yet.
func (s *sink) number() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numberLocked()
}

func (s *sink) numberLocked() (int64, error) {
	if len(s.sums) >= maxObjects {
		return 0, fmt.Errorf("%w: it has %d parts and packs", ErrTooLong, len(s.sums))
	}
	s.sums = append(s.sums, object.Sum{})
	number := int64(len(s.sums)) - 1
	s.open[number] = struct{}{}
	return number, nil
}

// complete stores the object of a number. After an error the snapshot cannot be finished.
func (s *sink) complete(ctx context.Context, number int64, stored []byte) (object.Sum, error) {
	sum, err := s.raw(ctx, stored)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failLocked(err)
		return sum, err
	}
	s.sums[number] = sum
	s.doneLocked(number)
	return sum, nil
}

func (s *sink) doneLocked(number int64) {
	delete(s.open, number)
	close(s.moved)
	s.moved = make(chan struct{})
}

// count is how many numbers there are.
func (s *sink) count() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.sums))
}

// sum is that of the object of a number.
func (s *sink) sum(number int64) object.Sum {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums[number]
}

// settle waits until the objects of all numbers below n are in the store.
func (s *sink) settle(ctx context.Context, n int64) error {
	for {
		s.mu.Lock()
		err, moved, open := s.err, s.moved, false
		for number := range s.open {
			open = open || number < n
		}
		s.mu.Unlock()
		if err != nil || !open {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drop forgets the object of a number that nothing refers to.
func (s *sink) drop(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[number] = object.Sum{}
}

// abandon is drop for a number that may not be complete.
func (s *sink) abandon(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[number] = object.Sum{}
	s.doneLocked(number)
}

// all returns the sums of all numbers that are complete.
func (s *sink) all() []object.Sum {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sums)
}

// table returns the sums of all numbers, or why there cannot be one.
func (s *sink) table() ([]object.Sum, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && len(s.open) > 0 {
		return nil, fmt.Errorf("%d parts or packs were not stored", len(s.open))
	}
	return s.sums, s.err
}

func (s *sink) failLocked(err error) {
	if s.err == nil {
		s.err = err
		close(s.moved)
		s.moved = make(chan struct{})
	}
}

// known returns the number of a pack of an earlier snapshot, and how long it is. When it is met first the store is asked for it.
func (s *sink) known(ctx context.Context, sum object.Sum) (number, length int64, err error) {
	s.mu.Lock()
	number, ok := s.nums[sum]
	if ok {
		length = s.uses.get(number).Len
	}
	s.mu.Unlock()
	if ok {
		return number, length, nil
	}
	key := object.ContentKey(sum)
	info, err := s.store.Stat(ctx, key)
	if err != nil {
		return 0, 0, lost(key, err)
	}
	if info.Size <= 0 || info.Size > maxPack {
		return 0, 0, damaged(key, fmt.Errorf("a pack of %d bytes", info.Size))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if number, ok := s.nums[sum]; ok {
		return number, info.Size, nil
	}
	if number, err = s.numberLocked(); err != nil {
		return 0, 0, err
	}
	s.sums[number] = sum
	s.nums[sum] = number
	s.uses.get(number).Len = info.Size
	s.doneLocked(number)
	return number, info.Size, nil
}

// packer fills packs with small pieces. It is safe for concurrent use.
type packer struct {
	sink *sink
	free chan []byte // packsOpen buffers, that no pack has; nil: not made yet

	mu     sync.Mutex
	number int64
	buf    []byte // nil: none is open
}

func newPacker(s *sink) *packer {
	p := &packer{sink: s, free: make(chan []byte, packsOpen)}
	for range packsOpen {
		p.free <- nil
	}
	return p
}

// add puts b, which is not empty and at most smallFile bytes long, into a pack. The call that fills a
// pack stores it. Others fill the next, and wait when that is full, too.
func (p *packer) add(ctx context.Context, b []byte) (Piece, error) {
	stored, packed := p.sink.pack(b)
	return p.append(ctx, stored, Piece{Size: int64(len(b)), Packed: packed, Sum: digest(object.SumOf(stored))})
}

// append puts what is stored of a piece, at most maxPack bytes, into a pack.
func (p *packer) append(ctx context.Context, stored []byte, piece Piece) (Piece, error) {
	p.mu.Lock()
	number, full, err := p.room(ctx, len(stored))
	if err == nil {
		at := p.number
		piece.Pack, piece.At = &at, int64(len(p.buf))
		p.buf = append(p.buf, stored...)
	}
	p.mu.Unlock()
	if full != nil {
		err = cmp.Or(err, p.store(ctx, number, full))
	}
	return piece, err
}

// room makes room for n bytes. It returns the pack that is full by now, if one is, which the caller stores. It waits,
// with p.mu, until there is a buffer: the call that has one stores it without p.mu.
func (p *packer) room(ctx context.Context, n int) (number int64, full []byte, err error) {
	if len(p.buf)+n > maxPack {
		number, full, p.buf = p.number, p.buf, nil
	}
	if p.buf != nil {
		return number, full, nil
	}
	var buf []byte
	select {
	case buf = <-p.free:
	case <-ctx.Done():
		return number, full, ctx.Err()
	}
	if p.number, err = p.sink.number(); err != nil {
		p.free <- buf
		return number, full, err
	}
	if p.buf = buf; buf == nil {
		p.buf = make([]byte, 0, n)
	}
	return number, full, nil
}

// store stores a pack, and lets others have its buffer: not after an error, when the store may still read it.
func (p *packer) store(ctx context.Context, number int64, full []byte) error {
	_, err := p.sink.complete(ctx, number, full)
	if err != nil {
		full = nil
	} else {
		p.sink.packed(number, int64(len(full)))
	}
	p.free <- full[:0]
	return err
}

// flush stores the pack that is open. What is added meanwhile begins another.
func (p *packer) flush(ctx context.Context) error {
	p.mu.Lock()
	number, full := p.number, p.buf
	p.buf = nil
	p.mu.Unlock()
	if full == nil {
		return nil
	}
	return p.store(ctx, number, full)
}
