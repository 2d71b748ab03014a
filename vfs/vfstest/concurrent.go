package vfstest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

var concurrentTests = []test{
	{"create-and-list", func(e *env) {
		// Creates, lists and removes in one directory at once. What was there
		// before is in every listing, once.
		fixed := e.mkfiles(e.dir, 50)
		e.together(func(worker int) error {
			for round := range rounds {
				name := fmt.Sprintf("worker-%d-%d", worker, round)
				if err := putFile(e.ctx, e.fs, e.dir, name, name); err != nil {
					return err
				}
				if err := seesOnce(e, fixed); err != nil {
					return err
				}
				if round%2 == 1 {
					if _, err := e.fs.Remove(e.ctx, e.dir, name, false); err != nil {
						return fmt.Errorf("remove %s: %w", name, err)
					}
				}
			}
			return nil
		})
		if got, want := len(e.list(e.dir)), len(fixed)+workers*rounds/2; got != want {
			e.Errorf("%d entries, want %d", got, want)
		}
		e.wantContent(e.mustLookup(e.dir, "worker-3-4"), "worker-3-4")
	}},
	{"one-exclusive-winner", func(e *env) {
		var mu sync.Mutex
		won := make(map[string]int)
		e.together(func(worker int) error {
			for round := range rounds {
				name := fmt.Sprintf("file-%d", round)
				_, _, _, err := e.fs.Create(e.ctx, e.dir, name, exclusiveHow(fmt.Sprintf("w%d-%d", worker, round)))
				if s, _ := vfs.StatusOf(err); err != nil && s != vfs.ErrExist {
					return err
				}
				if err == nil {
					mu.Lock()
					won[name]++
					mu.Unlock()
				}
			}
			return nil
		})
		for round := range rounds {
			if n := won[fmt.Sprintf("file-%d", round)]; n != 1 {
				e.Errorf("%d workers have created the same file", n)
			}
		}
	}},
	{"one-file", func(e *env) {
		// Writes the blocks of one file from several goroutines.
		const block = 5000
		want := pattern(workers * rounds * block)
		h := e.mkfile(e.dir, "file", "")
		f := e.open(h, readWrite)
		e.together(func(worker int) error {
			for round := range rounds {
				off := (round*workers + worker) * block
				if _, err := vfs.WriteFull(e.ctx, f, []byte(want[off:off+block]), uint64(off), vfs.Unstable, new(vfs.Written)); err != nil {
					return err
				}
				p := make([]byte, block)
				if n, _, err := vfs.ReadFull(e.ctx, f, p, uint64(off)); err != nil || string(p[:n]) != want[off:off+block] {
					return fmt.Errorf("block at %d is not as written: %d bytes, %w", off, n, err)
				}
			}
			return nil
		})
		e.commit(f)
		wantBytes(e, e.contentOf(f), want)
	}},
	{"rename-replaces-atomically", func(e *env) {
		// Replaces one name over and over: it exists at any time, with one of
		// the contents.
		e.mkfile(e.dir, "name", "content")
		e.together(func(worker int) error {
			temporary := fmt.Sprintf("temporary-%d", worker)
			for range rounds {
				if worker%2 == 0 {
					if _, _, _, err := e.fs.Lookup(e.ctx, e.dir, "name"); err != nil {
						return fmt.Errorf("lookup: %w", err)
					}
					continue
				}
				if err := putFile(e.ctx, e.fs, e.dir, temporary, "content"); err != nil {
					return err
				}
				if _, _, err := e.fs.Rename(e.ctx, e.dir, temporary, e.dir, "name"); err != nil {
					return fmt.Errorf("rename: %w", err)
				}
			}
			return nil
		})
		e.wantNames(e.dir, "name")
		e.wantContent(e.mustLookup(e.dir, "name"), "content")
	}},
	{"directories-cross", func(e *env) {
		// Moves directories into each other. No directory may become its own
		// ancestor, and there must be no deadlock.
		a, b := e.mkdir(e.dir, "a"), e.mkdir(e.dir, "b")
		refusals := []vfs.Status{vfs.ErrInval, vfs.ErrNoEnt, vfs.ErrNotEmpty, vfs.ErrExist}
		e.together(func(worker int) error {
			for range rounds {
				var err error
				if worker%2 == 0 {
					_, _, err = e.fs.Rename(e.ctx, e.dir, "a", b, "a")
					_, _, back := e.fs.Rename(e.ctx, b, "a", e.dir, "a")
					err = firstOther(refusals, err, back)
				} else {
					_, _, err = e.fs.Rename(e.ctx, e.dir, "b", a, "b")
					_, _, back := e.fs.Rename(e.ctx, a, "b", e.dir, "b")
					err = firstOther(refusals, err, back)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		n := len(e.list(e.dir)) + len(e.list(a)) + len(e.list(b))
		if n != 2 {
			e.Errorf("two directories have %d names", n)
		}
	}},
	{"views", func(e *env) {
		// Asks for views from several goroutines; nil is one of the callers.
		e.together(func(int) error {
			for range rounds {
				if _, err := e.fs.As(nil).GetAttr(e.ctx, e.dir, vfs.MaskV3); err != nil {
					return err
				}
			}
			return nil
		})
	}},
}

// workers is how many goroutines these tests have, and rounds what each does.
const (
	workers = 8
	rounds  = 20
)

// together runs do in workers goroutines and ends the test with the first
// error of each.
func (e *env) together(do func(worker int) error) {
	e.Helper()
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for i := range workers {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			e.Errorf("worker %d: %v", i, err)
		}
	}
	if e.Failed() {
		e.FailNow()
	}
}

// putFile makes a file with that content, as a goroutine of a test does it.
func putFile(ctx context.Context, f vfs.FS, dir vfs.Handle, name, content string) error {
	file, _, err := f.Open(ctx, vfs.At{Dir: dir, Name: name}, &vfs.OpenHow{Access: readWrite, Create: fileHow(0o644)})
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	_, err = vfs.WriteFull(ctx, file, []byte(content), 0, vfs.FileSync, new(vfs.Written))
	if closing := file.Close(ctx); err == nil {
		err = closing
	}
	return err
}

// seesOnce lists the test's directory and returns an error unless each of want
// is in it once.
func seesOnce(e *env, want []string) error {
	seen := make(map[string]int)
	for entry, err := range e.fs.ReadDir(e.ctx, e.dir, vfs.Pos{}, 0, 4096) {
		if err != nil {
			return fmt.Errorf("readdir: %w", err)
		}
		seen[string(entry.Name)]++
	}
	for _, name := range want {
		if seen[name] != 1 {
			return fmt.Errorf("%s was listed %d times", name, seen[name])
		}
	}
	return nil
}

// firstOther is the first of errs whose status is not among the expected.
func firstOther(expected []vfs.Status, errs ...error) error {
	for _, err := range errs {
		if s, _ := vfs.StatusOf(err); err != nil && !slices.Contains(expected, s) {
			return err
		}
	}
	return nil
}
