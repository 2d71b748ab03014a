package walk

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// hooked is a file system with some methods replaced.
type hooked struct {
	vfs.FS
	readDir func(dir vfs.Handle, from vfs.Pos) iter.Seq2[*vfs.Entry, error]
	getAttr func(h vfs.Handle) (vfs.Attr, error)
	lookup  func(dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, error)
}

func (f *hooked) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	if f.readDir != nil {
		return f.readDir(dir, from)
	}
	return f.FS.ReadDir(ctx, dir, from, want, n)
}

func (f *hooked) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	if f.getAttr != nil {
		return f.getAttr(h)
	}
	return f.FS.GetAttr(ctx, h, want)
}

func (f *hooked) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	if f.lookup != nil {
		h, a, err := f.lookup(dir, name)
		return h, a, vfs.Attr{}, err
	}
	return f.FS.Lookup(ctx, dir, name)
}

// handle is the n'th handle of an invented file system.
func handle(n uint64) vfs.Handle {
	h, err := vfs.MakeHandle(binary.BigEndian.AppendUint64(nil, n))
	if err != nil {
		panic(err)
	}
	return h
}

func number(h vfs.Handle) uint64 { return binary.BigEndian.Uint64(h.Bytes()) }

// attrs are the attributes of object n of an invented file system.
func attrs(n uint64, t vfs.Type) vfs.Attr {
	return vfs.Attr{Valid: vfs.MaskV3, Type: t, Mode: 0o755, Nlink: 1, FileID: n, FSID: [2]uint64{7, 7}}
}

// invented is a file system that has only directories to list; its root is object 1.
func invented(list func(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error]) *hooked {
	return &hooked{
		readDir: func(dir vfs.Handle, from vfs.Pos) iter.Seq2[*vfs.Entry, error] { return list(number(dir), from) },
		getAttr: func(h vfs.Handle) (vfs.Attr, error) { return attrs(number(h), vfs.TypeDir), nil },
	}
}

// entry is an entry of an invented directory, with its number for a cookie.
func entry(name string, n uint64, t vfs.Type, cookie uint64) *vfs.Entry {
	return &vfs.Entry{Name: []byte(name), FileID: n, Handle: handle(n), Attr: attrs(n, t), Next: vfs.Pos{Cookie: cookie}}
}

// files yields the files f<from> to f<to-1>, with their numbers plus one as cookies. It uses
// one Entry for all of them, as the contract allows.
func files(from, to uint64) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		var e vfs.Entry
		for i := from; i < to; i++ {
			e = vfs.Entry{Name: fmt.Appendf(e.Name[:0], "f%d", i), FileID: 100 + i, Handle: handle(100 + i),
				Attr: attrs(100+i, vfs.TypeReg), Next: vfs.Pos{Cookie: i + 1}}
			if !yield(&e, nil) {
				return
			}
		}
	}
}

// fault is a call of Fault.
type fault struct {
	path string
	err  error
}

// log is a Visitor that records everything, and checks the order.
type log struct {
	t  testing.TB
	mu sync.Mutex

	dirs       map[*Dir]int // 1: entered, 2: left
	open       map[*Dir]int // directories that were entered and not left, by parent
	entered    []string
	entries    []string
	left       []string
	faults     []fault
	incomplete map[string]error

	onEnter func(d *Dir) error
	onEntry func(d *Dir, e *vfs.Entry) error
	onLeave func(d *Dir) error
	onFault error
}

func newLog(t testing.TB) *log {
	return &log{t: t, dirs: make(map[*Dir]int), open: make(map[*Dir]int), incomplete: make(map[string]error)}
}

func (l *log) Enter(_ context.Context, d *Dir) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.Parent != nil && l.dirs[d.Parent] != 1 {
		l.t.Errorf("%s is entered while its parent is not open", d.Path(""))
	}
	if l.dirs[d] != 0 {
		l.t.Errorf("%s is entered twice", d.Path(""))
	}
	l.dirs[d] = 1
	l.open[d.Parent]++
	l.entered = append(l.entered, d.Path(""))
	if l.onEnter == nil {
		return nil
	}
	err := l.onEnter(d)
	if err == ErrSkipDir { //nolint:errorlint // as Tree compares it
		l.open[d.Parent]--
	}
	return err
}

func (l *log) Entry(_ context.Context, d *Dir, e *vfs.Entry) error {
	if l.onEntry != nil {
		if err := l.onEntry(d, e); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dirs[d] != 1 {
		l.t.Errorf("an entry of %s while it is not open", d.Path(""))
	}
	if e.Handle.IsZero() || !e.Attr.Has(vfs.MaskType) || e.Attr.Type == vfs.TypeDir {
		l.t.Errorf("entry %q: handle %v, attributes %+v", e.Name, e.Handle, e.Attr)
	}
	l.entries = append(l.entries, d.Path(string(e.Name)))
	return nil
}

func (l *log) Fault(_ context.Context, d *Dir, name string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fault{d.Path(name), err})
	return l.onFault
}

func (l *log) Leave(_ context.Context, d *Dir, incomplete error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dirs[d] != 1 {
		l.t.Errorf("%s is left while it is not open", d.Path(""))
	}
	if n := l.open[d]; n != 0 {
		l.t.Errorf("%s is left before %d of its directories", d.Path(""), n)
	}
	l.dirs[d] = 2
	l.open[d.Parent]--
	l.left = append(l.left, d.Path(""))
	if incomplete != nil {
		l.incomplete[d.Path("")] = incomplete
	}
	if l.onLeave != nil {
		return l.onLeave(d)
	}
	return nil
}

// walk walks f from its root, which for an invented one is object 1.
func (l *log) walk(f vfs.FS, o Options) error {
	l.t.Helper()
	root := handle(1)
	if h, ok := f.(*hooked); !ok || h.FS != nil {
		var err error
		if root, _, err = f.Root(context.Background()); err != nil {
			l.t.Fatal(err)
		}
	}
	return Tree(l.t.Context(), f, root, o, l)
}

// build makes directories (names that end in '/') and files.
func build(t testing.TB, f vfs.FS, paths ...string) {
	t.Helper()
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]vfs.Handle{"": root}
	for _, path := range paths {
		typ := vfs.TypeReg
		if path[len(path)-1] == '/' {
			typ, path = vfs.TypeDir, path[:len(path)-1]
		}
		dir, name := "", path
		for i := len(path) - 1; i >= 0; i-- {
			if path[i] == '/' {
				dir, name = path[:i], path[i+1:]
				break
			}
		}
		h, _, _, err := f.Create(t.Context(), known[dir], name, &vfs.CreateHow{Type: typ})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		known[path] = h
	}
}

// small is a file system with a small tree.
func small(t testing.TB) vfs.FS {
	f := memfs.New(memfs.Options{})
	build(t, f, "a/", "a/b/", "a/b/f", "a/g", "c/", "h")
	return f
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }
