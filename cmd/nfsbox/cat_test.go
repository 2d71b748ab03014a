package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// curt is a server whose reads end too early, as if that were the end of the file.
type curt struct {
	vfs.FS
	reads []int // how many bytes each gives; those after them give none
}

func (f *curt) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, o, err := f.FS.Open(ctx, at, how)
	return &curtFile{file, f}, o, err
}

type curtFile struct {
	vfs.File
	f *curt
}

func (f *curtFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	n := 0
	if len(f.f.reads) > 0 {
		n, f.f.reads = f.f.reads[0], f.f.reads[1:]
	}
	n, _, err := f.File.ReadAt(ctx, p[:n], off, post)
	return n, true, err
}

// TestCatEndsEarly: a server says that a file ends before its size does. What follows is
// asked for; if nothing comes, the file has failed.
func TestCatEndsEarly(t *testing.T) {
	for _, c := range []struct {
		reads []int
		want  string
		fails bool
	}{
		{[]int{11}, "hello world", false},
		{[]int{2, 3, 6}, "hello world", false},
		{[]int{0, 5, 6}, "hello world", false},
		{[]int{2}, "he", true},
		{nil, "", true},
	} {
		f := memfs.New(memfs.Options{})
		root, _, err := f.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		how := vfs.OpenHow{Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}}
		file, _, err := f.Open(t.Context(), vfs.At{Dir: root, Name: "f"}, &how)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := vfs.WriteFull(t.Context(), file, []byte("hello world"), 0, vfs.FileSync, new(vfs.Written)); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := vfs.Resolve(t.Context(), f, root, "f", true)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		out := &output{w: bufio.NewWriter(&got), stderr: io.Discard}
		err = cat(t.Context(), out, &curt{f, c.reads}, r, make([]byte, 100))
		if ferr := out.w.Flush(); ferr != nil {
			t.Fatal(ferr)
		}
		if got.String() != c.want || errors.Is(err, io.ErrUnexpectedEOF) != c.fails || err != nil != c.fails {
			t.Errorf("reads of %d: %q, %v", c.reads, got.String(), err)
		}
	}
}
