package memfs

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// What every vfs.FS has to do is tested by vfs/vfstest; here stands what is
// this one's own.

// create makes an FS, and wants all files closed in the end.
func create(t *testing.T, opt Options) *FS {
	t.Helper()
	f := New(opt)
	t.Cleanup(func() {
		if n := f.OpenFiles(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	})
	return f
}

// put makes a file and leaves it open until the test ends.
func put(t *testing.T, f *FS, name string) (vfs.Handle, vfs.File) {
	t.Helper()
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, opened, err := f.Open(t.Context(), vfs.At{Dir: root, Name: name}, &vfs.OpenHow{
		Access: vfs.ShareRead | vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return opened.H, file
}

func write(t *testing.T, file vfs.File, off uint64, p []byte, how vfs.Stability) vfs.Written {
	t.Helper()
	var w vfs.Written
	if n, err := file.WriteAt(t.Context(), p, off, how, &w); err != nil || n != len(p) {
		t.Fatalf("write at %d: %d of %d, %v", off, n, len(p), err)
	}
	return w
}

func commit(t *testing.T, file vfs.File, off, n uint64) vfs.Written {
	t.Helper()
	var w vfs.Written
	if err := file.Commit(t.Context(), off, n, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func content(t *testing.T, file vfs.File) []byte {
	t.Helper()
	p := make([]byte, 1<<20)
	n, eof, err := vfs.ReadFull(t.Context(), file, p, 0)
	if err != nil || !eof {
		t.Fatalf("read: eof %t, %v", eof, err)
	}
	return p[:n]
}

// fill is n bytes of one kind.
func fill(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }

func TestRestart(t *testing.T) {
	const size = 3 * pageSize
	tests := []struct {
		name string
		do   func(t *testing.T, file vfs.File)
		want []byte
	}{
		{"nothing is lost without writes", func(*testing.T, vfs.File) {}, fill('a', size)},
		{"unstable bytes are lost", func(t *testing.T, file vfs.File) {
			write(t, file, 0, fill('b', size), vfs.Unstable)
		}, fill('a', size)},
		{"what extended the file is lost", func(t *testing.T, file vfs.File) {
			write(t, file, size, fill('b', 10), vfs.Unstable)
		}, fill('a', size)},
		{"stable bytes stay", func(t *testing.T, file vfs.File) {
			write(t, file, 0, fill('b', size), vfs.DataSync)
		}, fill('b', size)},
		{"committed bytes stay", func(t *testing.T, file vfs.File) {
			write(t, file, 0, fill('b', size), vfs.Unstable)
			commit(t, file, 0, 0)
		}, fill('b', size)},
		{"a commit saves its pages alone", func(t *testing.T, file vfs.File) {
			write(t, file, 0, fill('b', size), vfs.Unstable)
			commit(t, file, pageSize, pageSize)
		}, slices.Concat(fill('a', pageSize), fill('b', pageSize), fill('a', pageSize))},
		{"a commit of the end keeps the size, and a hole before it", func(t *testing.T, file vfs.File) {
			write(t, file, size, fill('b', 2*pageSize), vfs.Unstable)
			commit(t, file, size+pageSize, pageSize)
		}, slices.Concat(fill('a', size), fill(0, pageSize), fill('b', pageSize))},
		{"a stable write over an unstable one stays", func(t *testing.T, file vfs.File) {
			write(t, file, 0, fill('b', size), vfs.Unstable)
			write(t, file, pageSize, fill('c', pageSize), vfs.FileSync)
		}, slices.Concat(fill('a', pageSize), fill('c', pageSize), fill('a', pageSize))},
		{"a truncation stays, and brings nothing back", func(t *testing.T, file vfs.File) {
			write(t, file, 0, fill('b', size), vfs.Unstable)
			if _, err := file.Truncate(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			if _, err := file.Truncate(t.Context(), pageSize); err != nil {
				t.Fatal(err)
			}
		}, slices.Concat(fill('a', 10), fill(0, pageSize-10))},
		{"what was committed and overwritten comes back", func(t *testing.T, file vfs.File) {
			write(t, file, 0, fill('b', size), vfs.Unstable)
			commit(t, file, 0, 0)
			write(t, file, 0, fill('c', size), vfs.Unstable)
		}, fill('b', size)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := create(t, Options{})
			_, file := put(t, f, "file")
			write(t, file, 0, fill('a', size), vfs.FileSync)
			tt.do(t, file)
			f.Restart()
			if got := content(t, file); !bytes.Equal(got, tt.want) {
				t.Errorf("%d bytes %.20q..., want %d bytes %.20q...", len(got), got, len(tt.want), tt.want)
			}
		})
	}
}

func TestRestartChangesVerifier(t *testing.T) {
	f := create(t, Options{Verifier: vfs.Verifier{7: 255}})
	_, file := put(t, f, "file")
	before := write(t, file, 0, []byte("x"), vfs.Unstable).Verf
	if got := commit(t, file, 0, 0).Verf; got != before {
		t.Errorf("verifier %x without a restart, %x before", got, before)
	}
	f.Restart()
	if got, want := commit(t, file, 0, 0).Verf, (vfs.Verifier{6: 1}); got != want {
		t.Errorf("verifier %x after the restart, want %x", got, want)
	}
}

// TestRestartForgetsNameless looks at a file that was open without a name.
func TestRestartForgetsNameless(t *testing.T) {
	f := create(t, Options{})
	h, file := put(t, f, "file")
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Remove(t.Context(), root, "file", false); err != nil {
		t.Fatal(err)
	}
	if _, err := f.GetAttr(t.Context(), h, vfs.MaskV3); err != nil {
		t.Errorf("open, and gone before the restart: %v", err)
	}
	f.Restart()
	if _, err := f.GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("getattr after the restart: %v, want %v", err, vfs.ErrStale)
	}
	if _, _, err := file.ReadAt(t.Context(), make([]byte, 1), 0, nil); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("read after the restart: %v, want %v", err, vfs.ErrStale)
	}
}

func TestFault(t *testing.T) {
	var ops []string
	broken := ""
	f := create(t, Options{Fault: func(_ context.Context, op string, h vfs.Handle) error {
		ops = append(ops, op)
		if h.IsZero() {
			t.Errorf("%s without a handle", op)
		}
		if op == broken {
			return vfs.ErrIO
		}
		return nil
	}})
	_, file := put(t, f, "file")
	write(t, file, 0, []byte("content"), vfs.FileSync)
	if want := []string{"root", "open", "write"}; !slices.Equal(ops, want) {
		t.Errorf("the hook saw %q, want %q", ops, want)
	}
	broken = "write"
	var w vfs.Written
	if n, err := file.WriteAt(t.Context(), []byte("CONTENT"), 0, vfs.FileSync, &w); n != 0 || !errors.Is(err, vfs.ErrIO) {
		t.Errorf("a write that the hook fails: %d, %v", n, err)
	}
	if got := content(t, file); string(got) != "content" {
		t.Errorf("%q after a write that failed", got)
	}
}
