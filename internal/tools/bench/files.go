package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// fileWork is what the verbs share that work on the files of a dataset.
type fileWork struct {
	o        *Options
	t        target
	data     *dataset
	set      folder   // the dataset's directory
	dirs     []folder // in it
	one      func(ctx context.Context, c *fileCaller) (moved, error)
	last     func(ctx context.Context, w *fileWork) error // tidies up; nil: nothing to do
	measured bool                                         // the warm-up is over
	next     atomic.Uint64                                // the number of the next operation
	warmed   uint64                                       // operations of the warm-up, once it is over
}

// startFiles connects, and finds the directories of the dataset or, with create,
// makes them.
func startFiles(ctx context.Context, o *Options, create bool) (*fileWork, error) {
	t, err := reach(ctx, o)
	if err != nil {
		return nil, err
	}
	w := &fileWork{o: o, t: t, data: newDataset(o)}
	w.dirs = make([]folder, w.data.dirs)
	if err := w.enter(ctx, create); err != nil {
		if create && (w.set != nil || ctx.Err() != nil) { // what was cut off may have been done
			w.last = removeEmpty
		}
		return nil, errors.Join(err, cleanUp(ctx, w))
	}
	return w, nil
}

func (w *fileWork) enter(ctx context.Context, create bool) error {
	name := Prefix + w.o.Tag
	set, err := w.t.top().enter(ctx, name, create)
	if err == nil {
		w.set = set
	}
	for i := range w.dirs {
		if err != nil {
			break
		}
		name = Prefix + w.o.Tag + "/" + dirName(i)
		w.dirs[i], err = w.set.enter(ctx, dirName(i), create)
	}
	switch {
	case err == nil:
		return nil
	case !create && errors.Is(err, fs.ErrNotExist):
		return w.missing(err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// missing says what to do about a dataset that is not there.
func (w *fileWork) missing(err error) error {
	return fmt.Errorf("%s: %w: the files of %s%s with --seed %d are not there; make them with upload and the same flags: %w",
		redacted(w.o.URL), ErrUnreachable, Prefix, w.o.Tag, w.o.Seed, err)
}

// look fails unless the first file is there.
func (w *fileWork) look(ctx context.Context) error {
	first := w.data.item(0)
	there, err := w.dirs[first.dir].exist(ctx, first.name)
	if err == nil && !there {
		err = w.missing(fs.ErrNotExist)
	}
	return err
}

// item is the file of the next operation: each in its turn.
func (w *fileWork) item() item { return w.data.item((w.next.Add(1) - 1) % w.o.Files) }

// measure tells w that the warm-up is over.
func (w *fileWork) measure() {
	w.measured, w.warmed = true, w.next.Load()
	w.next.Store(0)
}

func (w *fileWork) counters() counters { return w.t.counters() }

func (w *fileWork) caller(context.Context, int) (caller, error) {
	return &fileCaller{w: w}, nil
}

func (w *fileWork) end(ctx context.Context) error {
	var err error
	if w.last != nil {
		err = w.last(ctx, w)
	}
	return errors.Join(err, w.t.close())
}

// fileCaller makes the operations of a fileWork.
type fileCaller struct {
	plain
	w   *fileWork
	buf []byte // of verbs that read
}

func (c *fileCaller) op(ctx context.Context) (moved, error) { return c.w.one(ctx, c) }

// removeEmpty removes the directories of the dataset that are empty. Its error names
// the dataset, whose files may be there, too.
func removeEmpty(ctx context.Context, w *fileWork) error {
	name := Prefix + w.o.Tag
	err := w.removeDirs(ctx)
	if err == nil {
		err = unlessFull(w.t.top().remove(ctx, name, true))
	}
	if err != nil {
		return fmt.Errorf("%s may be left behind with what is in it, for nfsbox bench clean: %w", name, err)
	}
	return nil
}

// removeDirs removes the directories in the dataset's that are empty.
func (w *fileWork) removeDirs(ctx context.Context) error {
	if w.set == nil {
		return nil
	}
	for i := range w.dirs {
		if err := unlessFull(w.set.remove(ctx, dirName(i), true)); err != nil {
			return err
		}
	}
	return nil
}

// unlessFull is the error of removing a directory, unless that is that it is not
// empty, or that it, or what it is in, has gone already.
func unlessFull(err error) error {
	// Some servers say that there is something: EXIST.
	if errors.Is(err, vfs.ErrNotEmpty) || errors.Is(err, vfs.ErrExist) || gone(err) {
		return nil
	}
	return err
}

// gone reports whether an error says that something is not there any more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrStale) }

// downloadVerb reads the files that upload has made, and compares every byte.
var downloadVerb = verb{
	name: "download", size: DefaultFileSize, count: DefaultFiles, anywhere: true, files: true, start: onFiles(download),
	calls: [2][]string{{"LOOKUP"}, {"Get", "Download", "HTTP GET"}},
}

// onFiles starts a verb that wants to find the files.
func onFiles(one func(context.Context, *fileCaller) (moved, error)) func(context.Context, *Options) (work, error) {
	return func(ctx context.Context, o *Options) (work, error) {
		w, err := startFiles(ctx, o, false)
		if err != nil {
			return nil, err
		}
		w.one = one
		if err := w.look(ctx); err != nil {
			return nil, errors.Join(err, cleanUp(ctx, w))
		}
		return w, nil
	}
}

func download(ctx context.Context, c *fileCaller) (moved, error) {
	w := c.w
	if c.buf == nil {
		c.buf = make([]byte, w.data.size)
	}
	x := w.item()
	if err := w.dirs[x.dir].download(ctx, x.name, x.data, c.buf); err != nil {
		return moved{}, err
	}
	return moved{bytes: uint64(len(x.data))}, nil
}

// existVerb asks whether the files that upload has made are there.
var existVerb = verb{
	name: "exist", count: DefaultFiles, anywhere: true, files: true, start: onFiles(exist),
	calls: [2][]string{{"LOOKUP"}, {"Exist", "HTTP HEAD"}},
}

// errAbsent is a file that is not there any more.
var errAbsent = errors.New("the file is not there: not all that upload makes with these flags is")

func exist(ctx context.Context, c *fileCaller) (moved, error) {
	w := c.w
	x := w.item()
	there, err := w.dirs[x.dir].exist(ctx, x.name)
	if err == nil && !there {
		err = errAbsent
	}
	return moved{}, err
}

// deleteVerb removes the files that upload has made.
var deleteVerb = verb{
	name: "delete", count: DefaultFiles, anywhere: true, files: true, once: true, start: startDelete,
	calls: [2][]string{{"REMOVE"}, {"Delete", "HTTP DELETE"}},
}

func startDelete(ctx context.Context, o *Options) (work, error) {
	w, err := startFiles(ctx, o, false)
	if err != nil {
		return nil, err
	}
	w.one, w.last = remove, removeEmpty
	return w, nil
}

// remove removes the next file. The warm-up only looks: what it would remove could
// not be measured any more.
func remove(ctx context.Context, c *fileCaller) (moved, error) {
	w := c.w
	x := w.item()
	if !w.measured {
		_, err := w.dirs[x.dir].exist(ctx, x.name)
		return moved{}, err
	}
	return moved{}, w.dirs[x.dir].remove(ctx, x.name, false)
}
