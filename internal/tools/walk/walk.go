package walk

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// DefaultParallel is how many directories are listed at once if Options does not say.
	DefaultParallel = 8
	// MaxParallel is the most that Options can ask for.
	MaxParallel = 256

	// DefaultMaxDepth is how deep a walk goes if Options does not say. A deeper directory
	// is ErrTooDeep and is not entered.
	DefaultMaxDepth = 16384

	// queuedPerDir bounds the subdirectories of one directory that wait to be
	// entered. At the bound the directory's listing is suspended.
	queuedPerDir = 256

	// maxQueued is how many directories may wait in the whole walk. At the bound each
	// directory queues one child at a time, so the queue grows by at most one per level
	// and worker.
	maxQueued = 16384
)

var (
	// ErrLoop says that a directory lies inside itself.
	ErrLoop = errors.New("the directory is one of its own ancestors")
	// ErrTooDeep says that a directory lies deeper than the walk goes.
	ErrTooDeep = errors.New("directories are nested too deeply")
	// ErrStuck says that a listing does not advance.
	ErrStuck = errors.New("the directory's listing goes in circles")
	// ErrRestart says that a listing broke off with a bad cookie and could not
	// be taken up again without visiting entries twice.
	ErrRestart = errors.New("the directory's listing broke off and cannot be resumed")

	// ErrName says that a listing has a name that cannot be one, such as an empty one.
	ErrName = errors.New("name in a listing")

	// ErrVanished says that a listed object is gone: its handle is stale or missing, and
	// nothing has its name.
	ErrVanished = errors.New("it vanished before its turn came")

	// ErrSkipDir is what Enter returns to leave a directory out: it is not listed, and
	// Leave is not called for it.
	ErrSkipDir = errors.New("skip this directory")
)

// Options says how to walk. The zero Options are usable.
type Options struct {
	Parallel  int    // directories listed at once; 0: DefaultParallel
	MaxDepth  int    // levels below the root; 0: DefaultMaxDepth
	PageBytes uint32 // size of a page of a listing; 0: the peer's choice

	// Descend, if not nil, says whether to list the directory child, whose Parent has been
	// entered. It may set child's Data. The others are neither entered nor left.
	Descend func(child *Dir) bool

	// OneFileSystem leaves directories unlisted that are on another file system than the root. They
	// are entered and left as if nothing were in them (Dir.Elsewhere), and of each Elsewhere is told
	// before, if it is not nil.
	OneFileSystem bool
	Elsewhere     func(d *Dir)

	// Choose, if not nil, says whether an entry is visited. in is what it has returned as below for the directory
	// that has the entry, nil for the root. It may be asked more than once about an entry, by several
	// goroutines, and must not block. Of what it refuses LeftOut alone is told, once, if that is not nil.
	Choose  func(in any, e *vfs.Entry) (below any, ok bool)
	LeftOut func(d *Dir, e *vfs.Entry)

	// Wants, if not nil, says whether an entry of d is visited in the present listing of d. Of
	// the others nothing is asked, and nothing is told, whatever their names are.
	Wants func(d *Dir, name []byte) bool

	// Again, if not nil, is called when a listing of d has come to its end: no fault has cut it
	// short. If it returns true, d is listed once more from its beginning. An error ends the walk.
	Again func(ctx context.Context, d *Dir) (bool, error)

	// Listed, if not nil, is called once when all directories have been listed: no Entry
	// follows. What the visitor has begun may still be under way.
	Listed func()
}

// Visitor is called with what a walk finds. Calls for one directory are made one after the
// other (Enter, then Entry and Fault, then Leave; a Fault of a directory in it may come beside
// the others); calls for several directories are
// concurrent. A directory is entered after its parent and left before it. An error that a
// method returns ends the walk.
type Visitor interface {
	// Enter is called when d's listing has begun, before any call for d's entries. It may
	// return ErrSkipDir.
	Enter(ctx context.Context, d *Dir) error

	// Entry is called for each object in d that is no directory. e is valid during the
	// call. Its handle and at least the type among its attributes are set.
	Entry(ctx context.Context, d *Dir, e *vfs.Entry) error

	// Fault is called for an item that could not be visited: name in d, or the rest of
	// d's listing if name is empty. A directory that vanished before its listing began is
	// a fault of its name in its parent, and is not entered.
	Fault(ctx context.Context, d *Dir, name string, err error) error

	// Leave is called when everything below d has been visited and left, and every Hold
	// on d released; the last Release may call it. incomplete is nil if every entry of d
	// was reported, otherwise the first reason why not.
	Leave(ctx context.Context, d *Dir, incomplete error) error
}

// walker is one walk.
//
// mu is never held while the visitor or the file system is called.
type walker struct {
	fs     vfs.FS
	v      Visitor
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	seed   maphash.Seed
	forget vfs.Forgetter // nil: the file system keeps nothing for directories
	root   vfs.Attr

	mu    sync.Mutex
	wake  sync.Cond
	ahead *ahead // nil: directories are listed when their turn comes
	stack []*Dir // waiting; the last one is next
	open  openSet
	todo  int  // directories whose listing has not ended
	done  bool // the root has been left, or err is set
	err   error
}

// Tree walks the tree under root. It returns when the root has been left, or with the first
// error of the visitor or the context. None of its goroutines calls the visitor after it has
// returned. After an error, the directories that are open are not left.
func Tree(ctx context.Context, f vfs.FS, root vfs.Handle, o Options, v Visitor) error {
	attr, err := f.GetAttr(ctx, root, vfs.MaskV3)
	if err != nil {
		return fmt.Errorf("attributes of the tree's root: %w", err)
	}
	if attr.Type != vfs.TypeDir {
		return fmt.Errorf("walk: %w", vfs.ErrNotDir)
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	if o.MaxDepth <= 0 {
		o.MaxDepth = DefaultMaxDepth
	}
	w := &walker{fs: f, v: v, o: o, seed: maphash.MakeSeed(), open: newOpenSet(), root: attr}
	w.wake.L = &w.mu
	w.forget, _ = vfs.As[vfs.Forgetter](f)
	w.ctx, w.cancel = context.WithCancel(ctx)
	defer w.cancel()
	w.ahead = newAhead(w)
	defer context.AfterFunc(ctx, func() { w.abort(ctx.Err()) })()
	w.push(&Dir{Handle: root, Attr: attr, w: w})
	var wg sync.WaitGroup
	for range min(o.Parallel, MaxParallel) {
		wg.Go(w.work)
	}
	wg.Wait()
	if w.ahead != nil {
		w.ahead.close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// work visits directories until there are none.
func (w *walker) work() {
	for d := w.next(); d != nil; d = w.next() {
		if err := w.visit(d); err != nil {
			w.abort(err)
		}
	}
}

// visit lists d as far as its queue allows.
func (w *walker) visit(d *Dir) error {
	if !d.visited {
		d.visited = true
		if err := w.admit(d); err != nil {
			return err
		}
	}
	if d.Elsewhere() && !d.skipped {
		if err := w.pass(d); err != nil {
			return err
		}
	} else if !d.skipped {
		suspended, err := w.list(d)
		if suspended || err != nil {
			return err
		}
	}
	if d.preview != nil {
		w.ahead.drop(d.preview)
		d.preview = nil
	}
	w.listed()
	return d.drop()
}

// pass enters a directory of another file system, which is not listed. An error ends the walk.
func (w *walker) pass(d *Dir) error {
	if w.o.Elsewhere != nil {
		w.o.Elsewhere(d)
	}
	return w.enter(d)
}

// elsewhere reports whether a directory with the attributes a is left unlisted.
func (w *walker) elsewhere(a *vfs.Attr) bool {
	return w.o.OneFileSystem && a.Has(vfs.MaskFSID) && w.root.Has(vfs.MaskFSID) && a.FSID != w.root.FSID
}

// listed notes that a directory has been listed, or was skipped.
func (w *walker) listed() {
	w.mu.Lock()
	w.todo--
	last := w.todo == 0
	w.mu.Unlock()
	if last && w.o.Listed != nil {
		w.o.Listed()
	}
}

// admit adds d to the open directories. If d lies too deep or in itself, it is a fault and is
// skipped. An error ends the walk.
func (w *walker) admit(d *Dir) error {
	var fault error
	if d.depth > w.o.MaxDepth {
		fault = ErrTooDeep
	} else if !w.enterOpen(d) {
		fault = ErrLoop
	}
	if fault == nil {
		return nil
	}
	d.skipped = true
	d.Parent.note(fault)
	return w.v.Fault(w.ctx, d.Parent, d.Name, fault)
}

// enter calls Enter for d, once. An error ends the walk.
func (w *walker) enter(d *Dir) error {
	if d.entered {
		return nil
	}
	d.entered = true
	err := w.v.Enter(w.ctx, d)
	if err == ErrSkipDir { //nolint:errorlint // ErrSkipDir is returned as it is, like fs.SkipDir
		d.skipped = true
		return nil
	}
	return err
}

// enterOpen adds d to the open directories; false if it is its own ancestor.
func (w *walker) enterOpen(d *Dir) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open.has(d) && d.isOwnAncestor() {
		return false
	}
	w.open.add(d)
	d.opened = true
	return true
}

// next takes the directory that was queued last, and waits if there is none. It returns nil
// when the walk is over.
func (w *walker) next() *Dir {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.stack) == 0 && !w.done {
		w.wake.Wait()
	}
	if w.done {
		return nil
	}
	d := w.stack[len(w.stack)-1]
	w.stack[len(w.stack)-1] = nil
	w.stack = w.stack[:len(w.stack)-1]
	if p := d.Parent; p != nil && !d.visited {
		p.queued--
		if p.queued == 0 && p.suspended {
			p.suspended = false
			w.pushLocked(p)
		}
	}
	if w.ahead != nil {
		w.ahead.take(d)
		w.ahead.more()
	}
	return d
}

// push queues d as the next directory to visit and reports whether its parent
// has to suspend its listing.
func (w *walker) push(d *Dir) (full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.refs.Store(1)
	w.todo++
	w.pushLocked(d)
	if d.Parent == nil {
		return false
	}
	if w.ahead != nil && d.preview == nil {
		d.preview = w.ahead.plan(d, nil)
	}
	d.Parent.refs.Add(1)
	d.Parent.queued++
	return d.Parent.queued >= queuedPerDir || len(w.stack) >= maxQueued
}

func (w *walker) pushLocked(d *Dir) {
	w.stack = append(w.stack, d)
	w.wake.Signal()
}

// suspend leaves the rest of d's listing to the worker that takes the last of d's queued
// children. It returns false if all have been taken: then the listing goes on.
func (w *walker) suspend(d *Dir) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.suspended = d.queued > 0
	return d.suspended
}

// abort ends the walk with err.
func (w *walker) abort(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return
	}
	w.err = err
	w.endLocked()
}

func (w *walker) endLocked() {
	w.done = true
	w.stack = nil
	w.cancel()
	w.wake.Broadcast()
}

// leave calls Leave for d. It returns false if the walk was aborted.
func (w *walker) leave(d *Dir) (bool, error) {
	w.mu.Lock()
	over := w.done
	if d.opened {
		w.open.remove(d)
	}
	w.mu.Unlock()
	if over {
		return false, nil
	}
	if !d.skipped {
		if err := w.v.Leave(w.ctx, d, d.incomplete); err != nil {
			return false, err
		}
	}
	if w.forget != nil {
		w.forget.Forget(d.Handle)
	}
	if d.Parent == nil {
		w.mu.Lock()
		w.endLocked()
		w.mu.Unlock()
	}
	return true, nil
}
