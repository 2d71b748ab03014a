package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// partialPrefix is where checkpoints are, under the name of the snapshot: one a name.
	partialPrefix = "partial/"
	// checkpointEvery is how many bytes are stored from one checkpoint to the next, at least.
	checkpointEvery = 128 << 20
	// checkpointShare keeps checkpoints of very large directories rare: what they store themselves is at most about one part
	// of so many of all.
	checkpointShare = 8
)

// Due reports whether so much was stored since the last checkpoint that another one is due.
func (w *Writer) Due() bool { return w.sink.stored.Load()+w.sink.dup.Load() >= w.marked.Load() }

// Checkpoint puts what was added so far, also to directories that are under way, as the checkpoint of the name, in
// place of an earlier one: a snapshot that is incomplete. What is added meanwhile may be missing. It does nothing if the
// top directory is not known ([DirWriter.In]), or another call is at it.
func (w *Writer) Checkpoint(ctx context.Context, m Meta) error {
	top := w.top.Load()
	if top == nil || !w.marking.TryLock() {
		return nil
	}
	defer w.marking.Unlock()
	all := top.cut()
	if err := w.settle(ctx); err != nil {
		return err
	}
	before := w.sink.stored.Load() + w.sink.dup.Load()
	c := &checkpoint{w: w}
	defer c.drop()
	root, err := c.entry(ctx, all)
	if err == nil {
		err = c.flush(ctx)
	}
	if err != nil {
		return err
	}
	m.Complete = false
	r, err := w.root(ctx, m, root, w.sink.all())
	if err != nil {
		return err
	}
	b, err := r.encode()
	if err != nil {
		return err
	}
	now := w.sink.stored.Load() + w.sink.dup.Load()
	w.marked.Store(now + max(w.every, checkpointShare*(now-before)))
	return w.proved(ctx, func() (key string, err error) {
		key = partialPrefix + m.Name
		_, err = w.store.Put(ctx, key, bytes.NewReader(b), object.PutOptions{Size: int64(len(b))})
		return key, err
	})
}

// settle has all stored that has a number by now.
func (w *Writer) settle(ctx context.Context) error {
	n := w.sink.count()
	if err := w.packs.flush(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	err := w.flushPart(ctx)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	return w.sink.settle(ctx, n)
}

// cut is what was added to a directory by some moment.
type cut struct {
	head  head
	entry Entry
	lines []heldLine
	runs  []run
	files []*Entry
	below []*cut
	done  *Entry // it is closed, and the others are not set
}

// cut cuts d, and what is below it and under way. A directory is cut before those in it: so one that ends meanwhile is
// there all the same.
func (d *DirWriter) cut() *cut {
	d.mu.Lock()
	c := &cut{head: d.head, entry: d.entry, done: d.done}
	var below []*DirWriter
	if d.done == nil {
		c.lines, c.runs = slices.Clone(d.held), slices.Clone(d.runs)
		c.files = slices.Collect(maps.Values(d.files))
		below = slices.Collect(maps.Values(d.below))
	}
	d.mu.Unlock()
	for _, b := range below {
		c.below = append(c.below, b.cut())
	}
	return c
}

// checkpoint writes what was cut. Its parts are its own: the snapshot does not name them.
type checkpoint struct {
	w    *Writer
	made []int64
	part []byte // that small directories share
	at   int64  // its number
}

func (c *checkpoint) number() (int64, error) {
	n, err := c.w.sink.number()
	if err == nil {
		c.made = append(c.made, n)
	}
	return n, err
}

func (c *checkpoint) drop() {
	for _, n := range c.made {
		c.w.sink.abandon(n)
	}
}

// entry writes a directory, and returns its entry.
func (c *checkpoint) entry(ctx context.Context, d *cut) (*Entry, error) {
	if d.done != nil {
		return d.done, nil
	}
	for _, f := range d.files {
		e := *f
		if n := len(e.Content.Pieces); n > maxInline || n > 0 && len(e.Content.Lists) > 0 {
			if err := c.w.list(ctx, &e.Content); err != nil {
				return nil, err
			}
		}
		if err := c.line(ctx, d, &e); err != nil {
			return nil, err
		}
	}
	for _, b := range d.below {
		e, err := c.entry(ctx, b)
		if err == nil {
			err = c.line(ctx, d, e)
		}
		if err != nil {
			return nil, err
		}
	}
	e := d.entry
	var err error
	e.listing, err = c.list(ctx, d)
	return &e, err
}

// line adds a line to a directory.
func (c *checkpoint) line(ctx context.Context, d *cut, e *Entry) error {
	if err := c.w.far(ctx, &e.Extra); err != nil {
		return err
	}
	line, err := e.encode(nil)
	if err != nil {
		return err
	}
	d.lines = append(d.lines, heldLine{e.Name, line})
	return nil
}

// list writes the lines of a directory.
func (c *checkpoint) list(ctx context.Context, d *cut) (listing, error) {
	lines := inOrder(d.lines)
	d.lines = nil
	b, err := appendLine(nil, &d.head)
	if err != nil {
		return listing{}, err
	}
	size := len(b)
	for _, l := range lines {
		size += len(l.line)
	}
	if len(d.runs) == 0 && size <= c.w.partSize {
		for _, l := range lines {
			b = append(b, l.line...)
		}
		return c.share(ctx, b)
	}
	last, err := c.w.run(ctx, lines, c.number)
	if err != nil {
		return listing{}, err
	}
	spans, err := c.w.merge(ctx, append(d.runs, last), c.number, func(int64) {})
	if err != nil {
		return listing{}, err
	}
	return c.w.index(ctx, &d.head, spans)
}

// share puts lines into a part.
func (c *checkpoint) share(ctx context.Context, b []byte) (l listing, err error) {
	if len(c.part)+len(b) > c.w.partSize {
		if err := c.flush(ctx); err != nil {
			return l, err
		}
	}
	if c.part == nil {
		if c.at, err = c.number(); err != nil {
			return l, err
		}
	}
	l = listing{Part: c.at, Off: int64(len(c.part)), Len: int64(len(b))}
	c.part = append(c.part, b...)
	return l, nil
}

func (c *checkpoint) flush(ctx context.Context) error {
	if c.part == nil {
		return nil
	}
	part := c.part
	c.part = nil
	_, err := c.w.putPart(ctx, c.at, part)
	return err
}

// OpenPartial opens the checkpoint of a name; nil: there is none.
func OpenPartial(ctx context.Context, store object.Store, name string) (*Snapshot, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	s, err := Open(ctx, store, Ref{Meta: Meta{Name: name}, Partial: true})
	if errors.Is(err, object.ErrNotExist) { // Open reads the root alone
		return nil, nil
	}
	return s, err
}

// DropPartial removes the checkpoint of a name, if there is one. What it leads to is prune's.
func DropPartial(ctx context.Context, store object.Store, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := store.Delete(ctx, partialPrefix+name); err != nil {
		return fmt.Errorf("the checkpoint of %s: %w", name, err)
	}
	return nil
}
