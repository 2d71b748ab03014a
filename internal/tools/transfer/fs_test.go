package transfer

import (
	"bytes"
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

var epoch = time.Unix(1_700_000_000, 123_456_789)

// end is one side of a copy.
type end struct {
	t    testing.TB
	fs   vfs.FS
	root vfs.Handle
}

func newEnd(t testing.TB, f vfs.FS) *end {
	t.Helper()
	h, _, err := f.Root(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return &end{t, f, h}
}

// mem is an empty file system, which is checked for files left open.
func mem(t testing.TB, o memfs.Options) *end {
	t.Helper()
	f := memfs.New(o)
	t.Cleanup(func() {
		if n := f.OpenFiles(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	})
	return newEnd(t, f)
}

// file makes a file and returns it as a source.
func (e *end) file(name string, contents []byte) Source {
	e.t.Helper()
	ctx := context.Background()
	how := &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640}}
	f, opened, err := e.fs.Open(ctx, vfs.At{Dir: e.root, Name: name}, &vfs.OpenHow{Access: vfs.ShareWrite, Create: how})
	if err != nil {
		e.t.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(ctx, f, contents, 0, vfs.FileSync, &w); err != nil {
		e.t.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		e.t.Fatal(err)
	}
	e.set(opened.H, vfs.SetAttr{Valid: vfs.MaskMtime | vfs.MaskAtime, Mtime: epoch, Atime: epoch.Add(time.Hour)})
	return e.source(name)
}

func (e *end) set(h vfs.Handle, set vfs.SetAttr) {
	e.t.Helper()
	if _, err := e.fs.SetAttr(context.Background(), h, &set, nil); err != nil {
		e.t.Fatal(err)
	}
}

func (e *end) make(name string, how vfs.CreateHow) Source {
	e.t.Helper()
	if _, _, _, err := e.fs.Create(context.Background(), e.root, name, &how); err != nil {
		e.t.Fatal(err)
	}
	return e.source(name)
}

// source is what is called name, with its attributes as a listing would have them.
func (e *end) source(name string) Source {
	e.t.Helper()
	h, a, _, err := e.fs.Lookup(context.Background(), e.root, name)
	if err != nil {
		e.t.Fatal(err)
	}
	return Source{FS: e.fs, Handle: h, Attr: a}
}

func (e *end) target(name string) Target { return Target{FS: e.fs, Dir: e.root, Name: name} }

// names are the names in the root.
func (e *end) names() []string {
	e.t.Helper()
	var names []string
	for d, err := range e.fs.ReadDir(context.Background(), e.root, vfs.Pos{}, 0, 0) {
		if err != nil {
			e.t.Fatal(err)
		}
		names = append(names, string(d.Name))
	}
	return names
}

// noTemps fails if a temporary is left.
func (e *end) noTemps() {
	e.t.Helper()
	for _, name := range e.names() {
		if strings.HasPrefix(name, tempPrefix) {
			e.t.Errorf("%s is left behind", name)
		}
	}
}

func (e *end) contents(name string) []byte {
	e.t.Helper()
	ctx := context.Background()
	src := e.source(name)
	f, opened, err := e.fs.Open(ctx, vfs.At{H: src.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		e.t.Fatal(err)
	}
	b := make([]byte, opened.Attr.Size)
	if _, _, err := vfs.ReadFull(ctx, f, b, 0); err != nil {
		e.t.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		e.t.Fatal(err)
	}
	return b
}

// same fails unless name has these contents, mode and mtime.
func (e *end) same(name string, contents []byte, mode uint32) {
	e.t.Helper()
	a := e.source(name).Attr // before the contents are read: that changes atime
	if got := e.contents(name); !bytes.Equal(got, contents) {
		e.t.Errorf("%s: %d bytes, want %d; the first difference is at %d", name, len(got), len(contents),
			firstDifference(got[:min(len(got), len(contents))], contents))
	}
	if a.Mode != mode || !a.Mtime.Equal(epoch) || !a.Atime.Equal(epoch.Add(time.Hour)) {
		e.t.Errorf("%s: mode %o, mtime %v, atime %v", name, a.Mode, a.Mtime, a.Atime)
	}
}

// options are those of a copy. Buffers are checked when the test ends.
func options(t testing.TB) *Options {
	pool := &bufpool.Pool{}
	t.Cleanup(func() {
		if n := pool.Outstanding(); n != 0 {
			t.Errorf("%d buffers are still out", n)
		}
	})
	return &Options{Pool: pool, Random: rand.Reader, Chunk: 64 << 10}
}

// pattern is n bytes that are not the same anywhere.
func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint32(n) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x>>24) | 1 // no zeros
	}
	return b
}

// hooks counts the operations of a memfs, and fails one of them.
type hooks struct {
	mu     sync.Mutex
	ops    []string
	failAt int // the number of the operation, from 1
	err    error
	before func(op string)
}

func (k *hooks) fault(ctx context.Context, op string, _ vfs.Handle) error {
	k.mu.Lock()
	k.ops = append(k.ops, op)
	n, before := len(k.ops), k.before
	k.mu.Unlock()
	if before != nil {
		before(op)
	}
	if n == k.failAt {
		return k.err
	}
	return ctx.Err()
}

// start forgets what has been counted, and fails the n'th operation from here.
func (k *hooks) start(n int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ops, k.failAt, k.err = nil, n, err
}

func (k *hooks) count(op string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range k.ops {
		if o == op {
			n++
		}
	}
	return n
}

// openFS replaces the Files of an FS.
type openFS struct {
	vfs.FS
	wrap func(f vfs.File) vfs.File
}

func (f *openFS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	return f.wrap(file), opened, nil
}

// hookFile replaces methods of a File. It hides what else the File can do.
type hookFile struct {
	vfs.File
	read   func(p []byte, off uint64, n int, eof bool) (int, bool)
	write  func(n int, w *vfs.Written) int
	commit func(w *vfs.Written)
}

func (f *hookFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	n, eof, err := f.File.ReadAt(ctx, p, off, post)
	if f.read != nil && err == nil {
		n, eof = f.read(p, off, n, eof)
	}
	return n, eof, err
}

func (f *hookFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	n, err := f.File.WriteAt(ctx, p, off, how, w)
	if f.write != nil && err == nil {
		n = f.write(n, w)
	}
	return n, err
}

func (f *hookFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	err := f.File.Commit(ctx, off, n, w)
	if f.commit != nil {
		f.commit(w)
	}
	return err
}
