package backup

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// A listing of a directory that changes meanwhile may lack what was there all the time. So when it has ended the directory is
// looked at: if its mtime or ctime is another, it is listed once more, and what was not met before is taken. What had gone by
// then stays as it was read.

const (
	// maxMet bounds the names of one directory that are remembered until its listing has ended, and maxMets those of all: 8
	// bytes each. One with more is not listed again, and counts as changed.
	maxMet  = 1 << 16
	maxMets = 1 << 20
)

// mets is what the names of all directories that are being listed take.
type mets struct {
	mu   sync.Mutex
	n    int
	seed maphash.Seed
}

// met are the names of a directory that were met, as hashes. Calls for one directory come one after the other.
type met struct {
	hashes []uint64
	full   bool // not all are here
	again  bool // it is listed again: what was met is sorted
	before int  // how many were met before that
}

// add notes a name, and reports whether it is new.
func (m *met) add(all *mets, name string) bool {
	hash := maphash.String(all.seed, name)
	if m.again {
		_, known := slices.BinarySearch(m.hashes[:m.before], hash)
		return !known
	}
	if m.full {
		return true
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(m.hashes) >= maxMet || all.n >= maxMets {
		all.n -= len(m.hashes)
		m.hashes, m.full = nil, true
		return true
	}
	all.n++
	m.hashes = append(m.hashes, hash)
	return true
}

// end lets go of the names.
func (m *met) end(all *mets) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.n -= len(m.hashes)
	m.hashes, m.full = nil, true
}

// lookAgain looks at a directory whose listing has ended, and reports whether it is to be listed again.
func (r *run) lookAgain(ctx context.Context, d *delta.Dir) (bool, error) {
	f := folderOf(d)
	now, err := r.o.FS.GetAttr(ctx, d.Handle, vfs.MaskV3)
	if cerr := ctx.Err(); cerr != nil {
		return false, cerr
	}
	if err != nil { // it was removed since
		f.met.end(&r.mets)
		return false, nil
	}
	same := now.Mtime.Equal(f.e.Attr.Mtime) && now.Ctime.Equal(f.e.Attr.Ctime)
	if f.e.Attr = now; same {
		f.met.end(&r.mets)
		return false, nil
	}
	if !f.met.again && !f.met.full {
		f.met.again, f.met.before = true, len(f.met.hashes)
		slices.Sort(f.met.hashes)
		return true, nil
	}
	f.met.again = false
	f.met.end(&r.mets)
	r.dirsChanged.Add(1)
	r.note("dir_changed", d.Path(""), "it changed each time that it was listed: what came into it last may be missing")
	return false, nil
}

// leftOut tells the filter of what it leaves out, once.
func (r *run) leftOut(d *walk.Dir, e *vfs.Entry) {
	if r.metBefore(d, string(e.Name)) {
		return
	}
	r.o.Filter.LeftOut(e)
}

func (r *run) metBefore(d *walk.Dir, name string) bool {
	in, ok := d.Data.(*delta.Dir)
	return ok && !folderOf(in).met.add(&r.mets, name)
}
