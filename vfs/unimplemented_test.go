package vfs_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/memfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// shelf is a file system of one directory that nobody changes: names and their text.
type shelf struct {
	vfs.ReadOnly
	names []string
	texts map[string]string
}

func newShelf(names ...string) *shelf {
	s := &shelf{names: names, texts: make(map[string]string)}
	for _, name := range names {
		s.texts[name] = strings.Repeat(name+"\n", 3)
	}
	return s
}

// handleOf is that of a name, and of the root if it is empty.
func (s *shelf) handleOf(name string) vfs.Handle {
	h, err := vfs.MakeHandle([]byte("shelf:" + name))
	if err != nil {
		panic(err)
	}
	return h
}

func (s *shelf) find(ctx context.Context, h vfs.Handle) (name string, a vfs.Attr, err error) {
	if err := ctx.Err(); err != nil {
		return "", a, err
	}
	name, ok := strings.CutPrefix(string(h.Bytes()), "shelf:")
	i := slices.Index(s.names, name)
	if !ok || name != "" && i < 0 {
		return "", a, vfs.ErrBadHandle
	}
	a = vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeDir, Mode: 0o555, Nlink: 2, FileID: 1}
	if name != "" {
		a = vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeReg, Mode: 0o444, Nlink: 1, FileID: uint64(i) + 2, Size: uint64(len(s.texts[name]))}
	}
	return name, a, nil
}

func (s *shelf) As(*vfs.Caller) vfs.FS { return s }

func (s *shelf) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	_, a, err := s.find(ctx, s.handleOf(""))
	return s.handleOf(""), a, err
}

func (s *shelf) GetAttr(ctx context.Context, h vfs.Handle, _ vfs.Mask) (vfs.Attr, error) {
	_, a, err := s.find(ctx, h)
	return a, err
}

func (s *shelf) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, d vfs.Attr, err error) {
	at, d, err := s.find(ctx, dir)
	if err == nil && at != "" {
		err = vfs.ErrNotDir
	}
	if err == nil && name != ".." && s.texts[name] == "" {
		err = vfs.ErrNoEnt
	}
	if err != nil {
		return h, a, d, err
	}
	h = s.handleOf(strings.TrimPrefix(name, ".."))
	_, a, err = s.find(ctx, h)
	return h, a, d, err
}

func (s *shelf) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	o, err := vfs.Readable(ctx, s, at, how)
	if err != nil {
		return nil, o, err
	}
	name, a, err := s.find(ctx, o.H)
	return vfs.ReaderFile(strings.NewReader(s.texts[name]), a), o, err
}

func (s *shelf) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		at, _, err := s.find(ctx, dir)
		if err == nil && at != "" {
			err = vfs.ErrNotDir
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for i, name := range s.names {
			e := vfs.Entry{Name: []byte(name), FileID: uint64(i) + 2, Next: vfs.Pos{Cookie: uint64(i) + 3}}
			if e.Next.Cookie > from.Cookie && !yield(&e, nil) {
				return
			}
		}
	}
}

// TestReadOnly: a file system that embeds ReadOnly, with ReaderFile for its files, keeps the
// contract.
func TestReadOnly(t *testing.T) {
	vfstest.RunReadOnly(t, newShelf("ants", "bees", "cicadas"))
	f := newShelf("ants")
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range changes(t.Context(), f, root) {
		if !errors.Is(err, vfs.ErrROFS) {
			t.Errorf("%s: %v, want %v", what, err, vfs.ErrROFS)
		}
	}
	if got, _, err := f.Access(t.Context(), root, 0x3f); got != vfs.AccessRead|vfs.AccessLookup || err != nil {
		t.Errorf("access %#x, %v", got, err)
	}
}

// TestReadable: what a file system that nobody changes opens, and what not.
func TestReadable(t *testing.T) {
	ctx, f := t.Context(), newShelf("ants")
	root, _, err := f.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) vfs.At { return vfs.At{Dir: root, Name: name} }
	create := func(m vfs.CreateMode) *vfs.CreateHow { return &vfs.CreateHow{Type: vfs.TypeReg, Mode: m} }
	for what, c := range map[string]struct {
		at   vfs.At
		how  vfs.OpenHow
		want error
	}{
		"by name":           {named("ants"), vfs.OpenHow{Access: vfs.ShareRead}, nil},
		"by handle":         {vfs.At{H: f.handleOf("ants")}, vfs.OpenHow{Access: vfs.ShareRead}, nil},
		"or created":        {named("ants"), vfs.OpenHow{Access: vfs.ShareRead, Create: create(vfs.CreateUnchecked)}, nil},
		"created":           {named("bees"), vfs.OpenHow{Access: vfs.ShareRead, Create: create(vfs.CreateUnchecked)}, vfs.ErrROFS},
		"created, and new":  {named("ants"), vfs.OpenHow{Access: vfs.ShareRead, Create: create(vfs.CreateGuarded)}, vfs.ErrExist},
		"missing":           {named("bees"), vfs.OpenHow{Access: vfs.ShareRead}, vfs.ErrNoEnt},
		"a directory":       {vfs.At{H: root}, vfs.OpenHow{Access: vfs.ShareRead}, vfs.ErrIsDir},
		"to write":          {named("ants"), vfs.OpenHow{Access: vfs.ShareWrite}, vfs.ErrROFS},
		"to be empty":       {named("ants"), vfs.OpenHow{Access: vfs.ShareRead, Trunc: true}, vfs.ErrROFS},
		"for itself":        {named("ants"), vfs.OpenHow{Access: vfs.ShareRead, Deny: vfs.ShareWrite}, vfs.ErrNotSupp},
		"for nothing":       {named("ants"), vfs.OpenHow{}, vfs.ErrInval},
		"of another system": {vfs.At{}, vfs.OpenHow{Access: vfs.ShareRead}, vfs.ErrBadHandle},
	} {
		o, err := vfs.Readable(ctx, f, c.at, &c.how)
		if !errors.Is(err, c.want) || err == nil && (o.H != f.handleOf("ants") || o.Attr.Size == 0) {
			t.Errorf("%s: %+v, %v; want %v", what, o, err, c.want)
		}
	}
}

// changes are the errors of every change, on a directory.
func changes(ctx context.Context, f vfs.FS, h vfs.Handle) map[string]error {
	all := make(map[string]error)
	_, all["setattr"] = f.SetAttr(ctx, h, &vfs.SetAttr{}, nil)
	_, _, _, all["create"] = f.Create(ctx, h, "new", &vfs.CreateHow{Type: vfs.TypeReg})
	_, _, all["link"] = f.Link(ctx, h, h, "new")
	_, all["remove"] = f.Remove(ctx, h, "new", false)
	_, _, all["rename"] = f.Rename(ctx, h, "new", h, "newer")
	return all
}

// partial is a file system that is written to, and has no links: what it does not do is
// Unimplemented's.
type partial struct {
	vfs.Unimplemented
	f vfs.FS
}

func (p partial) As(c *vfs.Caller) vfs.FS                                { return partial{f: p.f.As(c)} }
func (p partial) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) { return p.f.Root(ctx) }
func (p partial) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	return p.f.GetAttr(ctx, h, want)
}

func (p partial) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	return p.f.Lookup(ctx, dir, name)
}

func (p partial) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	if how.Type != vfs.TypeReg && how.Type != vfs.TypeDir {
		return p.Unimplemented.Create(ctx, dir, name, how)
	}
	return p.f.Create(ctx, dir, name, how)
}

func (p partial) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	return p.f.Remove(ctx, dir, name, isDir)
}

func (p partial) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	return p.f.Open(ctx, at, how)
}

func (p partial) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, most uint32) iter.Seq2[*vfs.Entry, error] {
	return p.f.ReadDir(ctx, dir, from, want, most)
}

// TestUnimplemented: a file system with some changes of its own, which embeds Unimplemented
// for the others, passes those groups of the suite that need no more.
func TestUnimplemented(t *testing.T) {
	const unset = "times cannot be set"
	vfstest.Run(t, vfstest.Config{
		New:    func(*testing.T) vfs.FS { return partial{f: memfs.New(memfs.Options{})} },
		Groups: []string{"read", "write", "commit", "truncate", "info", "cancel"},
		Differences: map[string]string{
			"info/limits": "there are no links, and Info says so", "info/stale": "Info looks at no object",
			"write/modifies": unset, "commit/nothing-written": unset, "truncate/modifies": unset,
		},
	})
	f := partial{f: memfs.New(memfs.Options{})}
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := changes(t.Context(), f, root)
	for _, what := range []string{"setattr", "link", "rename"} {
		if !errors.Is(all[what], vfs.ErrNotSupp) {
			t.Errorf("%s: %v, want %v", what, all[what], vfs.ErrNotSupp)
		}
	}
	if got, _, err := f.Access(t.Context(), root, 0x3f); got != 0x1f || err != nil {
		t.Errorf("access %#x, %v: all but to execute is granted", got, err)
	}
	if _, _, err := f.Readlink(t.Context(), root); !errors.Is(err, vfs.ErrInval) {
		t.Errorf("readlink: %v, want %v", err, vfs.ErrInval)
	}
}

// faulty is a reader that does what no io.ReaderAt may.
type faulty func(p []byte, off int64) (int, error)

func (f faulty) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// TestReaderFile: what a reader says, and what comes of it.
func TestReaderFile(t *testing.T) {
	ctx := t.Context()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		r    io.ReaderAt
		n    int
		eof  bool
		want error
	}{
		"whole":           {strings.NewReader("0123456789"), 10, true, nil},
		"longer":          {strings.NewReader("0123456789ab"), 10, true, nil},
		"shorter":         {strings.NewReader("01234"), 5, true, nil},
		"full and EOF":    {faulty(func(p []byte, _ int64) (int, error) { return len(p), io.EOF }), 10, true, nil},
		"fails":           {faulty(func([]byte, int64) (int, error) { return 3, broken }), 3, false, broken},
		"gives nothing":   {faulty(func([]byte, int64) (int, error) { return 0, nil }), 0, false, io.ErrNoProgress},
		"claims too much": {faulty(func(p []byte, _ int64) (int, error) { return len(p) + 1, nil }), 0, false, vfs.ErrServerFault},
		"claims less":     {faulty(func([]byte, int64) (int, error) { return -1, nil }), 0, false, vfs.ErrServerFault},
		"timeout":         {faulty(func([]byte, int64) (int, error) { return 0, iotest.ErrTimeout }), 0, false, iotest.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			f := vfs.ReaderFile(c.r, vfs.Attr{Size: 10})
			n, eof, err := f.ReadAt(ctx, make([]byte, 20), 0, nil)
			if n != c.n || eof != c.eof || !errors.Is(err, c.want) {
				t.Errorf("%d bytes, end %t, %v; want %d, %t, %v", n, eof, err, c.n, c.eof, c.want)
			}
		})
	}
}

type closing struct {
	*strings.Reader
	closed int
}

func (c *closing) Close() error {
	c.closed++
	return nil
}

// TestReaderFileCloses: Close closes the reader, once.
func TestReaderFileCloses(t *testing.T) {
	r := &closing{Reader: strings.NewReader("text")}
	f := vfs.ReaderFile(r, vfs.Attr{Size: 4})
	if err := f.Close(t.Context()); err != nil || r.closed != 1 {
		t.Errorf("closed %d times: %v", r.closed, err)
	}
	if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrInval) || r.closed != 1 {
		t.Errorf("again: closed %d times: %v", r.closed, err)
	}
	if _, _, err := f.ReadAt(t.Context(), make([]byte, 1), 0, nil); !errors.Is(err, vfs.ErrInval) {
		t.Errorf("a read after Close: %v", err)
	}
}
