package remove

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// DefaultParallel is how many objects are removed at once if Options does not say.
	DefaultParallel = 64
	// MaxParallel is the most that Options can ask for.
	MaxParallel = 1024

	// maxTrees is how many directories that were named are removed at once, each with a walk of
	// its own. At the bound Remove waits for one of them.
	maxTrees = 4
	// maxPasses is how often a directory is listed that is not empty after all in it was removed:
	// others may put something into it. And some servers count positions from the beginning: what
	// is removed behind the listing moves the rest, of which each pass then meets half or more.
	// After the last one it is ErrFilled.
	maxPasses = 32
)

var (
	// ErrFilled says that others put things into a directory as fast as they are removed.
	ErrFilled = errors.New("others put something into it while it was removed")
	// ErrOtherFS says that a directory is of another file system than Target.Within.
	ErrOtherFS = errors.New("another file system is mounted there")
	// ErrReplaced says that another directory has the name of the one that was to be removed.
	ErrReplaced = errors.New("another directory took its name meanwhile")
)

// Options say how to remove. Its functions may be called concurrently, and must not be nil, but for Enter and Unlink.
type Options struct {
	Parallel int  // objects at once; 0: DefaultParallel
	Open     bool // a directory that can be listed gets its owner's other rights, if its mode lacks them

	// Ask says whether an object may be removed. It is called just before; of a directory, when
	// all below it is gone. What may not be removed stays, and so do the directories above it.
	// An error ends the work.
	Ask func(path string, t vfs.Type) (bool, error)
	// Enter, if not nil, is called for each directory before anything in it is removed. An error ends
	// the work.
	Enter func(path string, a *vfs.Attr) error
	// Unlink, if not nil, removes a name, of what is no directory, that a walk has met in d. The work in a
	// directory that is listed again goes on without it.
	Unlink func(ctx context.Context, d *walk.Dir, name string) error
	// Removed is called for each object that was removed.
	Removed func(path string, t vfs.Type)
	// Failed is called for each object that could not be removed, and for each directory that
	// could not be listed to its end. An error ends the work.
	Failed func(path string, err error) error
}

// Target is a name to be removed.
type Target struct {
	Dir  vfs.Handle // the directory that has it
	Name string
	// Handle and Attr are what has the name. It is looked up if the handle, or the type, or the
	// id of the file system where Within asks for it, is not known.
	Handle vfs.Handle
	Attr   vfs.Attr
	Path   string // for messages; those of what is below it begin with it

	// Within, if not nil, is the id of the file system (vfs.Attr.FSID) that is not left.
	Within *[2]uint64
	// Done, if not nil, is called once, when the name is gone or reported, or the work has ended.
	Done func()

	// Inside says that what lies in the directory Handle goes, and it stays. Dir and Name mean nothing then.
	Inside bool

	Choice
}

// Choice says what is removed of a tree. Its functions are called concurrently; nil ones choose all.
type Choice struct {
	// Choose is walk.Options.Choose. What it refuses stays, and so do the directories above it; LeftOut is told of it.
	Choose  func(in any, e *vfs.Entry) (below any, ok bool)
	LeftOut func(e *vfs.Entry)
	// Chosen is what Choose has returned for the target.
	Chosen any
	// Stays reports whether a directory is only gone through, by what Choose has returned for it.
	Stays func(chosen any) bool
}

// Remover removes names.
type Remover struct {
	fs     vfs.FS
	o      Options
	ctx    context.Context
	cancel context.CancelCauseFunc

	slots chan struct{} // holds one element for each object that is being removed
	trees chan struct{} // likewise for each directory that was named
	work  sync.WaitGroup
}

// New returns a Remover in f. The caller calls Wait.
func New(ctx context.Context, f vfs.FS, o Options) *Remover {
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	r := &Remover{fs: f, o: o, slots: make(chan struct{}, min(o.Parallel, MaxParallel)), trees: make(chan struct{}, maxTrees)}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r
}

// Remove begins to remove a name, in the background. It waits while others are at work, and
// returns the error with which the work has ended, if it has.
func (r *Remover) Remove(t Target) error {
	if t.Done == nil {
		t.Done = func() {}
	}
	begun, err := r.remove(&t)
	if !begun {
		t.Done()
	}
	return err
}

// remove reports whether work was begun, which calls t.Done.
func (r *Remover) remove(t *Target) (begun bool, err error) {
	tree := func() (bool, error) {
		err := r.begin(r.trees, func() error {
			defer t.Done()
			return r.tree(t)
		})
		return err == nil, err
	}
	if t.Inside {
		t.Attr.Type = vfs.TypeDir
		return tree()
	}
	if err := vfs.CheckName(t.Name); err != nil {
		return false, r.end(r.o.Failed(t.Path, err))
	}
	known := vfs.MaskType
	if t.Within != nil {
		known |= vfs.MaskFSID
	}
	if t.Handle.IsZero() || !t.Attr.Has(known) {
		found, err := r.find(t, known)
		if !found {
			return false, err
		}
	}
	if t.Attr.Type != vfs.TypeDir {
		err = r.begin(r.slots, func() error {
			defer t.Done()
			_, err := r.name(r.unlink(t.Dir, t.Name), t.Path, t.Attr.Type)
			return err
		})
		return err == nil, err
	}
	return tree()
}

// Wait waits for all that was begun, and returns the error with which the work has ended early.
func (r *Remover) Wait() error {
	r.work.Wait()
	err := context.Cause(r.ctx)
	r.cancel(nil)
	return err
}

// begin runs work in the background, when there is a free slot.
func (r *Remover) begin(slots chan struct{}, work func() error) error {
	select {
	case slots <- struct{}{}:
	case <-r.ctx.Done():
	}
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	r.work.Go(func() {
		defer func() { <-slots }()
		_ = r.end(work()) // Wait returns it
	})
	return nil
}

// end ends the work with err, if that is one, and returns it.
func (r *Remover) end(err error) error {
	if err != nil {
		r.cancel(err)
	}
	return err
}

// find looks a name up, with the attributes in known.
func (r *Remover) find(t *Target, known vfs.Mask) (found bool, err error) {
	t.Handle, t.Attr, _, err = r.fs.Lookup(r.ctx, t.Dir, t.Name)
	if err == nil && !t.Attr.Has(known) {
		t.Attr, err = r.fs.GetAttr(r.ctx, t.Handle, vfs.MaskV3)
	}
	if errors.Is(err, vfs.ErrNoEnt) {
		return false, nil
	}
	if err != nil {
		return false, r.failed(t.Path, fmt.Errorf("lookup: %w", err))
	}
	return true, nil
}

// failed reports a failure, unless the work has ended.
func (r *Remover) failed(path string, err error) error {
	if cause := context.Cause(r.ctx); cause != nil {
		return cause
	}
	return r.end(r.o.Failed(path, err))
}

// unlink returns what takes a name out of a directory, of what is no directory itself.
func (r *Remover) unlink(dir vfs.Handle, name string) func() error {
	return func() error {
		_, err := r.fs.Remove(r.ctx, dir, name, false)
		return err
	}
}

// name takes a name out of its directory, as unlink does. It reports whether nothing has the name any more.
func (r *Remover) name(unlink func() error, path string, t vfs.Type) (gone bool, err error) {
	if ok, err := r.o.Ask(path, t); !ok || err != nil {
		return false, err
	}
	err = unlink()
	switch {
	case err == nil:
		r.o.Removed(path, t)
	case !errors.Is(err, vfs.ErrNoEnt):
		return false, r.failed(path, err)
	}
	return true, nil
}

// tree removes a directory that was named, with all that lies below it.
func (r *Remover) tree(t *Target) error {
	if t.Within != nil && t.Attr.FSID != *t.Within {
		return r.failed(t.Path, ErrOtherFS)
	}
	v := &emptier{Remover: r, target: t}
	err := walk.Tree(r.ctx, r.fs, t.Handle, v.options(t.Chosen), v)
	if err != nil && context.Cause(r.ctx) == nil { // the root's attributes could not be had
		return r.rootFailed(t, err)
	}
	return err
}

// rootFailed reports that the directory that was named could not be walked, unless it is gone.
func (r *Remover) rootFailed(t *Target, err error) error {
	if errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrNoEnt) {
		_, _, _, lerr := r.fs.Lookup(r.ctx, t.Dir, t.Name)
		if !t.Inside && errors.Is(lerr, vfs.ErrNoEnt) {
			return nil
		}
	}
	return r.failed(t.Path, err)
}
