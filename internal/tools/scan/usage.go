package scan

import (
	"context"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// Sum is what lies at a name: the object itself, and of a directory all below it.
type Sum struct {
	Entries uint64 // objects
	Size    uint64 // bytes of the contents of files, and of the targets of symbolic links
	Used    uint64 // bytes on the disk, of directories as well
	Short   bool   // something could not be looked at: it is at least so much
}

// SumOf is the sum of a single object.
func SumOf(a *vfs.Attr) Sum {
	s := Sum{Entries: 1, Used: a.Used}
	if a.Type == vfs.TypeReg || a.Type == vfs.TypeSymlink {
		s.Size = a.Size
	}
	return s
}

// Usage is a walk.Visitor that sums up directories from the bottom. It keeps a sum for each directory that the
// walk keeps.
type Usage struct {
	Links *Links // further names of an object do not count; nil: all count

	// Dir is called for each directory after all that lies below it.
	Dir func(d *walk.Dir, s Sum) error
	// File is called for other objects; nil: never. A further name that does not count is left out.
	File func(d *walk.Dir, name []byte, s Sum) error
	// Failed is called for what could not be looked at: name in d, or the rest of d if it is empty. It
	// reports whether something is missing in the sum.
	Failed func(d *walk.Dir, name string, err error) (missing bool)
}

// sums is the Sum of a directory that is not complete. Other directories add to it.
type sums struct {
	entries, size, used atomic.Uint64
	short               atomic.Bool
}

func (t *sums) add(s Sum) {
	t.entries.Add(s.Entries)
	t.size.Add(s.Size)
	t.used.Add(s.Used)
	if s.Short {
		t.short.Store(true)
	}
}

func (t *sums) sum() Sum {
	return Sum{t.entries.Load(), t.size.Load(), t.used.Load(), t.short.Load()}
}

// Enter begins with the directory itself.
func (u *Usage) Enter(_ context.Context, d *walk.Dir) error {
	t := new(sums)
	t.add(SumOf(&d.Attr))
	d.Data = t
	return nil
}

// Entry adds an object to its directory.
func (u *Usage) Entry(_ context.Context, d *walk.Dir, e *vfs.Entry) error {
	if u.Links.Again(&e.Attr) {
		return nil
	}
	s := SumOf(&e.Attr)
	d.Data.(*sums).add(s)
	if u.File == nil {
		return nil
	}
	return u.File(d, e.Name, s)
}

// Fault passes on what has failed.
func (u *Usage) Fault(_ context.Context, d *walk.Dir, name string, err error) error {
	if u.Failed(d, name, err) {
		d.Data.(*sums).short.Store(true)
	}
	return nil
}

// Leave adds the directory to the one above.
func (u *Usage) Leave(_ context.Context, d *walk.Dir, _ error) error {
	s := d.Data.(*sums).sum()
	if d.Parent != nil {
		d.Parent.Data.(*sums).add(s)
	}
	return u.Dir(d, s)
}
