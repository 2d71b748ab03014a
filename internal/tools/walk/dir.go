package walk

import (
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// Dir is a directory on the way. It lives from its Enter to its Leave; its
// fields other than Data do not change.
type Dir struct {
	Parent *Dir // nil for the root
	Name   string
	Handle vfs.Handle
	Attr   vfs.Attr // as the listing of the parent had them
	// Data is the visitor's own. It is best set in Enter, and may be read from
	// there on in every call that concerns the directory or its descendants.
	Data any

	w     *walker
	depth int
	// refs counts what keeps the directory from being left: its own listing,
	// children that have not been left, and holds.
	refs atomic.Int64

	// By the worker that visits it; several may one after the other.
	visited    bool // its listing was begun
	entered    bool // the visitor knows it
	skipped    bool
	replaced   bool       // it is what has the name now, after what was listed had gone
	was        vfs.Handle // of what was listed, if replaced
	opened     bool
	listing    listing
	preview    *preview // what was listed ahead of its visit
	below      *preview // of the entry that is being visited
	incomplete error

	// Guarded by w.mu.
	queued    int  // children that wait in w.stack
	suspended bool // the listing waits for queued to become zero
}

// Depth is 0 for the root of the walk.
func (d *Dir) Depth() int { return d.depth }

// Replaced reports whether d was not there any more when its turn came, and what has its
// name now took its place. was is what had been listed.
func (d *Dir) Replaced() (was vfs.Handle, ok bool) { return d.was, d.replaced }

// Hold keeps d from being left until Release. It is called within Enter, Entry
// or Fault of d, or by a goroutine that holds d already.
func (d *Dir) Hold() { d.refs.Add(1) }

// Release gives a Hold back. The last one calls Leave, for d and for those of
// its ancestors that had waited for it.
func (d *Dir) Release() {
	if err := d.drop(); err != nil {
		d.w.abort(err)
	}
}

// Abort ends the walk with err, for work that goes on behind a Hold.
func (d *Dir) Abort(err error) { d.w.abort(err) }

// drop takes one reference away, and leaves the directories that had but one.
func (d *Dir) drop() error {
	for d != nil && d.refs.Add(-1) == 0 {
		if ok, err := d.w.leave(d); !ok {
			return err
		}
		d = d.Parent
	}
	return nil
}

// note keeps the first reason for which not all of d has been reported.
func (d *Dir) note(err error) {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.incomplete == nil {
		d.incomplete = err
	}
}

func (d *Dir) id() (objectID, bool) {
	return objectID{d.Attr.FSID, d.Attr.FileID}, d.Attr.Has(vfs.MaskFSID | vfs.MaskFileID)
}

// isOwnAncestor reports whether one of d's ancestors is the same object.
func (d *Dir) isOwnAncestor() bool {
	id, ok := d.id()
	for p := d.Parent; p != nil; p = p.Parent {
		if p.Handle == d.Handle {
			return true
		}
		if pid, pok := p.id(); ok && pok && id == pid {
			return true
		}
	}
	return false
}

// abbreviated stands for the upper part of a path that is too long to be shown.
const abbreviated = "..."

// Path returns the path of name in d, or of d itself if name is empty, from the
// walk's root, which is ".". It is for people: of a path that is longer than
// vfs.MaxPath the lower part is returned, behind "...".
func (d *Dir) Path(name string) string {
	buf := make([]byte, vfs.MaxPath)
	at := len(buf)
	put := func(s string) bool {
		sep := 0
		if at < len(buf) {
			sep = 1
		}
		if len(s)+sep+len(abbreviated)+1 > at {
			return false
		}
		if sep == 1 {
			at--
			buf[at] = '/'
		}
		at -= len(s)
		copy(buf[at:], s)
		return true
	}
	fits := name == "" || put(name)
	for ; fits && d.Parent != nil; d = d.Parent {
		fits = put(d.Name)
	}
	if !fits {
		at -= len(abbreviated) + 1
		copy(buf[at:], abbreviated+"/")
	}
	if at == len(buf) {
		return "."
	}
	return string(buf[at:])
}
