package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// DirWriter takes the entries of one directory, in any order. It is safe for concurrent use.
type DirWriter struct {
	w    *Writer
	head head

	up    *DirWriter // nil: it is the top, or nobody has said
	entry Entry      // as it is until it is closed

	mu    sync.Mutex
	held  []heldLine
	size  int
	runs  []run
	below map[string]*DirWriter // directories of it that it has no line of yet
	files map[string]*Entry     // that are being stored, as far as they are
	done  *Entry                // of it, closed
}

// heldLine is an entry that is not in the store yet.
type heldLine struct {
	name string
	line []byte
}

// run is entries in the order of their names, in parts of their own.
type run []span

// Dir begins a directory. path is that of the directory in the snapshot: "" is the root. The caller ends it
// with [DirWriter.Close].
func (w *Writer) Dir(path string) *DirWriter {
	d := &DirWriter{w: w, head: head{Dir: text(path)}}
	if len(path) > vfs.MaxPath {
		d.head = head{Deep: true}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[d] = struct{}{}
	return d
}

// In says that d is a directory of up, nil: the top one, and what its entry is until it is closed. A checkpoint has what
// was added to a directory only if this was said.
func (d *DirWriter) In(up *DirWriter, e *Entry) {
	d.up, d.entry = up, *e
	if up == nil {
		d.w.top.Store(d)
		return
	}
	up.mu.Lock()
	defer up.mu.Unlock()
	if up.below == nil {
		up.below = make(map[string]*DirWriter)
	}
	up.below[e.Name] = d
}

// underway notes what was stored of a file of d.
func (d *DirWriter) underway(e *Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		d.files = make(map[string]*Entry)
	}
	d.files[e.Name] = e
}

// Add adds an entry. Of two with one name the directory has one.
func (d *DirWriter) Add(ctx context.Context, e *Entry) error {
	if err := vfs.CheckName(e.Name); err != nil {
		return fmt.Errorf("%q: %w", e.Name, err)
	}
	if err := d.w.far(ctx, &e.Extra); err != nil {
		return err
	}
	line, err := e.encode(nil)
	if err != nil {
		return err
	}
	if e.Attr.Type == vfs.TypeReg {
		d.w.sink.use(&e.Content, e.Attr.Nlink > 1)
	}
	d.mu.Lock()
	d.held = append(d.held, heldLine{e.Name, line})
	delete(d.below, e.Name)
	delete(d.files, e.Name)
	d.size += len(line)
	large := d.size >= d.w.maxDirHeld
	d.mu.Unlock()
	if d.w.hold(len(line)) || large {
		return d.w.spill(ctx, d, large)
	}
	return nil
}

// hold counts bytes that are held, and reports whether they are too many.
func (w *Writer) hold(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held += n
	return w.held > maxHeld
}

// spill makes a run of what d holds, or if that is not large of what the directory that holds most does.
func (w *Writer) spill(ctx context.Context, d *DirWriter, large bool) error {
	if !large {
		w.mu.Lock()
		most := 0
		for o := range w.open {
			if o.mu.TryLock() { // one that is busy is being spilled, or grows and comes here itself
				if o.size > most {
					d, most = o, o.size
				}
				o.mu.Unlock()
			}
		}
		w.mu.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.run(ctx)
}

// run stores what d holds as a run.
func (d *DirWriter) run(ctx context.Context) error {
	if len(d.held) == 0 {
		return nil
	}
	spans, err := d.w.run(ctx, d.sorted(), d.w.sink.number)
	if err != nil {
		return err
	}
	d.runs = append(d.runs, spans)
	d.release()
	return err
}

// run stores lines, which are in order, as a run.
func (w *Writer) run(ctx context.Context, lines []heldLine, number numberer) (run, error) {
	r := &runWriter{w: w, number: number}
	for _, l := range lines {
		if err := r.add(ctx, l); err != nil {
			return nil, err
		}
	}
	return r.end(ctx)
}

// sorted returns what d holds in order, and each name once.
func (d *DirWriter) sorted() []heldLine { return inOrder(d.held) }

// inOrder has lines in the order of their names; of those with one name the first one stays.
func inOrder(lines []heldLine) []heldLine {
	slices.SortStableFunc(lines, func(a, b heldLine) int { return cmp.Compare(a.name, b.name) })
	return slices.CompactFunc(lines, func(a, b heldLine) bool { return a.name == b.name })
}

func (d *DirWriter) release() {
	d.w.hold(-d.size)
	d.held, d.size = nil, 0
}

// Close ends the directory, all of whose own directories have been closed. It sets what the entry of the
// directory needs to lead to its entries.
func (d *DirWriter) Close(ctx context.Context, e *Entry) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() {
		if err == nil {
			own := *e
			d.done = &own
		}
	}()
	d.w.mu.Lock()
	delete(d.w.open, d)
	d.w.mu.Unlock()
	if len(d.runs) == 0 && d.size <= d.w.partSize {
		e.listing, err = d.small(ctx)
		return err
	}
	if err := d.run(ctx); err != nil {
		return err
	}
	spans, err := d.w.merge(ctx, d.runs, d.w.sink.number, d.w.sink.drop)
	if err != nil {
		return err
	}
	e.listing, err = d.w.index(ctx, &d.head, spans)
	return err
}

// index stores the index of a large directory.
func (w *Writer) index(ctx context.Context, h *head, spans run) (l listing, err error) {
	b, err := appendLine(nil, h)
	for i := range spans {
		if err != nil {
			return l, err
		}
		b, err = appendLine(b, &partLine{text(spans[i].first), spans[i].part})
	}
	if err == nil && len(b) > maxPlain {
		err = fmt.Errorf("%w: its index has %d bytes", ErrTooLong, len(b))
	}
	if err != nil {
		return l, err
	}
	p, err := w.sink.put(ctx, b)
	return listing{Index: &p}, err
}

// small puts the lines into a part that is shared.
func (d *DirWriter) small(ctx context.Context) (listing, error) {
	b, err := appendLine(nil, &d.head)
	if err != nil {
		return listing{}, err
	}
	for _, l := range d.sorted() {
		b = append(b, l.line...)
	}
	d.release()
	return d.w.share(ctx, b)
}

// share puts lines into the part that small directories share.
func (w *Writer) share(ctx context.Context, b []byte) (l listing, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.part)+len(b) > w.partSize {
		if err := w.flushPart(ctx); err != nil {
			return l, err
		}
	}
	if w.part == nil {
		if w.partNumber, err = w.sink.number(); err != nil {
			return l, err
		}
	}
	l = listing{Part: w.partNumber, Off: int64(len(w.part)), Len: int64(len(b))}
	w.part = append(w.part, b...)
	return l, nil
}

// flushPart stores the part that is shared. w.mu is held: directories that end meanwhile wait.
func (w *Writer) flushPart(ctx context.Context) error {
	if w.part == nil {
		return nil
	}
	part := w.part
	w.part = nil
	_, err := w.putPart(ctx, w.partNumber, part)
	return err
}

// putPart stores lines as a part, always by zstd.
func (w *Writer) putPart(ctx context.Context, number int64, lines []byte) (object.Sum, error) {
	return w.sink.complete(ctx, number, w.sink.enc.EncodeAll(lines, nil))
}

// numberer gives the number of a new part.
type numberer func() (int64, error)

// runWriter cuts lines in order into parts.
type runWriter struct {
	w      *Writer
	number numberer
	first  string
	part   []byte
	spans  run
}

func (r *runWriter) add(ctx context.Context, l heldLine) error {
	if len(r.part) > 0 && len(r.part)+len(l.line) > r.w.partSize {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	if len(r.part) == 0 {
		r.first = l.name
	}
	r.part = append(r.part, l.line...)
	return nil
}

func (r *runWriter) flush(ctx context.Context) error {
	if len(r.part) == 0 {
		return nil
	}
	number, err := r.number()
	var sum object.Sum
	if err == nil {
		sum, err = r.w.putPart(ctx, number, r.part)
	}
	r.spans = append(r.spans, span{r.first, number, sum})
	r.part = r.part[:0]
	return err
}

func (r *runWriter) end(ctx context.Context) (run, error) {
	err := r.flush(ctx)
	return r.spans, err
}

// merge makes one run of many. The parts of the others stay in the store, and are dropped: the snapshot does not name them.
func (w *Writer) merge(ctx context.Context, runs []run, number numberer, drop func(int64)) (run, error) {
	for len(runs) > 1 {
		n := min(len(runs), mergeRuns)
		one, err := w.mergeSome(ctx, runs[:n], number)
		if err != nil {
			return nil, err
		}
		for _, r := range runs[:n] {
			for _, s := range r {
				drop(s.part)
			}
		}
		runs = append(slices.Clone(runs[n:]), one)
	}
	return runs[0], nil
}

// mergeSome merges a few runs, each a part at a time.
func (w *Writer) mergeSome(ctx context.Context, runs []run, number numberer) (run, error) {
	cursors := make([]*cursor, 0, len(runs))
	for _, r := range runs {
		c := &cursor{w: w, rest: r}
		if ok, err := c.next(ctx); err != nil {
			return nil, err
		} else if ok {
			cursors = append(cursors, c)
		}
	}
	out := &runWriter{w: w, number: number}
	for last := ""; len(cursors) > 0; {
		c := slices.MinFunc(cursors, func(a, b *cursor) int { return cmp.Compare(a.at.name, b.at.name) })
		if c.at.name != last {
			last = c.at.name
			if err := out.add(ctx, c.at); err != nil {
				return nil, err
			}
		}
		switch ok, err := c.next(ctx); {
		case err != nil:
			return nil, err
		case !ok:
			cursors = slices.DeleteFunc(cursors, func(o *cursor) bool { return o == c })
		}
	}
	return out.end(ctx)
}

// cursor reads a run.
type cursor struct {
	w     *Writer
	rest  run
	lines []byte
	at    heldLine
}

// next goes on to the next line; false if there is none.
func (c *cursor) next(ctx context.Context) (bool, error) {
	for len(c.lines) == 0 {
		if len(c.rest) == 0 {
			return false, nil
		}
		b, err := c.w.get.part(ctx, c.rest[0].sum)
		if err != nil {
			return false, err
		}
		c.lines, c.rest = b, c.rest[1:]
	}
	end := bytes.IndexByte(c.lines, '\n') + 1
	name, err := lineName(c.lines[:end])
	c.at = heldLine{name, c.lines[:end]}
	c.lines = c.lines[end:]
	return true, err
}
