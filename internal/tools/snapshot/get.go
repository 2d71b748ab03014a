package snapshot

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// maxDecoders bounds how many processors unpack at once.
const maxDecoders = 4

// getter reads objects, and keeps what was read last. It is safe for concurrent use. Every byte that it
// returns was compared with the SHA-256 that the snapshot has of it.
type getter struct {
	store object.Store
	dec   *zstd.Decoder
	units *semaphore.Weighted

	mu    sync.Mutex
	have  map[where]*held
	used  list.List // of *held that are done; the last one was used last
	size  int64
	spare spare
}

// where is what was read: an object, or a range of one.
type where struct {
	key string
	at  int64
	n   int64
}

// held is what was read, or is being read.
type held struct {
	where where
	done  chan struct{} // closed when b and err are set
	b     []byte
	err   error
	place *list.Element // nil: it is not kept, or not yet
	lent  int           // to how many it is lent now
	given bool          // somebody keeps b
}

func newGetter(store object.Store) (*getter, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(maxDecoders), zstd.WithDecoderMaxMemory(maxPiece),
		zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return &getter{
		store: store, dec: dec, units: semaphore.NewWeighted(fetchUnits), have: make(map[where]*held),
	}, nil
}

// piece returns the bytes of a piece. key is that of the object that has it. The caller may keep them, and does not change them.
func (g *getter) piece(ctx context.Context, key string, p *Piece) ([]byte, error) {
	return g.shared(ctx, where{key, p.At, p.stored()}, func() ([]byte, error) { return g.fetch(ctx, key, p) })
}

// lend calls do with the bytes of a piece, which it neither keeps nor changes: their memory is used again.
func (g *getter) lend(ctx context.Context, key string, p *Piece, do func(b []byte)) error {
	h, err := g.borrow(ctx, where{key, p.At, p.stored()}, func() ([]byte, error) { return g.fetch(ctx, key, p) })
	if err != nil {
		return err
	}
	defer g.back(h)
	do(h.b)
	return nil
}

// part returns the lines of a part.
func (g *getter) part(ctx context.Context, sum object.Sum) ([]byte, error) {
	key := object.ContentKey(sum)
	return g.shared(ctx, where{key, 0, -1}, func() ([]byte, error) {
		release, err := g.enter(ctx, 2*maxPlain)
		if err != nil {
			return nil, err
		}
		defer release()
		packed, err := g.read(ctx, key, 0, -1, maxPlain, sum, nil)
		if err != nil {
			return nil, err
		}
		defer g.reuse(packed)
		return g.unpack(key, packed, maxPlain, nil)
	})
}

// pieces calls do for each piece of a file, also for those in lists.
func (g *getter) pieces(ctx context.Context, e *Entry, do func(*Piece) error) error {
	for i := range e.Content.Pieces {
		if err := do(&e.Content.Pieces[i]); err != nil {
			return err
		}
	}
	for i := range e.Content.Lists {
		l := &e.Content.Lists[i]
		key := object.ContentKey(object.Sum(l.Sum))
		b, err := g.piece(ctx, key, &l.Piece)
		if err != nil {
			return err
		}
		all, _, err := decodeList(b, l.Data)
		if err != nil {
			return damaged(key, err)
		}
		for j := range all {
			if err := do(&all[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// shared returns what get does, or what another call has got.
func (g *getter) shared(ctx context.Context, at where, get func() ([]byte, error)) ([]byte, error) {
	h, err := g.borrow(ctx, at, get)
	if err != nil {
		return nil, err
	}
	defer g.back(h)
	g.mu.Lock()
	defer g.mu.Unlock()
	h.given = true
	return h.b, nil
}

// borrow returns what get does, or what another call has got, lent once more.
func (g *getter) borrow(ctx context.Context, at where, get func() ([]byte, error)) (*held, error) {
	for {
		g.mu.Lock()
		h, ok := g.have[at]
		if !ok {
			h = &held{where: at, done: make(chan struct{}), lent: 1}
			g.have[at] = h
			g.mu.Unlock()
			h.b, h.err = get()
			g.keep(h)
			return h, h.err
		}
		h.lent++
		if h.place != nil {
			g.used.MoveToBack(h.place)
		}
		g.mu.Unlock()
		select {
		case <-h.done:
		case <-ctx.Done():
			g.back(h)
			return nil, ctx.Err()
		}
		if h.err == nil {
			return h, nil
		}
		g.back(h)
		// The context of the one that read may have ended: that is no answer for others.
		if !errors.Is(h.err, context.Canceled) && !errors.Is(h.err, context.DeadlineExceeded) {
			return nil, h.err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// keep keeps what was read, and lets go of what was not used for longest. Errors are not kept.
func (g *getter) keep(h *held) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer close(h.done)
	if h.err != nil {
		delete(g.have, h.where)
		return
	}
	h.place = g.used.PushBack(h)
	g.size += int64(len(h.b))
	for g.size > heldBytes && g.used.Len() > 1 {
		old := g.used.Remove(g.used.Front()).(*held)
		old.place = nil
		g.size -= int64(len(old.b))
		delete(g.have, old.where)
		if old.lent == 0 && !old.given {
			g.spare.put(old.b)
		}
	}
}

// back ends a loan.
func (g *getter) back(h *held) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.lent--
	if h.lent == 0 && h.place == nil && !h.given {
		g.spare.put(h.b)
		h.b = nil
	}
}

// fetch reads a piece.
func (g *getter) fetch(ctx context.Context, key string, p *Piece) ([]byte, error) {
	release, err := g.enter(ctx, p.stored()+p.Size)
	if err != nil {
		return nil, err
	}
	defer release()
	off, n := p.extent()
	b, err := g.read(ctx, key, off, n, p.stored(), object.Sum(p.Sum), nil)
	if err != nil || p.Packed == 0 {
		return b, err
	}
	return g.unpackPiece(key, b, p, nil)
}

// into reads a piece into b, which is as long as it.
func (g *getter) into(ctx context.Context, key string, p *Piece, b []byte) error {
	if g.holds(where{key, p.At, p.stored()}) {
		return g.lend(ctx, key, p, func(held []byte) { copy(b, held) })
	}
	off, n := p.extent()
	if p.Packed == 0 {
		_, err := g.read(ctx, key, off, n, p.Size, object.Sum(p.Sum), b)
		return err
	}
	release, err := g.enter(ctx, p.stored())
	if err != nil {
		return err
	}
	defer release()
	packed, err := g.read(ctx, key, off, n, p.stored(), object.Sum(p.Sum), nil)
	if err == nil {
		_, err = g.unpackPiece(key, packed, p, b)
	}
	return err
}

// holds reports whether something is in memory, or on its way there.
func (g *getter) holds(at where) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.have[at]
	return ok
}

// unpackPiece unpacks a piece, into b if that is as long as it. The memory of packed is used again.
func (g *getter) unpackPiece(key string, packed []byte, p *Piece, b []byte) ([]byte, error) {
	b, err := g.unpack(key, packed, p.Size, b)
	g.reuse(packed)
	if err == nil && int64(len(b)) != p.Size {
		return nil, damaged(key, fmt.Errorf("a piece of %d bytes is unpacked to %d", p.Size, len(b)))
	}
	return b, err
}

// stored returns what is stored of a piece, a range of a pack.
func (g *getter) stored(ctx context.Context, key string, p *Piece) ([]byte, error) {
	release, err := g.enter(ctx, p.stored())
	if err != nil {
		return nil, err
	}
	defer release()
	return g.read(ctx, key, p.At, p.stored(), p.stored(), object.Sum(p.Sum), nil)
}

// block is how much of a pack is read at once where much of it is to be copied, in bytes: a call to a bucket takes as long as so many bytes.
const block = 1 << 20

// near is stored for a piece of a pack of that length of which others are asked for as well: they share blocks of it.
func (g *getter) near(ctx context.Context, key string, length int64, p *Piece) ([]byte, error) {
	b := make([]byte, 0, p.stored())
	for end := p.At + p.stored(); p.At+int64(len(b)) < end; {
		at := p.At + int64(len(b))
		from := at / block * block
		n := min(block, length-from)
		if at >= from+n {
			return nil, damaged(key, fmt.Errorf("it has %d bytes, and %d are needed: %w", length, end, object.ErrRange))
		}
		part, err := g.shared(ctx, where{key, from, n}, func() ([]byte, error) {
			release, err := g.enter(ctx, n)
			if err != nil {
				return nil, err
			}
			defer release()
			return g.bytes(ctx, key, from, n, n, nil)
		})
		if err != nil {
			return nil, err
		}
		if int64(len(part)) < n {
			return nil, damaged(key, fmt.Errorf("it ends before byte %d: %w", from+n, object.ErrRange))
		}
		b = append(b, part[at-from:min(n, end-from)]...)
	}
	if object.SumOf(b) != object.Sum(p.Sum) {
		return nil, damaged(key, fmt.Errorf("%w than %v", ErrSum, object.Sum(p.Sum)))
	}
	return b, nil
}

// read reads n bytes of an object (-1: to its end), most at most, that have the sum. They are in b, if that is not nil: it has most bytes.
func (g *getter) read(ctx context.Context, key string, off, n, most int64, sum object.Sum, b []byte) ([]byte, error) {
	b, err := g.bytes(ctx, key, off, n, most, b)
	if err == nil && object.SumOf(b) != sum {
		err = damaged(key, fmt.Errorf("%w than %v", ErrSum, sum))
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// bytes is read, whatever the bytes are.
func (g *getter) bytes(ctx context.Context, key string, off, n, most int64, b []byte) ([]byte, error) {
	r, info, err := g.store.Get(ctx, key, off, n)
	if err != nil {
		return nil, lost(key, err)
	}
	defer r.Close() //nolint:errcheck // nothing is written
	left := info.Size - off
	if n < 0 && left > most || n >= 0 && left < n {
		return nil, damaged(key, fmt.Errorf("it has %d bytes at %d, not %d: %w", left, off, most, object.ErrRange))
	}
	size := min(left, most)
	if b == nil {
		b = g.room(size)
	}
	got, err := io.ReadFull(r, b[:size])
	if err == nil {
		var more [1]byte
		var n int
		if n, err = io.ReadFull(r, more[:]); n > 0 {
			return nil, damaged(key, errors.New("it is longer than its size"))
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return b[:got], nil
	}
	return nil, lost(key, err)
}

// lost is the error of a Get. What is missing or corrupted is damage; else the store has failed.
func lost(key string, err error) error {
	if errors.Is(err, object.ErrNotExist) || errors.Is(err, object.ErrCorrupted) || errors.Is(err, object.ErrRange) {
		return damaged(key, err)
	}
	return err
}

// unpack unpacks zstd, to most bytes at most: into b, if that is not nil, which has most bytes.
func (g *getter) unpack(key string, packed []byte, most int64, b []byte) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(packed); err != nil {
		return nil, damaged(key, err)
	}
	if h.HasFCS && h.FrameContentSize > uint64(most) {
		return nil, damaged(key, fmt.Errorf("it says that it is unpacked to %d bytes: %d are the most", h.FrameContentSize, most))
	}
	size := most
	if b == nil {
		if h.HasFCS {
			size = int64(h.FrameContentSize)
		}
		b = g.room(size)
	}
	plain, err := g.dec.DecodeAll(packed, b[:0:size])
	if err != nil {
		return nil, damaged(key, err)
	}
	b = b[:len(plain)]
	return b, nil
}

// enter waits until n more bytes may be in memory, being fetched. The caller calls release.
func (g *getter) enter(ctx context.Context, n int64) (release func(), err error) {
	units := min(n/fetchUnit+1, fetchUnits)
	if err := g.units.Acquire(ctx, units); err != nil {
		return nil, err
	}
	return func() { g.units.Release(units) }, nil
}
