package walk

import (
	"bytes"
	"container/list"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// aheadListings bounds the listings ahead that have not ended. Each takes one call in
	// flight and what its file system keeps for a listing: two pages over NFS. At the
	// bound none is begun until one ends.
	aheadListings = 32
	// aheadDirs bounds the directories whose listings were begun ahead, ended or not. At
	// the bound none is begun until the walk reaches one of them.
	aheadDirs = 512
	// aheadPerDir bounds the entries of one directory that are read ahead. At the bound
	// its listing pauses until the walk reaches it.
	aheadPerDir = 256
	// aheadEntries bounds the entries read ahead of all directories together, about 400
	// bytes each. At the bound each listing pauses after one more entry, and none is begun.
	aheadEntries = 16384
)

// ahead lists directories before the walk reaches them, nearest first, so that the round
// trips of many overlap. The bounds never hold up the walk: it lists a directory itself if
// that was not begun, and takes over the iteration of a paused one. If listing ahead failed,
// the walk lists again: the server may be back by then.
//
// Its fields are guarded by the walker's mu, except entries.
type ahead struct {
	w       *walker
	order   list.List // of *preview, in the order in which the walk will reach them
	dirs    int       // begun, and still in order
	running int       // begun, with iterations that have not ended
	entries atomic.Int64
	work    sync.WaitGroup
}

// preview is the beginning of a listing, and the iteration after it. It belongs to the
// goroutine of list until ready is closed, then to the worker that took or dropped it.
type preview struct {
	handle vfs.Handle
	depth  int
	chosen any // of the directory

	// Guarded by the walker's mu.
	place   *list.Element // nil: it was taken or dropped
	begun   bool
	done    bool // ready is closed
	dropped bool

	wanted atomic.Bool // the walk waits for ready
	ready  chan struct{}
	items  []item
	next   func() (*vfs.Entry, error, bool)
	stop   func()
	ended  bool // the iteration
	failed bool // it ended with an error
}

// item is an entry that was read ahead.
type item struct {
	vfs.Entry
	below *preview // if it is a directory; nil: none was planned
}

// newAhead returns nil for a file system that keeps memory for every listed directory
// (vfs.Forgetter): such a one is local, and has no round trips to save.
func newAhead(w *walker) *ahead {
	if w.forget != nil {
		return nil
	}
	return &ahead{w: w}
}

// plan queues d for listing ahead, after the element behind, or first if that is nil. It
// returns nil if d lies too deep, may be a loop, or is not listed at all. w.mu is held.
func (a *ahead) plan(d *Dir, behind *list.Element) *preview {
	if d.depth > a.w.o.MaxDepth || a.w.open.has(d) || a.w.elsewhere(&d.Attr) {
		return nil
	}
	p := &preview{handle: d.Handle, depth: d.depth, chosen: d.Chosen}
	if behind == nil {
		p.place = a.order.PushFront(p)
	} else {
		p.place = a.order.InsertAfter(p, behind)
	}
	return p
}

// more begins listings as far as the bounds allow. w.mu is held.
func (a *ahead) more() {
	if a.w.done || len(a.w.stack) >= maxQueued {
		return // most of so long a queue would be dropped again
	}
	for e := a.order.Front(); e != nil && a.room(); e = e.Next() {
		p := e.Value.(*preview)
		if p.begun {
			continue
		}
		p.begun, p.ready = true, make(chan struct{})
		a.running++
		a.dirs++
		a.work.Go(func() { a.list(p) })
	}
}

func (a *ahead) room() bool {
	return a.running < aheadListings && a.dirs < aheadDirs && a.entries.Load() < aheadEntries
}

// list reads entries of p until its listing ends, a bound is reached or the walk reaches it.
func (a *ahead) list(p *preview) {
	w := a.w
	p.next, p.stop = iter.Pull2(w.fs.ReadDir(w.ctx, p.handle, vfs.Pos{}, wanted, w.o.PageBytes))
	for full := false; !full && !p.wanted.Load(); {
		e, err, ok := p.next()
		if err != nil || !ok {
			p.ended, p.failed = true, err != nil
			p.stop()
			break
		}
		own := item{Entry: *e}
		own.Name = bytes.Clone(e.Name)
		p.items = append(p.items, own)
		full = a.entries.Add(1) >= aheadEntries || len(p.items) >= aheadPerDir
	}
	w.mu.Lock()
	if p.ended {
		a.running--
	}
	a.planBelow(p)
	p.done = true
	close(p.ready)
	dropped := p.dropped
	a.more()
	w.mu.Unlock()
	if dropped {
		a.release(p, 0)
	}
}

// planBelow plans the directories that p has found, unless the walk has reached p: then the
// walk does. w.mu is held.
func (a *ahead) planBelow(p *preview) {
	if p.place == nil {
		return
	}
	for i := range p.items {
		it := &p.items[i]
		if it.Attr.Type != vfs.TypeDir || !it.Attr.Has(needed) || it.Handle.IsZero() {
			continue
		}
		if chosen, ok := a.w.o.choose(p.chosen, &it.Entry); ok {
			it.below = a.plan(&Dir{Handle: it.Handle, Attr: it.Attr, Chosen: chosen, depth: p.depth + 1}, p.place)
		}
	}
}

// take leaves d its preview if that was begun, and removes it otherwise. The caller is the
// worker that visits d. w.mu is held.
func (a *ahead) take(d *Dir) {
	if d.preview != nil && !a.unplan(d.preview) {
		d.preview = nil
	}
}

// unplan removes p from the order and reports whether it was begun. w.mu is held.
func (a *ahead) unplan(p *preview) bool {
	if p.place != nil {
		a.order.Remove(p.place)
		p.place = nil
		if p.begun {
			a.dirs--
			p.wanted.Store(true)
		}
	}
	return p.begun
}

// drop gives up p, which the walk does not visit, and all previews below it.
func (a *ahead) drop(p *preview) {
	a.w.mu.Lock()
	begun := a.unplan(p)
	p.dropped = true
	done := p.done
	a.w.mu.Unlock()
	if begun && done { // otherwise list releases it, or there is nothing to release
		a.release(p, 0)
	}
}

// release frees what p holds, and drops what is below its items from number visited on.
func (a *ahead) release(p *preview, visited int) {
	for _, it := range p.items[visited:] {
		if it.below != nil {
			a.drop(it.below)
		}
	}
	a.entries.Add(int64(-len(p.items)))
	p.items = nil
	open := !p.ended
	if open {
		p.stop()
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if open {
		a.running--
	}
	a.more()
}

// close waits for the listings in flight, which the end of the walk has cancelled, and stops
// the paused ones.
func (a *ahead) close() {
	a.work.Wait()
	for e := a.order.Front(); e != nil; e = e.Next() {
		if p := e.Value.(*preview); p.begun && !p.ended {
			p.stop()
		}
	}
}

// entries iterates over d from the position of its listing. What was read ahead comes first.
func (w *walker) entries(d *Dir) iter.Seq2[*vfs.Entry, error] {
	p := d.preview
	if p == nil {
		want := wanted
		if d.again && w.forget != nil {
			want = 0 // it is local, and looks at each object: only at those that are visited
		}
		return w.fs.ReadDir(w.ctx, d.Handle, d.listing.pos, want, w.o.PageBytes)
	}
	d.preview = nil
	return func(yield func(*vfs.Entry, error) bool) {
		<-p.ready
		visited := 0
		defer func() { w.ahead.release(p, visited) }()
		for i := range p.items {
			it := &p.items[i]
			d.below = it.below
			visited = i + 1
			more := yield(&it.Entry, nil)
			if d.below != nil { // it was not queued
				w.ahead.drop(d.below)
				d.below = nil
			}
			if !more {
				return
			}
		}
		if p.failed {
			w.fs.ReadDir(w.ctx, d.Handle, d.listing.pos, wanted, w.o.PageBytes)(yield)
		}
		for !p.ended {
			e, err, ok := p.next()
			if !ok || !yield(e, err) {
				return
			}
		}
	}
}
