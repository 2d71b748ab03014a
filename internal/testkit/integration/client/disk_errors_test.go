package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/built"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// tool is the built command, and a home for it.
type tool struct {
	t         *testing.T
	bin, home string
}

func newTool(t *testing.T) *tool {
	t.Helper()
	home := t.TempDir()
	bin, err := built.Into(home)
	if err != nil {
		t.Fatal(err)
	}
	return &tool{t: t, home: home, bin: bin}
}

// run runs the command to its end, which has to have this status. It returns what it has said.
func (c *tool) run(status int, args ...string) string {
	c.t.Helper()
	got, said := c.end(args...)
	if got != status {
		c.t.Fatalf("nfsbox %s: exit status %d, want %d\n%.4000s", strings.Join(args, " "), got, status, said)
	}
	return said
}

// end runs the command to its end, without local I/O.
func (c *tool) end(args ...string) (status int, said string) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), c.bin, args...)
	cmd.Env = append(os.Environ(), "HOME="+c.home, "XDG_STATE_HOME="+c.home)
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// list reads a list of --failed-to, sorted.
func (c *tool) list(file string) []string {
	c.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		list = append(list, strings.TrimSuffix(line, "\n"))
	}
	slices.Sort(list)
	return list
}

// shelf is a served tree in memory, called "t", whose disk may fail.
type shelf struct {
	t    *testing.T
	mem  *memfs.FS
	tree vfs.Handle
	top  string // the URL of the directory above the tree
	url  string
	at   map[string]vfs.Handle // by path
	// fault, if not nil, is asked before each operation.
	fault atomic.Pointer[func(ctx context.Context, op string, h vfs.Handle) error]
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{t: t, at: make(map[string]vfs.Handle)}
	s.mem = memfs.New(memfs.Options{Mode: 0o777, ReadMax: errorRead, Fault: func(ctx context.Context, op string, h vfs.Handle) error {
		if fault := s.fault.Load(); fault != nil {
			return (*fault)(ctx, op, h)
		}
		return nil
	}})
	root, _, err := s.mem.Root(t.Context())
	if err == nil {
		s.tree, _, _, err = s.mem.Create(t.Context(), root, "t", &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}})
	}
	if err != nil {
		t.Fatal(err)
	}
	// Whoever runs the test is root there: what a user may not do is no fault of a disk.
	everybody := export.Rule{Match: "*", Squash: export.SquashAll, AnonUID: new(uint32), AnonGID: new(uint32)}
	s.top = "nfs://127.0.0.1:" + serve(t, export.Export{Path: "/", FS: s.mem, Clients: []export.Rule{everybody}}) + "/"
	s.url = s.top + "t"
	return s
}

// dest is DEST of a command that is to make the tree what another one called "t" is.
func (s *shelf) dest(verb string) string {
	if verb == "cp" {
		return s.top
	}
	return s.url
}

// dir makes a directory in the tree.
func (s *shelf) dir(name string) {
	s.t.Helper()
	h, _, _, err := s.mem.Create(s.t.Context(), s.tree, name, &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.at[name] = h
}

// file makes a file in a directory of the tree.
func (s *shelf) file(dir, name string, data []byte) {
	s.t.Helper()
	if err := write(s.t.Context(), &making{s.mem}, s.at[dir], name, data); err != nil {
		s.t.Fatal(err)
	}
	h, _, _, err := s.mem.Lookup(s.t.Context(), s.at[dir], name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.at[dir+"/"+name] = h
}

const (
	errorDirs, errorFiles = 12, 20
	errorRead             = 64 << 10 // the largest READ
)

// fill makes a tree of small files, and of one in each directory that takes several READs.
func (s *shelf) fill() {
	s.t.Helper()
	for d := range errorDirs {
		dir := fmt.Sprint("d", d)
		s.dir(dir)
		for f := range errorFiles {
			size := 100 * f
			if f == 7 {
				size = 3*errorRead + 5
			}
			s.file(dir, fmt.Sprint("f", f), pattern(uint64(d), uint64(f), 0, size))
		}
	}
}

// fails has operations on these paths fail, as a disk does; nil: none.
func (s *shelf) fails(op string, paths []string) {
	bad := make(map[vfs.Handle]bool)
	for _, path := range paths {
		bad[s.at[path]] = true
	}
	fault := func(_ context.Context, is string, h vfs.Handle) error {
		if is == op && bad[h] {
			return vfs.ErrIO
		}
		return nil
	}
	s.fault.Store(&fault)
}

// failsSome has the WRITEs of each twentieth file fail.
func (s *shelf) failsSome() {
	var mu sync.Mutex
	seen := make(map[vfs.Handle]int)
	fault := func(_ context.Context, op string, h vfs.Handle) error {
		if op != "write" {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if _, ok := seen[h]; !ok {
			seen[h] = len(seen)
		}
		if seen[h]%20 == 7 {
			return vfs.ErrIO
		}
		return nil
	}
	s.fault.Store(&fault)
}

// files are the paths of the files that are there now.
func (s *shelf) files() (paths []string) {
	s.t.Helper()
	dirs, err := names(s.t.Context(), s.mem, s.tree)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range dirs {
		h, _, _, err := s.mem.Lookup(s.t.Context(), s.tree, dir)
		if err != nil {
			s.t.Fatal(err)
		}
		list, err := names(s.t.Context(), s.mem, h)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, name := range list {
			paths = append(paths, dir+"/"+name)
		}
	}
	slices.Sort(paths)
	return paths
}

// without is all but some, both sorted.
func without(all, some []string) (rest []string) {
	for _, path := range all {
		if _, found := slices.BinarySearch(some, path); !found {
			rest = append(rest, path)
		}
	}
	return rest
}

// TestDiskErrors: a disk fails at chosen files of SOURCE or DEST. Exactly those are listed, with status 2; all
// else is done; and when the disk is mended the list is what the next run needs.
func TestDiskErrors(t *testing.T) {
	need.Time(t, "the built command beside disks that fail")
	c := newTool(t)
	bad := []string{"d0/f7", "d1/f1", "d1/f19", "d11/f10", "d3/f2", "d3/f7", "d5/f13"}
	for _, verb := range [][]string{{"cp", "-r"}, {"sync", "--delete"}} {
		t.Run(verb[0]+", reads", func(t *testing.T) { c.in(t).badReads(verb, bad) })
		t.Run(verb[0]+", writes", func(t *testing.T) { c.in(t).badWrites(verb) })
	}
	t.Run("cp, a directory", func(t *testing.T) { c.in(t).badDirectory() })
	t.Run("verify", func(t *testing.T) { c.in(t).badCompare(bad) })
	t.Run("rm", func(t *testing.T) { c.in(t).badRemoves() })
}

// in is the tool for a subtest.
func (c *tool) in(t *testing.T) *tool { return &tool{t: t, bin: c.bin, home: t.TempDir()} }

// again runs verb with the list of what has failed, and looks whether all is the same then.
func (c *tool) again(verb []string, list string, src, dst *shelf) {
	c.t.Helper()
	src.fault.Store(nil)
	dst.fault.Store(nil)
	if verb[0] == "sync" {
		c.run(0, "sync", "-q", "--files-from", list, src.url, dst.url)
		c.run(0, append(slices.Clone(verb), "-q", src.url, dst.url)...) // which deletes
	} else {
		c.run(0, append(slices.Clone(verb), "-q", "--files-from", list, src.url, dst.top)...)
	}
	c.run(0, "verify", "-q", src.url, dst.url)
}

func (c *tool) badReads(verb, bad []string) {
	src, dst := newShelf(c.t), newShelf(c.t)
	src.fill()
	dst.dir("d1")
	dst.file("d1", "f0", nil) // both sides have it
	dst.dir("old")
	dst.file("old", "extra", []byte("extra"))
	src.fails("read", bad)
	list := filepath.Join(c.home, "list")
	c.run(2, append(slices.Clone(verb), "-q", "--failed-to", list, src.url, dst.dest(verb[0]))...)
	if got := c.list(list); !slices.Equal(got, bad) {
		c.t.Errorf("listed are %q, want %q", got, bad)
	}
	want := append(without(src.files(), bad), "old/extra") // nothing is deleted after a fault
	if got := dst.files(); !slices.Equal(got, want) {
		c.t.Errorf("copied are %d files, want %d: %q", len(got), len(want), without(want, got))
	}
	if verb[0] == "cp" {
		dst.remove("old", "extra")
	}
	c.again(verb, list, src, dst)
}

// remove removes a file, and then its directory.
func (s *shelf) remove(dir, name string) {
	s.t.Helper()
	_, err := s.mem.Remove(s.t.Context(), s.at[dir], name, false)
	if err == nil {
		_, err = s.mem.Remove(s.t.Context(), s.tree, dir, true)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (c *tool) badWrites(verb []string) {
	src, dst := newShelf(c.t), newShelf(c.t)
	src.fill()
	dst.failsSome()
	list := filepath.Join(c.home, "list")
	c.run(2, append(slices.Clone(verb), "-q", "--failed-to", list, src.url, dst.dest(verb[0]))...)
	lacks := without(src.files(), dst.files())
	if got := c.list(list); len(lacks) < 5 || !slices.Equal(got, lacks) {
		c.t.Errorf("listed are %q, and DEST lacks %q", got, lacks)
	}
	c.again(verb, list, src, dst)
}

func (c *tool) badDirectory() {
	src, dst := newShelf(c.t), newShelf(c.t)
	src.fill()
	src.fails("readdir", []string{"d4"})
	list := filepath.Join(c.home, "list")
	c.run(2, "cp", "-r", "-q", "--failed-to", list, src.url, dst.top)
	if got := c.list(list); !slices.Equal(got, []string{"d4"}) {
		c.t.Errorf("listed are %q", got)
	}
	if got := len(dst.files()); got != (errorDirs-1)*errorFiles {
		c.t.Errorf("copied are %d files", got)
	}
	c.again([]string{"cp", "-r"}, list, src, dst)
}

func (c *tool) badCompare(bad []string) {
	src, dst := newShelf(c.t), newShelf(c.t)
	src.fill()
	c.run(0, "cp", "-r", "-q", src.url, dst.top)
	list := filepath.Join(c.home, "list")
	for _, side := range []*shelf{src, dst} {
		for path, h := range src.at { // the handles of the copies
			if dir, name, ok := strings.Cut(path, "/"); ok {
				if side == dst {
					var err error
					d, _, _, err := dst.mem.Lookup(c.t.Context(), dst.tree, dir)
					if err == nil {
						h, _, _, err = dst.mem.Lookup(c.t.Context(), d, name)
					}
					if err != nil {
						c.t.Fatal(err)
					}
				}
				side.at[path] = h
			}
		}
		side.fails("read", bad)
		c.run(2, "verify", "-q", "--failed-to", list, src.url, dst.url)
		if got := c.list(list); !slices.Equal(got, bad) {
			c.t.Errorf("listed are %q, want %q", got, bad)
		}
		side.fault.Store(nil)
		if said := c.run(0, "verify", "--no-progress", "--files-from", list, src.url, dst.url); !strings.Contains(said, fmt.Sprint(len(bad))) {
			c.t.Errorf("it says %s", said)
		}
	}
}

func (c *tool) badRemoves() {
	src := newShelf(c.t)
	src.fill()
	src.fails("remove", []string{"d2", "d9"})
	list := filepath.Join(c.home, "list")
	c.run(2, "rm", "-r", "-q", "--failed-to", list, src.url)
	if got, left := c.list(list), src.files(); len(got) != 2*errorFiles || !slices.Equal(got, left) {
		c.t.Errorf("listed are %q, and left are %q", got, left)
	}
	src.fault.Store(nil)
	c.run(0, "rm", "-r", "-q", "--files-from", list, src.url)
	if left := src.files(); len(left) > 0 {
		c.t.Errorf("left are %q", left)
	}
}
