package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// What is stored is often in the store already, and is not sent then. That relies on bytes which somebody stored long ago. Where they
// are known to be others, or are read back (Writer.ReadBack), and turn out to be, what is in memory takes their place: it has the sum
// that names the object. It is put over the old object, and so there is no moment in which the object is missing.

// maxBad bounds the objects that are known to be damaged. With more, all that the store has already is read back.
const maxBad = 1 << 16

// mender knows which objects of a store are not to be relied on. It is safe for concurrent use.
type mender struct {
	back *Verifier // reads back what the store had; nil: only what is known to be damaged is

	mended atomic.Int64

	mu   sync.Mutex
	bad  map[object.Sum]struct{}
	full bool // there were more than maxBad

	one chan struct{} // held while an object is being mended: several calls may have the same bytes
}

func newMender() *mender {
	return &mender{bad: make(map[object.Sum]struct{}), one: make(chan struct{}, 1)}
}

// note notes that an object is damaged.
func (m *mender) note(sum object.Sum) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.bad) >= maxBad {
		m.full = true
		return
	}
	m.bad[sum] = struct{}{}
}

// known reports whether an object may not be relied on.
func (m *mender) known(sum object.Sum) (bad, doubt bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, bad = m.bad[sum]
	return bad, m.full
}

// renewed notes that an object was stored anew.
func (m *mender) renewed(sum object.Sum) {
	m.mu.Lock()
	delete(m.bad, sum)
	m.mu.Unlock()
	if m.back != nil {
		m.back.forget(sum)
	}
}

// renewed notes that the store has an object since just now. If it was damaged, or missing, it is mended.
func (s *sink) renewed(sum object.Sum) {
	if bad, _ := s.mend.known(sum); bad {
		s.mend.mended.Add(1)
		s.mend.renewed(sum)
	}
}

// rely is called before anything relies on the object of b, which the store had. It reads the object back if there is doubt, and
// replaces one that is damaged: stored says that it did.
func (s *sink) rely(ctx context.Context, sum object.Sum, b []byte) (stored bool, err error) {
	bad, doubt := s.mend.known(sum)
	if !bad {
		switch {
		case s.mend.back != nil:
			err = s.mend.back.object(ctx, sum)
		case doubt:
			_, err = readBack(ctx, s.store, sum, nil)
		}
		if !errors.Is(err, ErrDamaged) {
			return false, err
		}
	}
	return s.replace(ctx, sum, b)
}

// replace replaces the object of b, if a second look at it finds it damaged as well: the first one may have been the fault of a cable.
func (s *sink) replace(ctx context.Context, sum object.Sum, b []byte) (stored bool, err error) {
	select {
	case s.mend.one <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-s.mend.one }()
	_, err = readBack(ctx, s.store, sum, nil)
	if !errors.Is(err, ErrDamaged) {
		if err == nil {
			s.mend.renewed(sum) // another call was faster, or it was never damaged
		}
		return false, err
	}
	key := object.ContentKey(sum)
	if _, err := s.store.Put(ctx, key, bytes.NewReader(b), object.PutOptions{Size: int64(len(b)), Sum: &sum}); err != nil {
		return false, fmt.Errorf("replace a damaged object: %w", err)
	}
	if _, err := readBack(ctx, s.store, sum, nil); err != nil {
		return false, fmt.Errorf("a damaged object was replaced, and what was stored then cannot be read back: %w", err)
	}
	s.mend.mended.Add(1)
	s.mend.renewed(sum)
	return true, nil
}

// ReadBack has v read back what the store has already before the writer relies on it. It is called before all else.
func (w *Writer) ReadBack(v *Verifier) { w.sink.mend.back = v }

// Distrust has the writer not rely on the object that err is about, if err is a [DamagedError]: if the same bytes are stored again, they
// take its place.
func (w *Writer) Distrust(err error) {
	if d, ok := errors.AsType[*DamagedError](err); ok {
		if sum, ok := object.ContentSum(d.Key); ok {
			w.sink.mend.note(sum)
		}
	}
}

// Mended is how many objects of the store were damaged or missing, and were stored again.
func (w *Writer) Mended() int64 { return w.sink.mend.mended.Load() }

// Whole reads back all that the content and the extra of an entry are in, which [Writer.Reuse] has taken. What is missing, or has other
// bytes, is a [DamagedError]. Of a pack, all is read: one that is damaged in any range is not to be in a new snapshot.
func (w *Writer) Whole(ctx context.Context, e *Entry) error {
	for _, p := range []*Piece{e.Content.Sparse, e.Extra.Far} {
		if p == nil {
			continue
		}
		if err := w.sink.mend.back.object(ctx, object.Sum(p.Sum)); err != nil {
			return err
		}
	}
	return w.get.pieces(ctx, e, func(p *Piece) error {
		if p.Pack == nil {
			return w.sink.mend.back.object(ctx, object.Sum(p.Sum))
		}
		return w.sink.mend.back.pack(ctx, w.sink.sum(*p.Pack))
	})
}
