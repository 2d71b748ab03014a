package walk

import (
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// Dir is a directory of the walk. It is valid from its Enter to its Leave. In that time its
// exported fields do not change, except Data.
type Dir struct {
	Parent *Dir // nil for the root
	Name   string
	Handle vfs.Handle
	Attr   vfs.Attr // as the listing of the parent had them
	// Data is the visitor's own. It should be set in Enter, or by Options.Descend. Later calls
	// for the directory and its descendants may read it.
	Data any

	// Chosen is what Options.Choose has returned for it; nil for the root.
	Chosen any

	w     *walker
	depth int
	// refs counts what delays Leave: the directory's own listing, its children that have
	// not been left, and holds.
	refs atomic.Int64

	// Used by the worker that visits it; several may, one after the other.
	visited    bool // its listing was begun
	entered    bool // Enter was called
	skipped    bool
	again      bool       // it has been listed, and is listed once more
	replaced   bool       // the listed directory was gone, and this one has its name now
	was        vfs.Handle // of the listed one, if replaced
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

// Elsewhere reports whether d is on another file system than the root, and is not listed therefore
// (Options.OneFileSystem).
func (d *Dir) Elsewhere() bool { return d.w != nil && d.w.elsewhere(&d.Attr) }

// Replaced reports whether the listed directory was gone at its turn, and d is another one
// that has its name now. was is the handle of the listed one.
func (d *Dir) Replaced() (was vfs.Handle, ok bool) { return d.was, d.replaced }

// Hold delays Leave of d until Release. It may be called within Enter, Entry or Fault of d,
// or by a goroutine that holds d already.
func (d *Dir) Hold() { d.refs.Add(1) }

// Release ends a Hold. The last Release calls Leave, for d and for ancestors that waited only
// for it.
func (d *Dir) Release() {
	if err := d.drop(); err != nil {
		d.w.abort(err)
	}
}

// Abort ends the walk with err, on behalf of work that runs under a Hold.
func (d *Dir) Abort(err error) { d.w.abort(err) }

// drop removes one reference, and leaves each directory that has none any more.
func (d *Dir) drop() error {
	for d != nil && d.refs.Add(-1) == 0 {
		if ok, err := d.w.leave(d); !ok {
			return err
		}
		d = d.Parent
	}
	return nil
}

// note keeps the first reason why d was not reported completely.
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

// abbreviated stands for the upper part of a path that is too long to show.
const abbreviated = "..."

// Path returns the path of name in d, or of d itself if name is empty, relative to the walk's
// root, which is ".". It is for messages: of a path longer than vfs.MaxPath only the end is
// returned, after "...".
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
