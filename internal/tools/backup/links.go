package backup

import (
	"context"
	"reflect"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// An object has one content, whatever its names. Where ctime and file id count, each name can be judged by itself. Where they do
// not, a name may have become another object's that looks the same, and then two names of one object would be taken with
// different contents. So there all names of an object are met before it is judged: it is taken only if all of them can be,
// and had one content.

// named is an object under one of its names, whose directory is held.
type named struct {
	d *delta.Dir
	h vfs.Handle
	e *snapshot.Entry
	v verdict
}

// waiting are the objects of which not all names were met. run.mu guards it.
type waiting struct {
	objects map[linked][]*named
	names   int
	full    bool // there were more than maxLinked names: further objects are read
}

// weak reports whether an object has to be judged with all of its names.
func (r *run) weak(a *vfs.Attr) bool {
	return r.was != nil && a.Type == vfs.TypeReg && a.Nlink > 1 && r.o.Change&(Ctime|FileID) != Ctime|FileID
}

// await keeps a name until all of its object's were met.
func (r *run) await(ctx context.Context, n *named) error {
	key := linked{n.e.Attr.FSID, n.e.Attr.FileID}
	n.d.Hold()
	r.mu.Lock()
	w := &r.waiting
	if w.objects == nil {
		w.objects = make(map[linked][]*named)
	}
	all, known := w.objects[key]
	w.full = w.full || w.names >= maxLinked
	if !known && w.full {
		r.mu.Unlock()
		return r.settle(ctx, []*named{n}, false)
	}
	all = append(all, n)
	w.objects[key] = all
	w.names++
	whole := len(all) >= int(n.e.Attr.Nlink)
	if whole {
		delete(w.objects, key)
		w.names -= len(all)
	}
	r.mu.Unlock()
	if !whole {
		return nil
	}
	return r.settle(ctx, all, true)
}

// listed is called when the last name was met.
func (r *run) listed(ctx context.Context) {
	r.mu.Lock()
	objects := r.waiting.objects
	r.waiting.objects = nil
	r.mu.Unlock()
	for _, all := range objects {
		if err := r.settle(ctx, all, true); err != nil {
			all[0].d.Abort(err)
		}
	}
	r.o.Progress.CloseTotals()
}

// settle judges an object by those of its names that there are, and lets go of their directories.
func (r *run) settle(ctx context.Context, all []*named, mayTake bool) (err error) {
	for _, n := range all {
		mayTake = mayTake && n.v.why == "" && reflect.DeepEqual(n.v.old.Content, all[0].v.old.Content)
	}
	for _, n := range all {
		if !mayTake && n.v.why == "" {
			n.v.why = "links"
		}
		if err == nil {
			err = r.do(ctx, n.d, n.h, n.e, &n.v)
		}
		n.d.Release()
	}
	return err
}
