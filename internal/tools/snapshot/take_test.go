package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// epoch is the time of the snapshots that tests take.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

// tree is a file system to build and to look at.
type tree struct {
	t    testing.TB
	fs   vfs.FS
	root vfs.Handle
}

func newTree(t testing.TB, f vfs.FS) *tree {
	t.Helper()
	h, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &tree{t, f, h}
}

func mem(t testing.TB) *tree { return newTree(t, memfs.New(memfs.Options{})) }

// place returns the directory that has the last name of path, which is made, and that name.
func (tr *tree) place(path string) (vfs.Handle, string) {
	dir, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = path[:i], path[i+1:]
	}
	at := tr.root
	for part := range strings.SplitSeq(dir, "/") {
		if part == "" {
			continue
		}
		next, _, _, err := tr.fs.Lookup(tr.t.Context(), at, part)
		if errors.Is(err, vfs.ErrNoEnt) {
			next = tr.make(at, part, &vfs.CreateHow{Type: vfs.TypeDir})
		} else if err != nil {
			tr.t.Fatal(err)
		}
		at = next
	}
	return at, name
}

func (tr *tree) make(dir vfs.Handle, name string, how *vfs.CreateHow) vfs.Handle {
	tr.t.Helper()
	if how.Set.Valid&vfs.MaskMode == 0 {
		how.Set.Valid |= vfs.MaskMode
		how.Set.Mode = 0o755
	}
	h, _, _, err := tr.fs.Create(tr.t.Context(), dir, name, how)
	if err != nil {
		tr.t.Fatalf("create %q: %v", name, err)
	}
	return h
}

func (tr *tree) add(path string, how vfs.CreateHow) vfs.Handle {
	tr.t.Helper()
	dir, name := tr.place(path)
	return tr.make(dir, name, &how)
}

func (tr *tree) file(path string, content []byte) vfs.Handle {
	tr.t.Helper()
	h := tr.add(path, vfs.CreateHow{Type: vfs.TypeReg})
	tr.write(h, 0, content)
	return h
}

func (tr *tree) write(h vfs.Handle, off uint64, b []byte) {
	tr.t.Helper()
	f, _, err := tr.fs.Open(tr.t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		tr.t.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(tr.t.Context(), f, b, off, vfs.FileSync, &w); err != nil {
		tr.t.Fatal(err)
	}
	if err := f.Close(tr.t.Context()); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) at(path string) vfs.Handle {
	tr.t.Helper()
	r, err := vfs.Resolve(tr.t.Context(), tr.fs, tr.root, path, false)
	if err != nil {
		tr.t.Fatalf("%s: %v", path, err)
	}
	return r.Handle
}

// read reads a file, in reads of an odd size.
func read(ctx context.Context, f vfs.FS, h vfs.Handle) (b []byte, err error) {
	file, _, err := f.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return nil, err
	}
	defer file.Close(ctx) //nolint:errcheck // nothing was written
	p := make([]byte, 777_777)
	for {
		n, eof, err := file.ReadAt(ctx, p, uint64(len(b)), nil)
		if b = append(b, p[:n]...); err != nil || eof {
			return b, err
		}
	}
}

// noise is bytes that cannot be packed.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b) //nolint:errcheck // it does not fail
	return b
}

// take takes a snapshot of a tree, one object after the other.
func take(t testing.TB, tr *tree, store object.Store, m Meta) *Snapshot {
	t.Helper()
	w, err := NewWriter(store)
	if err != nil {
		t.Fatal(err)
	}
	_, a, err := tr.fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root := &Entry{Attr: a}
	takeDir(t, w, tr, tr.root, "", root)
	return finish(t, w, store, m, root)
}

func finish(t testing.TB, w *Writer, store object.Store, m Meta, root *Entry) *Snapshot {
	t.Helper()
	if m.Name == "" {
		m.Name = "test"
	}
	if m.Time.IsZero() {
		m.Time = epoch
	}
	id, err := w.Finish(t.Context(), m, root)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := Find(t.Context(), store, m.Name+"@"+id)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), store, ref)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func takeDir(t testing.TB, w *Writer, tr *tree, h vfs.Handle, path string, e *Entry) {
	t.Helper()
	takeExtra(t, tr, h, e)
	d := w.Dir(path)
	for in, err := range tr.fs.ReadDir(t.Context(), h, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			t.Fatal(err)
		}
		e := &Entry{Name: string(in.Name), Attr: in.Attr}
		h := in.Handle
		switch in.Attr.Type {
		case vfs.TypeDir:
			takeDir(t, w, tr, h, strings.TrimPrefix(path+"/"+e.Name, "/"), e)
		case vfs.TypeReg:
			takeExtra(t, tr, h, e)
			takeFile(t, w, tr, h, e)
		case vfs.TypeSymlink:
			if e.Target, _, err = tr.fs.Readlink(t.Context(), h); err != nil {
				t.Fatal(err)
			}
		default:
		}
		if err := d.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func takeExtra(t testing.TB, tr *tree, h vfs.Handle, e *Entry) {
	t.Helper()
	acl, err := tr.fs.(vfs.ACLer).ACL(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if len(acl.Access) > 3 || len(acl.Default) > 0 {
		e.Extra.SetACL(acl)
	}
	names, err := tr.fs.(vfs.Xattrer).Xattrs(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		value, err := tr.fs.(vfs.Xattrer).Xattr(t.Context(), h, name)
		if err != nil {
			t.Fatal(err)
		}
		e.Extra.AddXattr(name, value)
	}
}

func takeFile(t testing.TB, w *Writer, tr *tree, h vfs.Handle, e *Entry) {
	t.Helper()
	ctx := t.Context()
	f, _, err := tr.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close(ctx) //nolint:errcheck // nothing was written
	var holes []Extent
	var readers []io.Reader
	data, size := int64(0), e.Attr.Size
	for off := uint64(0); off < size; {
		start, err := f.(vfs.HoleSeeker).NextData(ctx, off)
		if errors.Is(err, io.EOF) {
			start = size
		} else if err != nil {
			t.Fatal(err)
		}
		if start > off {
			holes = append(holes, Extent{int64(off), int64(start - off)})
		}
		end, err := f.(vfs.HoleSeeker).NextHole(ctx, start)
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, &fileReader{ctx, f, start, end})
		data += int64(end - start)
		off = end
	}
	var n int64
	if e.Content, n, err = w.Data(ctx, io.MultiReader(readers...), data, func() []Extent { return holes }); err != nil || n != data {
		t.Fatalf("%d of %d bytes: %v", n, data, err)
	}
}

// fileReader reads a range of a file.
type fileReader struct {
	ctx     context.Context
	f       vfs.File
	at, end uint64
}

func (r *fileReader) Read(p []byte) (int, error) {
	if r.at == r.end {
		return 0, io.EOF
	}
	n, _, err := r.f.ReadAt(r.ctx, p[:min(uint64(len(p)), r.end-r.at)], r.at, nil)
	r.at += uint64(n)
	return n, err
}

// each visits a whole tree, files with what they contain.
func each(ctx context.Context, f vfs.FS, visit func(path string, h vfs.Handle, a *vfs.Attr, content []byte) error) error {
	root, _, err := f.Root(ctx)
	if err != nil {
		return err
	}
	return eachIn(ctx, f, root, "", visit)
}

func eachIn(ctx context.Context, f vfs.FS, dir vfs.Handle, path string, visit func(string, vfs.Handle, *vfs.Attr, []byte) error) error {
	for e, err := range f.ReadDir(ctx, dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			return err
		}
		at := path + "/" + string(e.Name)
		var content []byte
		switch e.Attr.Type {
		case vfs.TypeDir:
			if err := eachIn(ctx, f, e.Handle, at, visit); err != nil {
				return err
			}
		case vfs.TypeReg:
			if content, err = read(ctx, f, e.Handle); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		default:
		}
		if err := visit(at, e.Handle, &e.Attr, content); err != nil {
			return err
		}
	}
	return nil
}

func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes that differ from the %d", what, len(got), len(want))
	}
}
