//go:build linux

package localfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// open makes an FS over dir and closes it with the test, which fails if that
// leaves a descriptor or a buffer behind.
func open(t testing.TB, dir string, o Options) *FS {
	t.Helper()
	before := openFDs(t)
	f, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := f.bufs.Outstanding(); n != 0 {
			t.Errorf("%d buffers are lost", n)
		}
		if after := openFDs(t); after != before {
			t.Errorf("%d descriptors were open before, %d after", before, after)
		}
	})
	return f
}

func openFDs(t testing.TB) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// bothModes runs a test with the kernel's handles, where they work, and with
// the map.
func bothModes(t *testing.T, f func(t *testing.T, o Options)) {
	t.Run("kernel", func(t *testing.T) {
		fs, err := New(t.TempDir(), Options{Handles: HandlesKernel})
		if err != nil {
			need.Missing(t, "root", fmt.Sprintf("no handles of the kernel here: %v", err))
		}
		if err := fs.Close(); err != nil {
			t.Fatal(err)
		}
		f(t, Options{Handles: HandlesKernel})
	})
	t.Run("map", func(t *testing.T) { f(t, Options{Handles: HandlesMap, StateDir: t.TempDir()}) })
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

func mkfile(t testing.TB, f vfs.FS, dir vfs.Handle, name, content string) vfs.Handle {
	t.Helper()
	file, o, err := f.Open(t.Context(), vfs.At{Dir: dir, Name: name},
		&vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg}})
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	var w vfs.Written
	if n, err := file.WriteAt(t.Context(), []byte(content), 0, vfs.Unstable, &w); err != nil || n != len(content) {
		t.Fatalf("write %s: %d, %v", name, n, err)
	}
	if err := file.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o.H
}

func mkdir(t testing.TB, f vfs.FS, dir vfs.Handle, name string) vfs.Handle {
	t.Helper()
	x, _, _, err := f.Create(t.Context(), dir, name, &vfs.CreateHow{Type: vfs.TypeDir})
	if err != nil {
		t.Fatalf("mkdir %s: %v", name, err)
	}
	return x
}

func content(t testing.TB, f vfs.FS, x vfs.Handle) string {
	t.Helper()
	s, err := readAll(t.Context(), f, x)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readAll(ctx context.Context, f vfs.FS, x vfs.Handle) (string, error) {
	file, _, err := f.Open(ctx, vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return "", err
	}
	buf := make([]byte, 4096)
	n, _, err := vfs.ReadFull(ctx, file, buf, 0)
	return string(buf[:n]), errors.Join(err, file.Close(ctx))
}

func root(t testing.TB, f vfs.FS) vfs.Handle {
	t.Helper()
	x, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func isRoot() bool { return unix.Geteuid() == 0 }
