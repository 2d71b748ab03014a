//go:build linux

package posixsuite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
)

func testOpen(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	_, err := os.Open(name)
	expect.Errno(t, err, syscall.ENOENT)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	expect.OK(t, err)
	_, err = f.Read(make([]byte, 1))
	expect.Errno(t, err, syscall.EBADF)
	_, err = f.WriteString("0123456789")
	expect.OK(t, err)
	expect.OK(t, f.Close())
	st, err := os.Stat(name)
	expect.OK(t, err)
	if st.Mode() != 0o640 || st.Size() != 10 {
		t.Errorf("made with %v, %d bytes", st.Mode(), st.Size())
	}
	_, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	expect.Errno(t, err, syscall.EEXIST)
	f, err = os.OpenFile(name, os.O_RDWR|os.O_TRUNC, 0)
	expect.OK(t, err)
	_, err = f.WriteAt([]byte("xy"), 3)
	expect.OK(t, err)
	expect.OK(t, f.Close())
	expect.Content(t, name, "\x00\x00\x00xy")
	_, err = os.OpenFile(filepath.Join(name, "below"), os.O_RDONLY, 0)
	expect.Errno(t, err, syscall.ENOTDIR)
	_, err = os.OpenFile(dir, os.O_WRONLY, 0)
	expect.Errno(t, err, syscall.EISDIR)
	_, err = os.OpenFile(filepath.Join(dir, string(bytes.Repeat([]byte{'n'}, 256))), os.O_CREATE|os.O_WRONLY, 0o600)
	expect.Errno(t, err, syscall.ENAMETOOLONG)
	// Made without the right to write, and written through the open that made it.
	f, err = os.OpenFile(filepath.Join(dir, "ro"), os.O_CREATE|os.O_WRONLY, 0o400)
	expect.OK(t, err)
	_, err = f.WriteString("once")
	expect.OK(t, errors.Join(err, f.Close()))
	expect.Content(t, filepath.Join(dir, "ro"), "once")
}

func testAppend(t *testing.T, dir string) {
	name := filepath.Join(dir, "log")
	var files [2]*os.File
	for i := range files {
		var err error
		files[i], err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		expect.OK(t, err)
	}
	want := ""
	for i := range 100 {
		line := fmt.Sprintf("line %d\n", i)
		want += line
		_, err := files[i%2].WriteString(line)
		expect.OK(t, err)
	}
	expect.OK(t, errors.Join(files[0].Close(), files[1].Close()))
	expect.Content(t, name, want)
}

func testLargeOffsets(t *testing.T, dir string) {
	const far = 5<<30 + 123
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_CREATE|os.O_RDWR, 0o644)
	expect.OK(t, err)
	_, err = f.WriteAt([]byte("far"), far)
	expect.OK(t, err)
	got := make([]byte, 4)
	_, err = f.ReadAt(got[:3], far)
	expect.OK(t, err)
	n, err := f.ReadAt(got, far)
	if n != 3 || !errors.Is(err, io.EOF) || string(got[:3]) != "far" {
		t.Errorf("read %q, %v", got[:n], err)
	}
	if _, err := f.ReadAt(got, 1<<32); err != nil || !bytes.Equal(got, make([]byte, 4)) {
		t.Errorf("the hole reads %q, %v", got, err)
	}
	expect.OK(t, f.Close())
}

// testMapping touches no mapped byte itself, but by read(2) and write(2) of a pipe. The file system is this process:
// while a goroutine waits for a page outside of a system call, the garbage collector would stop all others, and wait
// for it for ever.
func testMapping(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	expect.OK(t, os.WriteFile(name, bytes.Repeat([]byte{'.'}, 10000), 0o644))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	expect.OK(t, err)
	m, err := syscall.Mmap(int(f.Fd()), 0, 10000, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	expect.OK(t, err)
	r, w, err := os.Pipe()
	expect.OK(t, err)
	_, err = w.WriteString("mapped")
	expect.OK(t, err)
	_, err = r.Read(m[5000:5006])
	expect.OK(t, err)
	expect.OK(t, unix.Msync(m, unix.MS_SYNC))
	got := make([]byte, 6)
	_, err = f.ReadAt(got, 5000)
	expect.OK(t, err)
	if string(got) != "mapped" {
		t.Errorf("read %q", got)
	}
	_, err = f.WriteAt([]byte("W"), 5000)
	expect.OK(t, err)
	_, err = w.Write(m[5000:5006])
	expect.OK(t, err)
	_, err = r.Read(got)
	expect.OK(t, err)
	if string(got) != "Wapped" {
		t.Errorf("the mapping has %q", got)
	}
	expect.OK(t, errors.Join(syscall.Munmap(m), f.Close(), r.Close(), w.Close()))
}

// testDirect: O_DIRECT reads and writes past the kernel's cache.
func testDirect(t *testing.T, dir string) {
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_CREATE|os.O_RDWR|syscall.O_DIRECT, 0o644)
	expect.OK(t, err)
	raw := make([]byte, 3*4096)
	skip := -int(uintptr(unsafe.Pointer(&raw[0]))) & 4095
	p := raw[skip : skip+4096]
	copy(p, bytes.Repeat([]byte("direct  "), 512))
	want := bytes.Clone(p)
	_, err = f.WriteAt(p, 4096)
	expect.OK(t, err)
	clear(p)
	_, err = f.ReadAt(p, 4096)
	expect.OK(t, err)
	if !bytes.Equal(p, want) {
		t.Error("what was written directly is not what is read")
	}
	expect.OK(t, f.Close())
}
