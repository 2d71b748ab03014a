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
)

func testOpen(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	_, err := os.Open(name)
	fails(t, err, syscall.ENOENT)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	check(t, err)
	_, err = f.Read(make([]byte, 1))
	fails(t, err, syscall.EBADF)
	_, err = f.WriteString("0123456789")
	check(t, err)
	check(t, f.Close())
	st, err := os.Stat(name)
	check(t, err)
	if st.Mode() != 0o640 || st.Size() != 10 {
		t.Errorf("made with %v, %d bytes", st.Mode(), st.Size())
	}
	_, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	fails(t, err, syscall.EEXIST)
	f, err = os.OpenFile(name, os.O_RDWR|os.O_TRUNC, 0)
	check(t, err)
	_, err = f.WriteAt([]byte("xy"), 3)
	check(t, err)
	check(t, f.Close())
	content(t, name, "\x00\x00\x00xy")
	_, err = os.OpenFile(filepath.Join(name, "below"), os.O_RDONLY, 0)
	fails(t, err, syscall.ENOTDIR)
	_, err = os.OpenFile(dir, os.O_WRONLY, 0)
	fails(t, err, syscall.EISDIR)
	_, err = os.OpenFile(filepath.Join(dir, string(bytes.Repeat([]byte{'n'}, 256))), os.O_CREATE|os.O_WRONLY, 0o600)
	fails(t, err, syscall.ENAMETOOLONG)
	// Made without the right to write, and written through the open that made it.
	f, err = os.OpenFile(filepath.Join(dir, "ro"), os.O_CREATE|os.O_WRONLY, 0o400)
	check(t, err)
	_, err = f.WriteString("once")
	check(t, errors.Join(err, f.Close()))
	content(t, filepath.Join(dir, "ro"), "once")
}

func testAppend(t *testing.T, dir string) {
	name := filepath.Join(dir, "log")
	var files [2]*os.File
	for i := range files {
		var err error
		files[i], err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		check(t, err)
	}
	want := ""
	for i := range 100 {
		line := fmt.Sprintf("line %d\n", i)
		want += line
		_, err := files[i%2].WriteString(line)
		check(t, err)
	}
	check(t, errors.Join(files[0].Close(), files[1].Close()))
	content(t, name, want)
}

func testLargeOffsets(t *testing.T, dir string) {
	const far = 5<<30 + 123
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_CREATE|os.O_RDWR, 0o644)
	check(t, err)
	_, err = f.WriteAt([]byte("far"), far)
	check(t, err)
	got := make([]byte, 4)
	_, err = f.ReadAt(got[:3], far)
	check(t, err)
	n, err := f.ReadAt(got, far)
	if n != 3 || !errors.Is(err, io.EOF) || string(got[:3]) != "far" {
		t.Errorf("read %q, %v", got[:n], err)
	}
	if _, err := f.ReadAt(got, 1<<32); err != nil || !bytes.Equal(got, make([]byte, 4)) {
		t.Errorf("the hole reads %q, %v", got, err)
	}
	check(t, f.Close())
}

// testMapping touches no mapped byte itself, but by read(2) and write(2) of a pipe. The file system is this process:
// while a goroutine waits for a page outside of a system call, the garbage collector would stop all others, and wait
// for it for ever.
func testMapping(t *testing.T, dir string) {
	name := filepath.Join(dir, "f")
	check(t, os.WriteFile(name, bytes.Repeat([]byte{'.'}, 10000), 0o644))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	check(t, err)
	m, err := syscall.Mmap(int(f.Fd()), 0, 10000, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(t, err)
	r, w, err := os.Pipe()
	check(t, err)
	_, err = w.WriteString("mapped")
	check(t, err)
	_, err = r.Read(m[5000:5006])
	check(t, err)
	check(t, unix.Msync(m, unix.MS_SYNC))
	got := make([]byte, 6)
	_, err = f.ReadAt(got, 5000)
	check(t, err)
	if string(got) != "mapped" {
		t.Errorf("read %q", got)
	}
	_, err = f.WriteAt([]byte("W"), 5000)
	check(t, err)
	_, err = w.Write(m[5000:5006])
	check(t, err)
	_, err = r.Read(got)
	check(t, err)
	if string(got) != "Wapped" {
		t.Errorf("the mapping has %q", got)
	}
	check(t, errors.Join(syscall.Munmap(m), f.Close(), r.Close(), w.Close()))
}

// testDirect: O_DIRECT reads and writes past the kernel's cache.
func testDirect(t *testing.T, dir string) {
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_CREATE|os.O_RDWR|syscall.O_DIRECT, 0o644)
	check(t, err)
	raw := make([]byte, 3*4096)
	skip := -int(uintptr(unsafe.Pointer(&raw[0]))) & 4095
	p := raw[skip : skip+4096]
	copy(p, bytes.Repeat([]byte("direct  "), 512))
	want := bytes.Clone(p)
	_, err = f.WriteAt(p, 4096)
	check(t, err)
	clear(p)
	_, err = f.ReadAt(p, 4096)
	check(t, err)
	if !bytes.Equal(p, want) {
		t.Error("what was written directly is not what is read")
	}
	check(t, f.Close())
}
