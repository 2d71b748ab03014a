package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestWriterMeanwhile copies trees that a seeded writer changes all the while, between any two operations of
// the server: files grow, shrink, are written over in place, replaced, moved, removed and made. Each file of
// the copy is as the source's file of that name was at a moment, or there is none and it is listed, or noted as
// gone. What the writer leaves alone is copied. When the writer rests, sync --delete makes both the same.
func TestWriterMeanwhile(t *testing.T) {
	need.Time(t, "the built command beside a writer")
	c := newTool(t)
	for _, verb := range []string{"cp", "sync"} {
		for _, seed := range seeds(t, 2) {
			t.Run(fmt.Sprint(verb, " ", seed), func(t *testing.T) { c.in(t).meanwhile(verb, seed) })
		}
	}
}

func (c *tool) meanwhile(verb string, seed uint64) {
	src, dst := newShelf(c.t), newShelf(c.t)
	src.fill()
	w := newWriter(src, seed)
	src.fault.Store(&w.fault)
	list := filepath.Join(c.home, "list")
	flags := map[string][]string{"cp": {"cp", "-r"}, "sync": {"sync", "--delete"}}[verb]
	status, said := c.end(append(slices.Clone(flags), "--no-progress", "--failed-to", list, src.url, dst.dest(verb))...)
	src.fault.Store(nil)
	if status != 0 && status != 2 || w.steps < 50 {
		c.t.Fatalf("seed %d: exit status %d, %d steps of the writer\n%s", seed, status, w.steps, said)
	}
	w.judge(dst, c.list(list), said)
	c.t.Logf("seed %d: %d steps of the writer, status %d, %d paths have failed", seed, w.steps, status, len(c.list(list)))
	c.run(0, "sync", "--delete", "-q", src.url, dst.url)
	c.run(0, "verify", "-q", src.url, dst.url)
}

// writer changes a shelf's files, and knows all that each name ever had.
type writer struct {
	s      *shelf
	mu     sync.Mutex
	chance *rand.Rand
	now    map[string]*object                    // by path
	had    map[string]map[[sha256.Size]byte]bool // all contents of each object that had the path, since it had it
	calm   map[string]bool                       // paths that were left alone
	paths  []string
	steps  int
	made   int
	fault  func(ctx context.Context, op string, h vfs.Handle) error
}

// object is a file, and the names that it has had: a copy that has met it by one of them reads it by its handle,
// whatever its name is by then, as cp(1) does by a descriptor.
type object struct {
	data  []byte
	names []string
}

// ofWriter marks the writer's own operations.
type ofWriter struct{}

func newWriter(s *shelf, seed uint64) *writer {
	w := &writer{s: s, chance: rand.New(rand.NewPCG(seed, 0)), now: make(map[string]*object), had: make(map[string]map[[sha256.Size]byte]bool), calm: make(map[string]bool)}
	for path, h := range s.at {
		if !strings.Contains(path, "/") {
			continue
		}
		a, err := s.mem.GetAttr(s.t.Context(), h, vfs.MaskV3)
		if err != nil {
			s.t.Fatal(err)
		}
		data, err := read(s.t.Context(), s.mem, h, 0, int(a.Size))
		if err != nil {
			s.t.Fatal(err)
		}
		w.now[path] = &object{names: []string{path}}
		w.has(path, data)
		w.calm[path] = true
		w.paths = append(w.paths, path)
	}
	slices.Sort(w.paths)
	large := make(map[vfs.Handle]string) // files that take several READs
	for d := range errorDirs {
		path := fmt.Sprintf("d%d/f7", d)
		large[s.at[path]] = path
	}
	w.fault = func(ctx context.Context, op string, h vfs.Handle) error {
		if ctx.Value(ofWriter{}) == nil && (op == "read" || op == "readdir" || op == "lookup" || op == "getattr") {
			path := ""
			if op == "read" {
				path = large[h]
			}
			w.step(context.WithValue(ctx, ofWriter{}, true), path)
		}
		return nil
	}
	return w
}

// has notes what the object of a path holds from now on.
func (w *writer) has(path string, data []byte) {
	o := w.now[path]
	o.data = data
	for _, name := range o.names {
		if w.had[name] == nil {
			w.had[name] = make(map[[sha256.Size]byte]bool)
		}
		w.had[name][sha256.Sum256(data)] = true
	}
}

// step makes a change, as seldom as the seed says. Each is one operation, as it would be to a reader. reading is
// a file that is read at the moment, in several READs; it stays itself.
func (w *writer) step(ctx context.Context, reading string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chance.IntN(4) > 0 {
		return
	}
	w.steps++
	path, kinds := w.paths[w.chance.IntN(len(w.paths))], 6
	if reading != "" {
		path, kinds = reading, 1+w.chance.IntN(3)
	}
	var data []byte
	o, there := w.now[path]
	if there {
		data = o.data
	}
	delete(w.calm, path)
	var err error
	switch kind := w.chance.IntN(kinds); {
	case !there || kind == 5:
		err = w.replace(ctx, path)
	case kind == 0:
		err = w.write(ctx, path, data, 0, max(1, len(data))) // over all of it, in place
	case kind == 1:
		err = w.write(ctx, path, data, len(data), 1+w.chance.IntN(5000)) // it grows
	case kind == 2:
		err = w.truncate(ctx, path, data)
	case kind == 3:
		err = w.remove(ctx, path)
	default:
		err = w.move(ctx, path)
	}
	if err != nil && ctx.Err() == nil {
		w.s.t.Errorf("the writer, at %s: %v", path, err)
	}
}

// split is where a path's last name stands.
func (w *writer) split(path string) (dir vfs.Handle, name string) {
	parent, name, _ := strings.Cut(path, "/")
	return w.s.at[parent], name
}

// write writes n new bytes to a file, in place.
func (w *writer) write(ctx context.Context, path string, data []byte, off, n int) error {
	dir, name := w.split(path)
	w.made++
	piece := pattern(uint64(w.made), 99, off, n)
	file, _, err := w.s.mem.Open(ctx, vfs.At{Dir: dir, Name: name}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	// Each WriteAt of at most memfs.DefaultTransfer is a state of its own.
	data = append(bytes.Clone(data), make([]byte, max(0, off+n-len(data)))...)
	for done := 0; done < n && err == nil; {
		var m int
		m, err = file.WriteAt(ctx, piece[done:], uint64(off+done), vfs.FileSync, new(vfs.Written))
		copy(data[off+done:], piece[done:done+m])
		done += m
		w.has(path, bytes.Clone(data[:max(off+done, len(w.now[path].data))]))
	}
	if end := file.Close(ctx); err == nil {
		err = end
	}
	return err
}

func (w *writer) truncate(ctx context.Context, path string, data []byte) error {
	dir, name := w.split(path)
	h, _, _, err := w.s.mem.Lookup(ctx, dir, name)
	if err != nil {
		return fmt.Errorf("look up: %w", err)
	}
	size := len(data) - w.chance.IntN(len(data)/8+1)
	_, err = w.s.mem.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: uint64(size)}, nil)
	w.has(path, data[:size])
	return err
}

func (w *writer) remove(ctx context.Context, path string) error {
	dir, name := w.split(path)
	_, err := w.s.mem.Remove(ctx, dir, name, false)
	delete(w.now, path)
	return err
}

// replace puts a new file in the place of what is there, if anything is.
func (w *writer) replace(ctx context.Context, path string) error {
	dir, name := w.split(path)
	w.made++
	data := pattern(uint64(w.made), 98, 0, w.chance.IntN(20_000))
	// The temporary is nowhere that a copy looks.
	root, _, err := w.s.mem.Root(ctx)
	if err == nil {
		err = write(ctx, &making{w.s.mem}, root, "temporary", data)
	}
	if err == nil {
		_, _, err = w.s.mem.Rename(ctx, root, "temporary", dir, name)
	}
	w.now[path] = &object{names: []string{path}}
	w.has(path, data)
	return err
}

// move gives a file another file's name.
func (w *writer) move(ctx context.Context, path string) error {
	to := w.paths[w.chance.IntN(len(w.paths))]
	if to == path {
		return nil
	}
	delete(w.calm, to)
	dir, name := w.split(path)
	toDir, toName := w.split(to)
	_, _, err := w.s.mem.Rename(ctx, dir, name, toDir, toName)
	o := w.now[path]
	o.names = append(o.names, to)
	delete(w.now, path)
	w.now[to] = o
	w.has(to, o.data)
	return err
}

// judge looks at each file of the copy. listed are the paths that have failed. What only grew, by its first and
// last bytes, is noted by its name (package transfer): one that was cut off and then grew may look so.
func (w *writer) judge(dst *shelf, listed []string, said string) {
	t := w.s.t
	t.Helper()
	got := make(map[string]bool)
	for _, path := range dst.files() {
		got[path] = true
		dir, name, _ := strings.Cut(path, "/")
		d, _, _, err := dst.mem.Lookup(t.Context(), dst.tree, dir)
		if err != nil {
			t.Fatal(err)
		}
		h, a, _, err := dst.mem.Lookup(t.Context(), d, name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := read(t.Context(), dst.mem, h, 0, int(a.Size))
		if err != nil {
			t.Fatal(err)
		}
		if !w.had[path][sha256.Sum256(data)] && !slices.Contains(listed, path) && !strings.Contains(said, "note: grew: "+path+":") {
			t.Errorf("%s has %d bytes that it never had in the source", path, len(data))
		}
	}
	for path := range w.calm {
		if !got[path] {
			t.Errorf("%s was left alone, and is not copied", path)
		}
	}
}
