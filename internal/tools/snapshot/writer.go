package snapshot

import (
	"context"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Writer writes a snapshot to a store. It is safe for concurrent use, but for Finish. What it has written
// is not to be seen until Finish has returned.
type Writer struct {
	store object.Store
	sink  *sink
	packs *packer
	get   *getter
	cuts  chan []byte // buffers of files that are cut; nil: not made yet

	partSize, maxDirHeld int // tests have others than the constants

	mu         sync.Mutex
	open       map[*DirWriter]struct{}
	held       int // bytes of lines in open directories
	part       []byte
	partNumber int64
}

// NewWriter returns a writer that has written nothing.
func NewWriter(store object.Store) (*Writer, error) {
	s, err := newSink(store)
	if err != nil {
		return nil, err
	}
	g, err := newGetter(store)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		store: store, sink: s, packs: newPacker(s), get: g, cuts: make(chan []byte, cutsOpen), partSize: partSize, maxDirHeld: maxDirHeld,
		open: make(map[*DirWriter]struct{}),
	}
	for range cutsOpen {
		w.cuts <- nil
	}
	return w, nil
}

// Written says how many bytes the store got, and how many of what was written it had.
func (w *Writer) Written() (stored, had int64) { return w.sink.stored.Load(), w.sink.dup.Load() }

// Reuse makes the content and the extra of an entry of an earlier snapshot, in the same store, those of an
// entry of this one. Nothing is read or stored for them.
func (w *Writer) Reuse(ctx context.Context, s *Snapshot, e *Entry) error {
	if len(e.Content.Pieces) == 0 {
		return nil
	}
	pieces := make([]Piece, len(e.Content.Pieces))
	for i, p := range e.Content.Pieces {
		if p.Pack != nil {
			sum, err := s.numbered(ctx, *p.Pack)
			if err != nil {
				return err
			}
			number, err := w.sink.known(sum)
			if err != nil {
				return err
			}
			p.Pack = &number
		}
		pieces[i] = p
	}
	e.Content.Pieces = pieces
	return nil
}

// Meta is what a snapshot says of itself.
type Meta struct {
	Name      string            `json:"name"`             // what the snapshots of one tree have in common
	Time      time.Time         `json:"time"`             // when its making began
	Host      string            `json:"host,omitempty"`   // that made it
	Source    string            `json:"source,omitempty"` // the place, as it was typed
	Tags      []string          `json:"tags,omitempty"`
	Complete  bool              `json:"complete"`   // nothing of the tree has failed
	TimeDelta time.Duration     `json:"time_delta"` // resolution of the source's times, in nanoseconds
	Counts    map[string]uint64 `json:"counts,omitempty"`
}

// Finish makes the snapshot visible. root is the entry of its top directory, closed. The id of the snapshot
// is its time, or if another has that a little more. After an error there is no snapshot, but after
// object.ErrUnknownOutcome there may be.
func (w *Writer) Finish(ctx context.Context, m Meta, root *Entry) (id string, err error) {
	if err := w.packs.flush(ctx); err != nil {
		return "", err
	}
	w.mu.Lock()
	err = w.flushPart(ctx)
	w.mu.Unlock()
	if err != nil {
		return "", err
	}
	if err := w.far(ctx, &root.Extra); err != nil {
		return "", err
	}
	sums, err := w.sink.table()
	if err != nil {
		return "", err
	}
	r := rootObject{Magic: magic, Version: version, Meta: m, Objects: int64(len(sums))}
	for len(sums) > 0 {
		n := min(len(sums), tableObjects)
		b := make([]byte, 0, n*len(object.Sum{}))
		for i := range sums[:n] {
			b = append(b, sums[i][:]...)
		}
		p, err := w.sink.put(ctx, b)
		if err != nil {
			return "", err
		}
		r.Tables, sums = append(r.Tables, p), sums[n:]
	}
	if r.Root, err = root.encode(nil); err != nil {
		return "", err
	}
	return r.store(ctx, w.store)
}
