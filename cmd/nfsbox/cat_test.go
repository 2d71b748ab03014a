package main

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
		short := &curt{f, c.reads}
		opened, _, err := short.Open(t.Context(), vfs.At{H: r.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
		if err != nil {
			t.Fatal(err)
		}
		err = cat(t.Context(), &got, short, opened, r, 0, make([]byte, 100))
		if got.String() != c.want || errors.Is(err, io.ErrUnexpectedEOF) != c.fails || err != nil != c.fails {
			t.Errorf("reads of %d: %q, %v", c.reads, got.String(), err)
		}
	}
}

// TestCatParts: parts of a file are those that head, tail and dd would write.
func TestCatParts(t *testing.T) {
	text := "one\ntwo\n\nfour\nlast"
	for range 3 {
		text += "\n" + strings.Repeat("a long line ", 9000) // over the boundaries of what is read at once
	}
	for _, end := range []string{"", "\n"} {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(text+end), 0o600); err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(text+end, "\n")
		if end != "" {
			lines = lines[:len(lines)-1]
		}
		for n := 1; n < 10; n++ {
			want := strings.Join(lines[:min(n, len(lines))], "")
			if status, got, stderr := command(t, "cat", "--head", fmt.Sprint(n), file); status != 0 || got != want {
				t.Errorf("--head %d: %d of %d bytes, status %d: %s", n, len(got), len(want), status, stderr)
			}
			want = strings.Join(lines[max(0, len(lines)-n):], "")
			if status, got, stderr := command(t, "cat", "--tail", fmt.Sprint(n), file); status != 0 || got != want {
				t.Errorf("--tail %d: %d of %d bytes, status %d: %s", n, len(got), len(want), status, stderr)
			}
		}
		for _, at := range []struct {
			args []string
			want string
		}{
			{[]string{"--offset", "4"}, (text + end)[4:]}, {[]string{"--offset", "4", "--count", "3"}, "two"}, {[]string{"--count", "0"}, ""},
			{[]string{"--offset=-1"}, (text + end)[len(text+end)-1:]}, {[]string{"--offset=-99999999", "--count=3"}, "one"}, {[]string{"--offset", "99999999"}, ""},
		} {
			if status, got, stderr := command(t, append([]string{"cat", file}, at.args...)...); status != 0 || got != at.want {
				t.Errorf("%v: %d of %d bytes, status %d: %s", at.args, len(got), len(at.want), status, stderr)
			}
		}
	}
	if status, _, _ := command(t, "cat", "--head", "1", "--tail", "1", "f"); status != exitUsage {
		t.Errorf("both ends: status %d", status)
	}
}
