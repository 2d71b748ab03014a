package snapshot

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// Writer writes a snapshot to a store. It is safe for concurrent use, but for Finish. What it has written
// is not to be seen until Finish has returned.
type Writer struct {
	store object.Store
	sink  *sink
	packs *packer
	get   *getter
	cuts  chan []byte // buffers of files that are cut; nil: not made yet

	prove func(ctx context.Context) error // before a root is put, and behind it
	least time.Time                       // that the id says

	partSize, maxDirHeld int // tests have others than the constants

	top     atomic.Pointer[DirWriter] // nil: nobody has said
	marking sync.Mutex                // held by the checkpoint that is being put
	marked  atomic.Int64              // what was stored when the last one was
	every   int64                     // how much is stored from one to the next

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
		prove: func(context.Context) error { return nil },
		store: store, sink: s, packs: newPacker(s), get: g, cuts: make(chan []byte, cutsOpen), partSize: partSize, maxDirHeld: maxDirHeld, every: checkpointEvery,
		open: make(map[*DirWriter]struct{}),
	}
	w.marked.Store(w.every)
	for range cutsOpen {
		w.cuts <- nil
	}
	return w, nil
}

// Plain has the content of files stored as it is, and not by zstd. It is called before all else.
func (w *Writer) Plain() { w.sink.plain = true }

// Prove has prove called before a root is put, which an error forbids, and behind it, when an error has it taken back: it may have taken
// a while to be put. It is set before all else.
func (w *Writer) Prove(prove func(ctx context.Context) error) { w.prove = prove }

// After has the id of the snapshot be later than all that name has by now, also where the clock was set back. It is called before the clock
// is asked for when the snapshot is begun: then ids are in the order in which snapshots were begun, whichever of them ends first.
func (w *Writer) After(ctx context.Context, name string) (err error) {
	w.least, err = afterAll(ctx, w.store, name)
	return err
}

// Written says how many bytes the store got, and how many of what was written it had.
func (w *Writer) Written() (stored, had int64) { return w.sink.stored.Load(), w.sink.dup.Load() }

// Reuse makes the content and the extra of an entry of an earlier snapshot, in the same store, those of an
// entry of this one. Nothing is read or stored for them; a pack that the store does not have any more, or not of that length, is a [DamagedError].
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
			number, length, err := w.sink.known(ctx, sum)
			if err != nil {
				return err
			}
			if p.At+p.stored() > length {
				return damaged(object.ContentKey(sum), fmt.Errorf("%w: it has %d bytes, and %d are needed", object.ErrRange, length, p.At+p.stored()))
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
	Complete  bool              `json:"complete"` // nothing of the tree has failed
	Looked    *Looked           `json:"looked,omitempty"`
	TimeDelta time.Duration     `json:"time_delta"` // resolution of the source's times, in nanoseconds
	Counts    map[string]uint64 `json:"counts,omitempty"`
}

// Looked says what beside its attributes could be seen of an object. What could not be seen may be there.
type Looked struct {
	ACLs       bool `json:"acls,omitempty"`       // access control lists
	Xattrs     bool `json:"xattrs,omitempty"`     // extended attributes
	Privileged bool `json:"privileged,omitempty"` // extended attributes that only root is shown, too
	Special    bool `json:"special,omitempty"`    // extended attributes of symbolic links and special files, too
}

// Covers reports whether all that other could see of an object of that type was seen, too. A nil Looked has seen nothing.
func (l *Looked) Covers(other *Looked, of vfs.Type) bool {
	if l == nil {
		l = new(Looked)
	}
	special := of != vfs.TypeReg && of != vfs.TypeDir
	return (l.ACLs || !other.ACLs) && (l.Xattrs || !other.Xattrs) && (l.Privileged || !other.Xattrs || !other.Privileged) &&
		(l.Special || !other.Special || !special)
}

// Finish makes the snapshot visible. root is the entry of its top directory, closed. The id of the snapshot
// is its time, or where [Writer.After] demands it a later one; and if another of the name has that, a few milliseconds more. After an error there is no snapshot, but after
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
	sums, err := w.sink.table()
	if err != nil {
		return "", err
	}
	uses := w.sink.used(sums)
	r, err := w.root(ctx, m, root, sums)
	if err != nil {
		return "", err
	}
	r.Packs = uses
	err = w.proved(ctx, func() (key string, err error) {
		id, err = r.store(ctx, w.store, w.least)
		return rootKey(m.Name, id), err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// withdrawing bounds how long a root that was not proved is tried to be taken back. Then it stays, and that is ErrUnproved.
const withdrawing = 30 * time.Second

// proved calls put, which puts a root, if what that leads to is proved to be there before and behind.
func (w *Writer) proved(ctx context.Context, put func() (key string, err error)) error {
	if err := w.prove(ctx); err != nil {
		return err
	}
	key, err := put()
	if err != nil {
		return err
	}
	if err = w.prove(ctx); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawing)
	defer cancel()
	if derr := w.store.Delete(ctx, key); derr != nil {
		return fmt.Errorf("%s was put, and could not be taken back: %w: %w: %w", key, ErrUnproved, err, derr)
	}
	return err
}

// root is a root object that leads to root. sums are those of all numbers, which are stored.
func (w *Writer) root(ctx context.Context, m Meta, root *Entry, sums []object.Sum) (*rootObject, error) {
	if err := w.far(ctx, &root.Extra); err != nil {
		return nil, err
	}
	r := &rootObject{Magic: magic, Version: version, Meta: m, Objects: int64(len(sums))}
	for len(sums) > 0 {
		n := min(len(sums), tableObjects)
		b := make([]byte, 0, n*len(object.Sum{}))
		for i := range sums[:n] {
			b = append(b, sums[i][:]...)
		}
		p, err := w.sink.put(ctx, b)
		if err != nil {
			return nil, err
		}
		r.Tables, sums = append(r.Tables, p), sums[n:]
	}
	line, err := root.encode(nil)
	r.Root = line
	return r, err
}
