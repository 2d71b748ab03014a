package backup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// Latest is the newest complete snapshot of a name, for Options.Base; nil: there is none. Those that are damaged are
// told to t, and passed over.
func Latest(ctx context.Context, store object.Store, name string, t *progress.Tracker) (*snapshot.Snapshot, error) {
	return snapshot.Latest(ctx, store, name, func(text string, err error) {
		t.Report(progress.Event{Type: "note", Kind: "damaged", Path: text, Message: fmt.Sprintf("it cannot be used, and an earlier one is looked for: %v", err)})
	})
}

// Partial is what a backup of that name that was stopped has left, for Options.Partial; nil: nothing, or it is not newer
// than base. One that is damaged is told to t.
func Partial(ctx context.Context, store object.Store, name string, base *snapshot.Snapshot, t *progress.Tracker) (*snapshot.Snapshot, error) {
	s, err := snapshot.OpenPartial(ctx, store, name)
	switch {
	case errors.Is(err, snapshot.ErrDamaged):
		t.Report(progress.Event{Type: "note", Kind: "damaged", Message: fmt.Sprintf("what a backup of %s that was stopped has left cannot be used: %v", name, err)})
		return nil, nil
	case err != nil || s == nil:
		return nil, err
	}
	if ref := s.Ref(); base != nil && !ref.Time.After(base.Ref().Time) {
		return nil, nil
	}
	return s, nil
}

// past is an earlier snapshot.
type past struct {
	s       *snapshot.Snapshot
	fs      vfs.FS
	partial bool      // it is the one of a backup that was stopped
	since   time.Time // times that are later say nothing: a change behind them may have left no trace
	until   time.Time // mtimes that are later are not of that reading, if ctime is older
	change  Change    // which differences count

	looked, now *snapshot.Looked // what it was shown of each object, and what is shown now
}

// sees reports whether it was shown of objects of a type all that is shown now.
func (s *past) sees(t vfs.Type) bool { return s.looked.Covers(s.now, t) }

// earlier is what earlier snapshots have of the tree, as the right side of the join: of what several have, the first one's.
// What of them is damaged they do not have: that is told, and read.
//
// A handle of it is, for each of them, a byte that is 1 if it has the object, and its handle there.
type earlier struct {
	vfs.FS  // the last one; the join lists alone
	from    []*past
	damaged atomic.Uint64
	t       *progress.Tracker
	bad     func(err error) // is told what is damaged
}

// maxPasts bounds the snapshots of one earlier: so many handles fit one.
const maxPasts = 2

// earlier opens what is earlier; nil: there is nothing.
func (r *run) earlier(timeDelta time.Duration) *earlier {
	w := &earlier{t: r.o.Progress, bad: r.distrust}
	for _, s := range [maxPasts]*snapshot.Snapshot{r.o.Partial, r.o.Base} {
		if s != nil {
			w.from = append(w.from, r.past(s, timeDelta))
		}
	}
	if len(w.from) == 0 {
		return nil
	}
	w.FS = w.from[len(w.from)-1].fs
	return w
}

func (r *run) past(s *snapshot.Snapshot, timeDelta time.Duration) *past {
	ref := s.Ref()
	margin := max(timeDelta, ref.TimeDelta, minDelta)
	p := &past{
		s: s, fs: s.FS(), partial: ref.Partial, change: r.o.Change, looked: ref.Looked, now: r.sight.looked(),
		since: ref.Time.Add(-margin), until: ref.Time.Add(margin),
	}
	if now := &r.o.Meta; ref.Source != now.Source || ref.Host != now.Host && !strings.Contains(now.Source, "://") {
		p.change = All // sizes and times alone do not tell one tree from another
		r.note("source", "", fmt.Sprintf("the snapshot before, %s, is of %s on %s, and this one of %s on %s: what is not the very same object is read, whatever --change says",
			ref.Text(), ref.Source, ref.Host, r.o.Meta.Source, r.o.Meta.Host))
	}
	if ref.Partial {
		r.note("resumed", "", "it goes on from what the backup that was begun at "+ref.Time.Local().Format(time.DateTime)+" has done")
	}
	return p
}

// distrust has the writer not rely on what err says is damaged.
func (r *run) distrust(err error) {
	if r.w != nil {
		r.w.Distrust(err)
	}
}

// split returns the handle in each snapshot; zero: it does not have the object.
func (w *earlier) split(h *vfs.Handle) (all [maxPasts]vfs.Handle) {
	b := h.Bytes()
	for i := range w.from {
		if len(b) == 0 || b[0] == 0 {
			b = b[min(1, len(b)):]
			continue
		}
		n := min(1+snapshot.HandleLen, len(b))
		all[i], _ = vfs.MakeHandle(b[1:n]) // it is short enough: it was one
		b = b[n:]
	}
	return all
}

// joined is the handle of what the snapshots have.
func (w *earlier) joined(all *[maxPasts]vfs.Handle) vfs.Handle {
	b := make([]byte, 0, maxPasts*(1+snapshot.HandleLen))
	for i := range w.from {
		if all[i].IsZero() {
			b = append(b, 0)
			continue
		}
		b = append(append(b, 1), all[i].Bytes()...)
	}
	h, _ := vfs.MakeHandle(b) // it is short enough
	return h
}

// source finds which snapshot has the object of a handle, and its handle there.
func (w *earlier) source(h *vfs.Handle) (*past, vfs.Handle) {
	all := w.split(h)
	for i, p := range w.from {
		if !all[i].IsZero() {
			return p, all[i]
		}
	}
	return w.from[0], vfs.Handle{}
}

// top is the top directory.
func (w *earlier) top(ctx context.Context) (h vfs.Handle, e *vfs.Entry) {
	var all [maxPasts]vfs.Handle
	e = new(vfs.Entry)
	for i, p := range w.from {
		h, a, err := p.fs.Root(ctx)
		if err != nil {
			return vfs.Handle{}, nil // ctx has ended
		}
		if all[i] = h; i == 0 {
			e.Attr = a
		}
	}
	e.Handle = w.joined(&all)
	return e.Handle, e
}

// ReadDir implements vfs.FS. It lists from the beginning, with all attributes.
func (w *earlier) ReadDir(ctx context.Context, h vfs.Handle, _ vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	all := w.split(&h)
	var lists []iter.Seq2[*vfs.Entry, error]
	for i, p := range w.from {
		if !all[i].IsZero() {
			lists = append(lists, w.list(ctx, i, p, all[i]))
		}
	}
	if len(lists) == 2 {
		return both(lists[0], lists[1], w.join)
	}
	return func(yield func(*vfs.Entry, error) bool) {
		for _, list := range lists {
			for e, err := range list {
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// list lists what one snapshot has. Where that is damaged the list ends.
func (w *earlier) list(ctx context.Context, i int, p *past, h vfs.Handle) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for e, err := range p.fs.ReadDir(ctx, h, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			if errors.Is(err, snapshot.ErrDamaged) {
				w.tell(p, "", err)
				return
			}
			if err == nil {
				var all [maxPasts]vfs.Handle
				all[i] = e.Handle
				e.Handle = w.joined(&all)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// join is the entry of what two snapshots have under one name: the first one's, and if both are directories that of both.
func (w *earlier) join(a, b *vfs.Entry) *vfs.Entry {
	if a.Attr.Type == vfs.TypeDir && b.Attr.Type == vfs.TypeDir {
		all, more := w.split(&a.Handle), w.split(&b.Handle)
		for i := range all {
			if all[i].IsZero() {
				all[i] = more[i]
			}
		}
		a.Handle = w.joined(&all)
	}
	return a
}

// both lists two directories whose entries are in the order of their names.
func both(a, b iter.Seq2[*vfs.Entry, error], join func(a, b *vfs.Entry) *vfs.Entry) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		next, stop := iter.Pull2(b)
		defer stop()
		other, err, more := next()
		for e, aerr := range a {
			for more && aerr == nil && err == nil && string(other.Name) < string(e.Name) {
				if !yield(other, nil) {
					return
				}
				other, err, more = next()
			}
			if more && err != nil {
				yield(nil, err)
				return
			}
			if more && aerr == nil && string(other.Name) == string(e.Name) {
				e = join(e, other)
				other, err, more = next()
			}
			if !yield(e, aerr) {
				return
			}
		}
		for ; more; other, err, more = next() {
			if !yield(other, err) {
				return
			}
		}
	}
}

// tell counts and reports what is damaged.
func (w *earlier) tell(from *past, name string, err error) {
	w.damaged.Add(1)
	w.bad(err)
	ref := from.s.Ref()
	w.t.Report(progress.Event{Type: "note", Kind: "damaged", Path: name, Message: fmt.Sprintf("%s cannot be used here, and the source is read: %v", ref.Text(), err)})
}
