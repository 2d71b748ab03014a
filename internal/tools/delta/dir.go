package delta

import (
	"context"
	"errors"
	"hash/maphash"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxPasses bounds the passes over one directory. What takes more is ErrPasses: it grows
	// faster than it is listed, or its server gives it other names each time.
	maxPasses = 4096
	// maxRestarts bounds how often a listing of the right side begins again after a bad cookie.
	maxRestarts = 3
)

// ErrPasses says that the entries of a directory do not get done.
var ErrPasses = errors.New("the directory's entries cannot be matched within the memory for them")

// wanted is what a listing of the right side asks for.
const wanted vfs.Mask = vfs.MaskV3 | vfs.MaskHandle

// Dir is a directory of the left tree. It is valid as a walk.Dir is, whose Data is not the
// visitor's.
type Dir struct {
	*walk.Dir
	Parent *Dir // nil for the root
	Data   any  // the visitor's own; to be set in Enter

	there *vfs.Entry // what the right side has under its name, until it is entered
	right vfs.Handle // zero: there is nothing to join it with
	table *table     // of the right directory's entries

	passes  int
	entries int   // of the right directory, as of the last pass
	names   bool  // of the right directory only names are listed
	err     error // the join has ended early
}

// joined reports whether there is a right directory, and the join has not ended.
func (d *Dir) joined() bool { return !d.right.IsZero() && d.err == nil }

// end ends the join.
func (d *Dir) end(err error) {
	d.table.clear()
	if d.err == nil {
		d.err = err
	}
}

// hold holds the entries of the right directory that are in the range. A fault of the right side
// ends the join, and is no error.
func (j *joiner) hold(ctx context.Context, d *Dir) (ok bool, err error) {
	err = ErrPasses
	if d.passes++; d.passes <= maxPasses {
		err = j.list(ctx, d)
	}
	for n := 0; errors.Is(err, vfs.ErrBadCookie) && n < maxRestarts; n++ {
		err = j.list(ctx, d)
	}
	if cerr := ctx.Err(); cerr != nil {
		return false, cerr
	}
	if err != nil {
		d.end(err)
		return false, j.v.FaultRight(ctx, d, "", err)
	}
	return true, nil
}

// list lists the right directory from its beginning. A local file system looks at each object for
// its attributes: if it turns out that there are several passes, its names alone are listed.
func (j *joiner) list(ctx context.Context, d *Dir) error {
	want := wanted
	if d.names {
		want = 0
	}
	d.table.clear()
	d.entries = 0
	for e, err := range walk.List(ctx, j.right, d.right, want) {
		if err != nil {
			return err
		}
		d.entries++
		d.table.add(maphash.Bytes(j.seed, e.Name), e)
		if j.local && !d.names && !d.table.whole() {
			d.table.clear()
			d.names, d.table = true, newTable(j.budget)
			return j.list(ctx, d)
		}
	}
	d.table.sort()
	return nil
}
