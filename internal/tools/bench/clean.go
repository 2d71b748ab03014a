package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// cleanVerb removes what upload has left, with whatever flags.
var cleanVerb = verb{
	name: "clean", anywhere: true, cold: true, start: startClean,
	calls: [2][]string{{"REMOVE"}, {"Delete"}},
}

const (
	// foundFiles bounds the files that were found and not yet removed; the
	// listing waits there.
	foundFiles = 1024

	// sweeps bounds how often a directory is listed that is not empty although
	// all that was listed has been removed: some servers' listings leave out
	// entries while others are removed. At the bound what is left is an error.
	sweeps = 4

	// maxDatasets bounds the datasets that clean removes at once. More are for
	// the next run, and the error says so.
	maxDatasets = 4096
)

// errDone says that nothing is left to do, for one caller and so for all.
var errDone = errors.New("nothing is left to do")

// found is a file to be removed.
type found struct {
	in   folder
	name string
}

// cleanWork removes datasets: callers remove the files that a listing finds, and in
// the end the directories go.
type cleanWork struct {
	t    target
	sets []string     // names of datasets
	cut  func() error // says whether the run was cut short
	stop context.CancelFunc

	files chan found
	done  sync.WaitGroup
	err   error // of the listing; read behind done
}

func startClean(ctx context.Context, o *Options) (work, error) {
	t, err := reach(ctx, o)
	if err != nil {
		return nil, err
	}
	w := &cleanWork{t: t, cut: ctx.Err, files: make(chan found, foundFiles)}
	if w.sets, err = datasets(ctx, t.top(), o.Tag); err != nil {
		return nil, errors.Join(err, t.close())
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.done.Go(func() {
		defer close(w.files)
		w.err = w.find(ctx)
	})
	return w, nil
}

// datasets are the names of the datasets in f: with this tag, or of all if it is "".
func datasets(ctx context.Context, f folder, tag string) (names []string, err error) {
	for e, err := range f.list(ctx) {
		if err != nil {
			return nil, err
		}
		if !e.isDir || !ourSet(e.name) || tag != "" && e.name != Prefix+tag {
			continue
		}
		if tag == "" {
			is, err := isDataset(ctx, f, e.name)
			if err != nil {
				return nil, err
			}
			if !is {
				continue
			}
		}
		if len(names) == maxDatasets {
			return nil, fmt.Errorf("there are more than %d datasets: remove some of them by their tags", maxDatasets)
		}
		names = append(names, e.name)
	}
	return names, nil
}

// isDataset reports whether a directory holds a directory of a dataset. Another's may
// have a name like that, also an empty one: that has to be named to be removed.
func isDataset(ctx context.Context, f folder, name string) (bool, error) {
	set, err := f.enter(ctx, name, false)
	if err != nil {
		return false, unlessFull(err)
	}
	for e, err := range set.list(ctx) {
		if err != nil || e.isDir && ourDir(e.name) {
			return err == nil, unlessFull(err)
		}
	}
	return false, nil
}

// find lists the files of all datasets. What upload does not make is left alone.
func (w *cleanWork) find(ctx context.Context) error {
	return w.each(ctx, func(dir folder) error {
		return ours(ctx, dir, func(name string) error {
			select {
			case w.files <- found{dir, name}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
}

// each calls do with all directories of all datasets. What has gone meanwhile needs
// no removing.
func (w *cleanWork) each(ctx context.Context, do func(dir folder) error) error {
	for _, name := range w.sets {
		set, err := w.t.top().enter(ctx, name, false)
		if err == nil {
			err = eachDir(ctx, set, do)
		}
		if unlessFull(err) != nil {
			return err
		}
	}
	return nil
}

// eachDir calls do with the directories of a dataset.
func eachDir(ctx context.Context, set folder, do func(dir folder) error) error {
	for e, err := range set.list(ctx) {
		if err != nil {
			return err
		}
		if !e.isDir || !ourDir(e.name) {
			continue
		}
		dir, err := set.enter(ctx, e.name, false)
		if err == nil {
			err = do(dir)
		}
		if unlessFull(err) != nil {
			return err
		}
	}
	return nil
}

func ours(ctx context.Context, dir folder, do func(name string) error) error {
	for e, err := range dir.list(ctx) {
		if err != nil {
			return err
		}
		if !e.isFile || !ourFile(e.name) {
			continue
		}
		if err := do(e.name); err != nil {
			return err
		}
	}
	return nil
}

func (w *cleanWork) caller(context.Context, int) (caller, error) { return &cleanCaller{w: w}, nil }
func (w *cleanWork) counters() counters                          { return w.t.counters() }

// cleanCaller removes files.
type cleanCaller struct {
	plain
	w *cleanWork
}

func (c *cleanCaller) op(ctx context.Context) (moved, error) {
	select {
	case x, ok := <-c.w.files:
		if !ok {
			return moved{}, errDone
		}
		return moved{}, x.in.remove(ctx, x.name, false)
	case <-ctx.Done():
		return moved{}, ctx.Err()
	}
}

// end removes the directories, unless the run was cut short.
func (w *cleanWork) end(ctx context.Context) error {
	w.stop()
	w.done.Wait()
	err := w.err
	if err == nil && w.cut() == nil {
		for _, name := range w.sets {
			err = errors.Join(err, w.removeSet(ctx, name))
		}
	}
	if errors.Is(err, context.Canceled) {
		err = nil // Run says so
	}
	return errors.Join(err, w.t.close())
}

func (w *cleanWork) removeSet(ctx context.Context, name string) error {
	set, err := w.t.top().enter(ctx, name, false)
	for round := 0; err == nil && round < sweeps; round++ {
		err = w.sweep(ctx, set)
		if err == nil {
			err = w.t.top().remove(ctx, name, true)
		}
		if err == nil || unlessFull(err) != nil {
			break
		}
		if round+1 < sweeps {
			err = nil
		}
	}
	if err == nil || gone(err) {
		return nil
	}
	if unlessFull(err) == nil {
		err = errors.New("it holds what upload does not make")
	}
	return fmt.Errorf("%s is left behind: %w", name, err)
}

// sweep removes what is left of a dataset, file by file, and its directories.
func (w *cleanWork) sweep(ctx context.Context, set folder) error {
	dirs := make(map[string]bool) // of which there are 256 names
	for e, err := range set.list(ctx) {
		if err != nil {
			return err
		}
		if e.isDir && ourDir(e.name) {
			dirs[e.name] = true
		}
	}
	for name := range dirs {
		if err := sweepDir(ctx, set, name); err != nil {
			return err
		}
	}
	return nil
}

// sweepDir removes a directory of a dataset if it is empty, or can be emptied.
func sweepDir(ctx context.Context, set folder, name string) error {
	if err := unlessFull(set.remove(ctx, name, true)); err != nil {
		return err
	}
	dir, err := set.enter(ctx, name, false)
	if gone(err) {
		return nil
	}
	if err == nil {
		err = ours(ctx, dir, func(name string) error { return unlessFull(dir.remove(ctx, name, false)) })
	}
	if err == nil {
		err = unlessFull(set.remove(ctx, name, true))
	}
	return err
}
