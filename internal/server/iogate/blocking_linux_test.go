package iogate

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestBlockingIsSyscall holds the results of Blocking against those of an ordinary
// system call, in whichever build this is.
func TestBlockingIsSyscall(t *testing.T) {
	fd, dir := file(t, []byte("0123456789")), open(t, t.TempDir(), unix.O_RDONLY)
	at := func(p []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p))) }
	got, want := make([]byte, 10), make([]byte, 10)
	for _, x := range []struct {
		what         string
		trap, fd     uintptr
		n, off       uintptr
		bytes, errno bool // whether it gives any
	}{
		{"a read", unix.SYS_PREAD64, uintptr(fd), 4, 3, true, false},
		{"a read at the end", unix.SYS_PREAD64, uintptr(fd), 10, 8, true, false},
		{"a read behind the end", unix.SYS_PREAD64, uintptr(fd), 10, 10, false, false},
		{"a write", unix.SYS_PWRITE64, uintptr(fd), 0, 0, false, false},
		{"no descriptor", unix.SYS_PREAD64, ^uintptr(0), 1, 0, false, true},
		{"a directory", unix.SYS_PREAD64, uintptr(dir), 1, 0, false, true},
		{"a negative offset", unix.SYS_PREAD64, uintptr(fd), 1, ^uintptr(0), false, true},
		{"no such call", 1 << 20, 0, 0, 0, false, true},
	} {
		clear(got)
		clear(want)
		n, errno := Blocking(x.trap, x.fd, at(got), x.n, x.off)
		m, _, must := syscall.Syscall6(x.trap, x.fd, at(want), x.n, x.off, 0, 0)
		if n != m || errno != must || string(got) != string(want) {
			t.Errorf("%s: %d, %v, %q; want %d, %v, %q", x.what, int(n), errno, got, int(m), must, want)
		}
		if (errno != 0) != x.errno || (errno == 0 && n > 0) != x.bytes {
			t.Errorf("%s: %d, %v", x.what, int(n), errno)
		}
	}
}

// TestBlockingLetsGo: while calls wait, in more threads than there are processors, the
// world stops for the garbage collector, buffers on stacks stay where they are, and what
// comes then arrives in them.
func TestBlockingLetsGo(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	callers := 4 * runtime.GOMAXPROCS(0)
	var begun, all sync.WaitGroup
	begun.Add(callers)
	for range callers {
		all.Go(func() {
			var p [8]byte
			begun.Done()
			for {
				n, errno := Blocking(unix.SYS_READ, uintptr(pipe[0]), uintptr(unsafe.Pointer(&p)), unsafe.Sizeof(p), 0)
				if errno == unix.EINTR {
					continue
				}
				if n != 8 || errno != 0 || string(p[:]) != "01234567" {
					t.Errorf("%d, %v, %q", n, errno, p)
				}
				return
			}
		})
	}
	begun.Wait()
	for range 3 {
		runtime.GC()
	}
	for range callers {
		if _, err := unix.Write(pipe[1], []byte("01234567")); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	for _, fd := range pipe {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
}

// TestLinknameHasFallback: what links to the runtime by name stands in one file, and is
// not in a build with the tag nolinkname, nor in one by a Go that is younger than this was
// tested with.
func TestLinknameHasFallback(t *testing.T) {
	const fast, plain = "blocking_linux.go", "blocking_plain_linux.go"
	for _, x := range []struct {
		what           string
		tags, releases []string
		want           string
	}{
		{"as usual", nil, nil, fast},
		{"nolinkname", []string{"nolinkname"}, nil, plain},
		{"the next Go", nil, []string{"go1.27"}, plain},
	} {
		c := build.Default
		c.GOOS, c.Compiler = "linux", "gc"
		c.BuildTags = x.tags
		c.ReleaseTags = append(slices.DeleteFunc(slices.Clone(c.ReleaseTags), func(tag string) bool { return tag == "go1.27" }), x.releases...)
		p, err := c.ImportDir(".", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{fast, plain} {
			if in := slices.Contains(p.GoFiles, name); in != (name == x.want) {
				t.Errorf("%s: %s is in the build: %v", x.what, name, in)
			}
		}
	}
	err := filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || e.Name() == fast {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "\n//go:"+"linkname ") {
			t.Errorf("%s links by name, too", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
