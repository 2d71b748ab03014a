package iofs_test

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// lies is an FS whose directories and files say what its functions do.
type lies struct {
	fs.FS
	list func(n int) ([]fs.DirEntry, error)
	read func(p []byte) (int, error)
	size int64
}

func (l *lies) Open(name string) (fs.File, error) {
	f, err := l.FS.Open(name)
	switch {
	case err != nil:
		return nil, err
	case l.list != nil && name == ".":
		return lyingDir{f, l}, nil
	case l.read != nil && name != ".":
		return lyingFile{f, l}, nil
	}
	return f, nil
}

func (l *lies) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(l.FS, name)
	return lyingInfo{info, l}, err
}

type lyingDir struct {
	fs.File
	l *lies
}

func (d lyingDir) ReadDir(n int) ([]fs.DirEntry, error) { return d.l.list(n) }

type lyingFile struct {
	fs.File
	l *lies
}

func (f lyingFile) Read(p []byte) (int, error) { return f.l.read(p) }

func (f lyingFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	return lyingInfo{info, f.l}, err
}

type lyingInfo struct {
	fs.FileInfo
	l *lies
}

func (i lyingInfo) Size() int64 { return i.l.size }

// called is an entry with any name.
type called string

func (c called) Name() string             { return string(c) }
func (called) IsDir() bool                { return false }
func (called) Type() fs.FileMode          { return 0 }
func (called) Info() (fs.FileInfo, error) { return nil, errors.New("no information") }

// TestFromHostileDirectory: names that lead elsewhere, and directories without an end.
func TestFromHostileDirectory(t *testing.T) {
	f := &lies{FS: sources()}
	served := iofs.From(f)
	root, _ := mustFind(t, served, ".")
	first := true
	f.list = func(int) ([]fs.DirEntry, error) {
		if !first {
			return nil, io.EOF
		}
		first = false
		return []fs.DirEntry{called("good"), called("a/b"), called(".."), called("."), called(""), called("/etc"), called("x\x00y"),
			called("\xff"), called(strings.Repeat("n", 300)), called("good")}, nil
	}
	if got := names(t, served, root, 100, func() {}); !slices.Equal(got, []string{"good"}) {
		t.Errorf("listed: %q", got)
	}
	broken := errors.New("broken")
	for what, c := range map[string]struct {
		list func(int) ([]fs.DirEntry, error)
		want error
	}{
		"nothing for ever": {func(int) ([]fs.DirEntry, error) { return nil, nil }, io.ErrNoProgress},
		"an error":         {func(int) ([]fs.DirEntry, error) { return []fs.DirEntry{called("x")}, broken }, broken},
		"names for ever": {func(n int) ([]fs.DirEntry, error) {
			return slices.Repeat([]fs.DirEntry{called("..")}, n<<10), nil
		}, vfs.ErrFBig},
	} {
		f.list = c.list
		var last error
		for _, last = range served.ReadDir(t.Context(), root, vfs.Pos{}, 0, 0) {
		}
		if !errors.Is(last, c.want) {
			t.Errorf("%s: %v, want %v", what, last, c.want)
		}
	}
}

// TestFromHostileFile: files that cannot seek, and say what is not so.
func TestFromHostileFile(t *testing.T) {
	broken := errors.New("broken")
	nothing := func([]byte) (int, error) { return 0, nil }
	for what, c := range map[string]struct {
		size int64
		read func([]byte) (int, error)
		want error
	}{
		"too large for memory": {1 << 30, nothing, vfs.ErrFBig},
		"the largest":          {1<<63 - 1, nothing, vfs.ErrFBig},
		"nothing for ever":     {10, nothing, io.ErrNoProgress},
		"too much":             {10, func(p []byte) (int, error) { return len(p) + 1, nil }, vfs.ErrServerFault},
		"less than nothing":    {10, func([]byte) (int, error) { return -1, nil }, vfs.ErrServerFault},
		"an error":             {10, func([]byte) (int, error) { return 5, broken }, broken},
		"an error behind": {10, func(p []byte) (int, error) {
			if len(p) == 1 { // what is read behind the end
				return 0, broken
			}
			return len(p), nil
		}, broken},
		"shorter":  {10, func([]byte) (int, error) { return 0, io.EOF }, nil},
		"negative": {-1, func([]byte) (int, error) { return 0, io.EOF }, nil},
	} {
		t.Run(what, func(t *testing.T) {
			f := iofs.From(&lies{FS: plain{sources()}, size: c.size, read: c.read})
			h, _ := mustFind(t, f, "a/long")
			if err := openError(t, f, h); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// TestFromHeld: files that cannot seek are in memory, within its bound: the one that was not
// used for the longest time is read in again, and no other.
func TestFromHeld(t *testing.T) {
	reads := make(map[string]int)
	const size = 30 << 20
	m := fstest.MapFS{}
	for _, name := range []string{"a", "b", "c"} {
		m[name] = &fstest.MapFile{Data: make([]byte, size), Mode: 0o444}
	}
	f := iofs.From(readCounter{plain{m}, reads})
	for _, name := range []string{"a", "b", "a", "c", "a", "b"} {
		h, _ := mustFind(t, f, name)
		if err := openError(t, f, h); err != nil {
			t.Fatal(err)
		}
	}
	if reads["a"] != 1 || reads["b"] != 2 || reads["c"] != 1 {
		t.Errorf("files were read in %v times, want a once, b twice, c once", reads)
	}
}

// readCounter counts how often a file is read from its beginning.
type readCounter struct {
	fs    fs.FS
	reads map[string]int
}

func (c readCounter) Open(name string) (fs.File, error) {
	f, err := c.fs.Open(name)
	if _, ok := f.(fs.ReadDirFile); err != nil || ok {
		return f, err
	}
	return &onceFile{File: f, begun: func() { c.reads[name]++ }}, nil
}

type onceFile struct {
	fs.File
	begun func()
}

func (f *onceFile) Read(p []byte) (int, error) {
	if f.begun != nil {
		f.begun()
		f.begun = nil
	}
	return f.File.Read(p)
}
