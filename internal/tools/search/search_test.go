package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/nfsbox/nfsbox/internal/base/lines"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// rig searches texts for "x", and prints their lines.
func rig(t *testing.T, workers int) (*Options, *lines.Pattern) {
	t.Helper()
	p, err := lines.Compile([]string{"x"}, lines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &Options{
		Pattern: p, Workers: workers,
		Show: func(o *Output, f *File, l *lines.Line) error {
			_, err := fmt.Fprintf(o, "%s:%s\n", f.Name, l.Text)
			return err
		},
		Done: func(_ *Output, _ *File, _ *lines.Result, err error) error { return err },
	}, p
}

// TestOrder: whichever file is read first, and however much it prints, they come in the order in which they were added.
func TestOrder(t *testing.T) {
	o, _ := rig(t, 8)
	var got, want bytes.Buffer
	p := NewPrinter(t.Context(), &got, "--\n")
	g := NewGroup(t.Context(), o, p)
	// The first file is read when all others that have room are.
	first, gate := io.Pipe()
	if err := g.Add(File{Name: "first", Read: first}); err != nil {
		t.Fatal(err)
	}
	const files = 200
	sizes := []int{0, 1, 3, 5}
	opened := make(chan struct{})
	go func() {
		<-opened
		_, _ = io.WriteString(gate, "x\n") // never fails
		_ = gate.Close()
	}()
	want.WriteString("first:x\n")
	for i := range files {
		if i == 20 {
			close(opened)
		}
		n := sizes[i%len(sizes)]
		if i%40 == 5 {
			n = 60_000
		}
		name := fmt.Sprint(i)
		if n > 0 {
			want.WriteString("--\n" + strings.Repeat(name+":x\n", n))
		}
		if err := g.Add(File{Name: name, Read: iotest.HalfReader(strings.NewReader("a\n" + strings.Repeat("x\n", n)))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Wait(); err != nil || got.String() != want.String() {
		t.Errorf("%v: %d bytes, want %d", err, got.Len(), want.Len())
	}
	if p.held != 0 || p.first != nil || p.files != 0 {
		t.Errorf("%d bytes and %d files are left", p.held, p.files)
	}
}

// TestHole: a file whose holes are known is not read through. This one would take hours.
func TestHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 40
	err = f.Truncate(size - 2)
	if err == nil {
		_, err = f.WriteAt([]byte("x\n"), size-2)
	}
	if cerr := f.Close(); err != nil || cerr != nil {
		t.Skipf("NOT TESTED: files with holes: %v %v", err, cerr)
	}
	fsys, err := dirfs.New(filepath.Dir(path), dirfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fsys.Close(); err != nil {
			t.Error(err)
		}
	})
	root, _, err := fsys.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, _, _, err := fsys.Lookup(t.Context(), root, "sparse")
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := fsys.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	holes, ok := vfs.As[vfs.HoleSeeker](file)
	if !ok {
		t.Skip("NOT TESTED: this host does not tell of holes")
	}
	data, err := holes.NextData(t.Context(), 1<<20)
	if err != nil || data < size/2 {
		t.Skipf("NOT TESTED: this file system keeps no holes: %d %v", data, err)
	}
	if err := file.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, _ := rig(t, 1)
	o.Search = lines.Search{Quiet: true}
	var r lines.Result
	o.Done = func(_ *Output, _ *File, res *lines.Result, err error) error { r = *res; return err }
	g := NewGroup(t.Context(), o, NewPrinter(t.Context(), io.Discard, ""))
	if err := errors.Join(g.Add(File{FS: fsys, Handle: h}), g.Wait()); err != nil || r.Selected != 1 || r.Bytes != size || !r.Binary {
		t.Errorf("%+v %v", r, err)
	}
}

// TestEnds: an error of a file, of the output or the end of the context ends all that waits.
func TestEnds(t *testing.T) {
	broken := errors.New("broken")
	many := func(ctx context.Context, w io.Writer, spoiled io.Reader) error {
		o, _ := rig(t, 4)
		g := NewGroup(ctx, o, NewPrinter(ctx, w, ""))
		var err error
		for i := 0; i < 3*maxAhead && err == nil; i++ {
			from := io.Reader(strings.NewReader(strings.Repeat("x\n", 10)))
			if i == 7 && spoiled != nil {
				from = spoiled
			}
			err = g.Add(File{Name: fmt.Sprint(i), Read: from})
		}
		if werr := g.Wait(); err == nil || werr != nil {
			err = werr
		}
		return err
	}
	if err := many(t.Context(), io.Discard, iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a file: %v", err)
	}
	if err := many(t.Context(), failing{broken}, nil); !errors.Is(err, broken) {
		t.Errorf("the output: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) }) // never fails
	context.AfterFunc(t.Context(), func() { stop() })
	go stop()
	if err := many(ctx, io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("the context: %v", err)
	}
	if err := many(t.Context(), io.Discard, nil); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
