package delta

import (
	"context"
	"errors"
	"hash/maphash"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// Visitor is called with what a join finds. As of a walk.Visitor, calls for one directory are made
// one after the other, but for faults of directories below. Calls for several directories are
// concurrent. An error that a method returns ends the walk.
//
// An entry of the right side is the visitor's to keep. It has what the listing gave: it may lack
// its handle, and attributes. One of the left side is valid during the call.
type Visitor interface {
	// Enter is called when the listing of d, on the left, has begun. there is what the right
	// listing has under its name: nil if nothing, and for the root. Enter returns the right
	// directory with which d is to be joined; with the zero Handle all in d is on the left
	// only. It may return walk.ErrSkipDir.
	Enter(ctx context.Context, d *Dir, there *vfs.Entry) (right vfs.Handle, err error)

	// Entry is called for each object in d, on the left, that is no directory. there is what
	// the right listing has under its name, of any type, or nil.
	Entry(ctx context.Context, d *Dir, e, there *vfs.Entry) error

	// Extra is called for each entry of the right directory that the left one does not have:
	// see the package about what was made sure of before.
	Extra(ctx context.Context, d *Dir, e *vfs.Entry) error

	// Fault is called for an item of the left side that could not be visited: name in d, or the
	// rest of d if name is empty. After that, of d itself neither entries nor extras follow.
	Fault(ctx context.Context, d *Dir, name string, err error) error

	// FaultRight is called for an entry of the right side with a bad name, or, with an empty
	// one, if the right directory could not be listed. After that, of d itself neither entries
	// nor extras follow.
	FaultRight(ctx context.Context, d *Dir, name string, err error) error

	// Leave is called when everything below d has been visited and left, and every Hold on d
	// released. incomplete is nil if every entry of d, on both sides, was reported, otherwise
	// the first reason why not.
	Leave(ctx context.Context, d *Dir, incomplete error) error
}

// Options say how to join. The zero Options are usable.
type Options struct {
	// Walk is for the walk through the left tree. Its Descend, Wants and Again are the join's own.
	Walk walk.Options
	// Descend, if not nil, says whether the directory child of the left tree, whose Parent has been
	// entered, is listed. The others are neither entered nor left, and what has their names on the
	// right side is no extra.
	Descend func(child *Dir) bool
	// Again, if not nil, is asked when d was joined with all that it has, or was listed with nothing to join it with. If it
	// returns true, d is listed and joined once more from the beginning: the visitor meets its entries again. An error
	// ends the walk.
	Again func(ctx context.Context, d *Dir) (bool, error)
	// NoExtras says that Extra is not called, and nothing is looked up for it.
	NoExtras bool
}

// Tree walks the tree under root, of left, as walk.Tree does, and joins each directory of it with
// one of right: the one that v.Enter returns.
func Tree(ctx context.Context, left vfs.FS, root vfs.Handle, right vfs.FS, o Options, v Visitor) error {
	return tree(ctx, left, root, right, o, v, &budget{left: heldBytes})
}

func tree(ctx context.Context, left vfs.FS, root vfs.Handle, right vfs.FS, o Options, v Visitor, b *budget) error {
	_, local := vfs.As[vfs.Forgetter](right)
	j := &joiner{left: left, right: right, v: v, o: o, local: local, seed: maphash.MakeSeed(), budget: b}
	o.Walk.Descend, o.Walk.Wants, o.Walk.Again = j.descend, j.wants, j.again
	return walk.Tree(ctx, left, root, o.Walk, j)
}

// joiner is one join. It is the visitor of the walk through the left tree.
type joiner struct {
	left, right vfs.FS
	v           Visitor
	o           Options
	local       bool // the right side
	seed        maphash.Seed
	budget      *budget
}

// descend pairs a directory of the left side that was met.
func (j *joiner) descend(child *walk.Dir) bool {
	up := child.Parent.Data.(*Dir)
	d := &Dir{Dir: child, Parent: up, there: up.table.take(j.hash(child.Name), child.Name), table: newTable(j.budget)}
	child.Data = d
	return j.o.Descend == nil || j.o.Descend(d)
}

// hash is the hash of a name, which says in which pass it is joined.
func (j *joiner) hash(name string) uint64 { return maphash.String(j.seed, name) }

// wants reports whether a name is joined in the present pass of a directory.
func (j *joiner) wants(wd *walk.Dir, name []byte) bool {
	d := wd.Data.(*Dir)
	return d.err == nil && d.table.wants(maphash.Bytes(j.seed, name))
}

// Enter implements walk.Visitor.
func (j *joiner) Enter(ctx context.Context, wd *walk.Dir) error {
	d, ok := wd.Data.(*Dir)
	if !ok {
		d = &Dir{Dir: wd, table: newTable(j.budget)} // the root
		wd.Data = d
	}
	there := d.there
	d.there = nil
	right, err := j.v.Enter(ctx, d, there)
	if err != nil || right.IsZero() || wd.Elsewhere() {
		return err
	}
	d.right = right
	_, err = j.hold(ctx, d)
	return err
}

// Entry implements walk.Visitor.
func (j *joiner) Entry(ctx context.Context, wd *walk.Dir, e *vfs.Entry) error {
	d := wd.Data.(*Dir)
	name := string(e.Name)
	return j.v.Entry(ctx, d, e, d.table.take(j.hash(name), name))
}

// Fault implements walk.Visitor.
func (j *joiner) Fault(ctx context.Context, wd *walk.Dir, name string, err error) error {
	d := wd.Data.(*Dir)
	switch {
	case errors.Is(err, walk.ErrName):
	case name == "":
		d.end(err)
	case !errors.Is(err, walk.ErrVanished):
		d.table.take(j.hash(name), name) // the left side has the name, and cannot show what it is
	}
	return j.v.Fault(ctx, d, name, err)
}

// Leave implements walk.Visitor.
func (j *joiner) Leave(ctx context.Context, wd *walk.Dir, incomplete error) error {
	d := wd.Data.(*Dir)
	if incomplete == nil {
		incomplete = d.err
	}
	return j.v.Leave(ctx, d, incomplete)
}

// again is called when all that the left side has in the present range was met.
func (j *joiner) again(ctx context.Context, wd *walk.Dir) (bool, error) {
	d := wd.Data.(*Dir)
	if d.joined() {
		if err := j.extras(ctx, d); err != nil {
			return false, err
		}
	}
	if d.joined() && d.table.next(d.entries) {
		return j.hold(ctx, d)
	}
	if d.err != nil || j.o.Again == nil {
		return false, nil
	}
	if again, err := j.o.Again(ctx, d); err != nil || !again {
		return false, err
	}
	d.table.clear()
	d.table, d.passes = newTable(j.budget), 0
	if !d.joined() {
		return true, nil
	}
	return j.hold(ctx, d)
}
