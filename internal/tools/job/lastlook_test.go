package job

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// step is what happens in a source just before dir is listed.
type step struct {
	dir string
	do  func(src *tree)
}

// stepping is a source in which steps happen, one in each walk, when nothing else is going on. It needs a synctest bubble, whose clock is its own.
type stepping struct {
	*tree
	mu    sync.Mutex
	done  bool // a step has happened in this walk
	dirs  map[vfs.Handle]string
	steps []step
}

func newStepping(t *testing.T) *stepping {
	s := &stepping{tree: mem(t, memfs.Options{})}
	s.fs = stepped{s.fs, s}
	return s
}

// stepped is the file system of a stepping.
type stepped struct {
	vfs.FS
	s *stepping
}

func (f stepped) Unwrap() any { return f.FS }

// ReadDir has the next step happen before the first page. Not before another one: a walk may be in
// the next directory by then, and would see two.
func (f stepped) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		if from == (vfs.Pos{}) {
			f.s.meet(dir)
		}
		f.FS.ReadDir(ctx, dir, from, want, n)(yield)
	}
}

// meet has the next step happen, if it is one of dir.
func (s *stepping) meet(dir vfs.Handle) {
	if do := s.next(dir); do != nil {
		synctest.Wait()
		time.Sleep(time.Minute) // so that each change has a time of its own
		do(s.tree)
		time.Sleep(time.Minute)
	}
}

// next takes the next step, if it is one of dir. A walk begins with the root.
func (s *stepping) next(dir vfs.Handle) func(*tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir == s.root {
		s.done = false
	}
	if s.done || len(s.steps) == 0 || s.dirs[dir] != s.steps[0].dir {
		return nil
	}
	do := s.steps[0].do
	s.steps, s.done = s.steps[1:], true
	return do
}

// begin has the steps happen in what has been made.
func (s *stepping) begin(steps []step) {
	s.dirs = make(map[vfs.Handle]string)
	s.each("", s.root, func(path string, h vfs.Handle, a vfs.Attr) {
		if a.Type == vfs.TypeDir {
			s.dirs[h] = path
		}
	})
	s.steps = steps
}

// moves are steps in which x goes from directory to directory: from z, before that is listed, to a,
// and on each time that x would be met. also happens when it goes to c.
func moves(way string, also func(src *tree)) (steps []step) {
	at := "z"
	for _, to := range strings.Split(way, "") {
		from := at
		steps = append(steps, step{from, func(src *tree) {
			src.move(from+"/x", to+"/x")
			if to == "c" && also != nil {
				also(src)
			}
		}})
		at = to
	}
	return steps
}

// TestMovedOnAndOn: a file is moved each time before it would be met. While the directories are
// looked at again, it is found. After that, where it is has failed, or all that have changed have.
// If files are only made and removed, nothing has failed.
func TestMovedOnAndOn(t *testing.T) {
	fresh := func(dir string) step {
		return step{dir, func(src *tree) { src.file(fmt.Sprint("a/new", time.Now().Unix()), 0o644, []byte("new")) }}
	}
	for name, c := range map[string]struct {
		steps   []step
		exit    int
		changed uint64
		tells   string
	}{
		"found at the first look":      {moves("a", nil), ExitDone, 0, ""},
		"found at the second look":     {moves("ab", nil), ExitDone, 0, ""},
		"found in the end":             {moves("abc", nil), ExitIncomplete, 2, `error dir_changed "c"`},
		"never found, beside another":  {moves("abcd", func(src *tree) { src.move("z/f", "b/y") }), ExitIncomplete, 3, `error dir_changed "b"`},
		"a file replaced by an older":  {append(moves("ab", nil), step{"b", func(src *tree) { src.move("b/x", "c/f") }}), ExitIncomplete, 2, `error dir_changed "c"`},
		"a directory moved in the end": {append(moves("ab", nil), step{"b", func(src *tree) { src.move("z/dir", "c/dir") }}), ExitIncomplete, 2, `error dir_changed "c"`},
		"files are made":               {[]step{fresh("z"), fresh("a"), fresh("a"), fresh("a")}, ExitDone, 1, `note dir_changed "a"`},
		"directories are made":         {[]step{fresh("z"), fresh("a"), {"a", func(src *tree) { src.file("a/n/n/f", 0o644, []byte("new")) }}}, ExitDone, 1, `note dir_changed "a"`},
		"a file is written to": {[]step{fresh("z"), fresh("a"), {"a", func(src *tree) {
			src.write(src.at("a/f"), 0, []byte("much longer than before"))
			src.file("a/g", 0o644, nil)
		}}}, ExitDone, 1, `note dir_changed "a"`},
		"old files are removed": {[]step{fresh("z"), fresh("a"), {"a", func(src *tree) { src.remove("a/f") }}}, ExitDone, 1, `note dir_changed "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src, dst := newStepping(t), mem(t, memfs.Options{})
				for _, path := range []string{"a/f", "b/f", "c/f", "d/f", "z/f", "z/x", "z/dir/f"} {
					src.file(path, 0o644, []byte("the text of "+path+strings.Repeat(" ", len(path)*int(path[0]))))
				}
				src.each("", src.root, func(_ string, h vfs.Handle, _ vfs.Attr) {
					src.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)})
				})
				src.begin(c.steps)
				o, v := options(t, src.tree, dst, "copy")
				s, err := Copy(t.Context(), o)
				if s.ExitCode(err) != c.exit || s.DirsChanged != c.changed || !strings.Contains(v.String(), c.tells) || len(src.steps) > 0 {
					t.Errorf("%v, %+v, %d steps have not happened\n%s", err, s, len(src.steps), v)
				}
				if s.DirsChanged == 0 {
					if d := diff(src.list(src.root), dst.list(dst.at("copy"))); d != "" {
						t.Error(d)
					}
				}
			})
		})
	}
}

// remove removes the file at path.
func (tr *tree) remove(path string) {
	i := strings.LastIndexByte(path, '/')
	if _, err := tr.fs.Remove(context.Background(), tr.at(path[:i]), path[i+1:], false); err != nil {
		tr.t.Error(err)
	}
}
