//go:build linux

package localio

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestAllocations asserts that local reads, writes and commits allocate nothing.
func TestAllocations(t *testing.T) {
	for name, dir := range map[string]string{"disk": t.TempDir(), "memory": inMemory(t)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, dir)
			f := r.ready(Options{})
			file, _ := open(t, f, "file", readWrite)
			small, large := make([]byte, 4<<10), make([]byte, 256<<10)
			write(t, file, string(large)+"more", 0, vfs.Unstable)
			more := []byte("more")
			var post vfs.Attr
			var w vfs.Written
			ctx := t.Context()
			for what, call := range map[string]func() (int, error){
				"small read":       func() (int, error) { n, _, err := file.ReadAt(ctx, small, 0, nil); return n, err },
				"attributes":       func() (int, error) { n, _, err := file.ReadAt(ctx, small, 0, &post); return n, err },
				"read at the end":  func() (int, error) { n, _, err := file.ReadAt(ctx, small, uint64(len(large)), nil); return n, err },
				"large read":       func() (int, error) { n, _, err := file.ReadAt(ctx, large, 0, nil); return n, err },
				"write":            func() (int, error) { return file.WriteAt(ctx, small, 0, vfs.Unstable, &w) },
				"write at the end": func() (int, error) { return file.WriteAt(ctx, more, uint64(len(large)), vfs.Unstable, &w) },
			} {
				n := testing.AllocsPerRun(100, func() {
					if n, err := call(); n == 0 || err != nil {
						t.Fatalf("%s: %d, %v", what, n, err)
					}
				})
				if n != 0 {
					t.Errorf("%s: %v allocations", what, n)
				}
			}
			r.wantTraffic(0, 0, 0)
		})
	}
}

// TestGate has more readers than places, one of whom gives up.
func TestGate(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	write(t, file, "content", 0, vfs.Unstable)
	wantBytes(t, file, 0, "content")
	for range maxBlocked {
		if err := f.s.gate.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	p := []byte("before.")
	wg.Go(func() {
		if _, _, err := file.ReadAt(ctx, p, 0, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("read: %v", err)
		}
		if _, err := file.WriteAt(ctx, p, 0, vfs.Unstable, new(vfs.Written)); !errors.Is(err, context.Canceled) {
			t.Errorf("write: %v", err)
		}
	})
	cancel()
	wg.Wait()
	if string(p) != "before." {
		t.Errorf("the buffer of who gave up is %q", p)
	}
	wg.Go(func() {
		if _, _, err := file.ReadAt(t.Context(), p, 0, nil); err != nil || string(p) != "content" {
			t.Errorf("read %q, %v", p, err)
		}
	})
	for range maxBlocked {
		f.s.gate.leave()
	}
	wg.Wait()
	r.wantTraffic(0, 0, 0)
}

// TestFar reads and writes where no file reaches.
func TestFar(t *testing.T) {
	r := newRig(t, t.TempDir())
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	for _, off := range []uint64{math.MaxInt64, 1 << 63, math.MaxUint64} {
		if n, err := file.WriteAt(t.Context(), []byte("x"), off, vfs.Unstable, new(vfs.Written)); n != 0 || err == nil {
			t.Errorf("write at %d: %d, %v", off, n, err)
		}
		if n, _, _ := file.ReadAt(t.Context(), make([]byte, 1), off, nil); n != 0 {
			t.Errorf("read at %d: %d", off, n)
		}
	}
	if _, err := file.WriteAt(t.Context(), []byte("x"), 0, vfs.FileSync+1, new(vfs.Written)); !errors.Is(err, vfs.ErrInval) {
		t.Errorf("a write of no stability: %v", err)
	}
}

// inLimits is in the environment of the process in which TestFileLimit lowers a
// limit, since that is the whole process'.
const inLimits = "NFSBOX_LOCALIO_LIMITS"

// TestFileLimit writes beyond the size of a file that this process may make
// (RLIMIT_FSIZE), which is not the server's limit: no signal, and the write goes
// over the network. (That stands for another process here, in vain.)
func TestFileLimit(t *testing.T) {
	if os.Getenv(inLimits) == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestFileLimit$")
		cmd.Env = append(os.Environ(), inLimits+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	r := newRig(t, t.TempDir())
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	write(t, file, "content", 0, vfs.Unstable)
	limit := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	_, err := file.WriteAt(t.Context(), []byte("x"), 1<<20, vfs.Unstable, new(vfs.Written))
	if !errors.Is(err, vfs.ErrFBig) {
		t.Errorf("write: %v", err)
	}
	r.wantTraffic(0, 1, 0)
}

// TestErrors are those of the contract.
func TestErrors(t *testing.T) {
	for errno, want := range map[unix.Errno]vfs.Status{
		unix.EIO: vfs.ErrIO, unix.ENOSPC: vfs.ErrNoSpace, unix.EDQUOT: vfs.ErrQuota, unix.EFBIG: vfs.ErrFBig, unix.ENODATA: vfs.ErrServerFault,
	} {
		if err := fail("call", errno); !errors.Is(err, want) {
			t.Errorf("%v became %v", errno, err)
		}
	}
	if fail("call", nil) != nil {
		t.Error("no error became one")
	}
}

// BenchmarkRead reads 4 KiB in memory: with a descriptor and nothing else, and as
// a File.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	r := newRig(b, dir)
	f := r.ready(Options{})
	file, _ := open(b, f, "file", readWrite)
	write(b, file, strings.Repeat("x", 1<<20), 0, vfs.Unstable)
	p := make([]byte, 4<<10)
	b.Run("pread", func(b *testing.B) {
		plain, err := os.Open(filepath.Join(dir, "file"))
		if err != nil {
			b.Fatal(err)
		}
		fd := int(plain.Fd())
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if n, err := unix.Pread(fd, p, int64(i%255)*4096); n != len(p) {
				b.Fatal(n, err)
			}
		}
		if err := plain.Close(); err != nil {
			b.Fatal(err)
		}
	})
	for name, file := range map[string]vfs.File{"local": file, "below": vfs.File(file.(*fileOf).below)} {
		b.Run(name, func(b *testing.B) {
			ctx := b.Context()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if n, _, err := file.ReadAt(ctx, p, uint64(i%255)*4096, nil); n != len(p) {
					b.Fatal(n, err)
				}
			}
		})
	}
}

type fileOf = file

// BenchmarkWrite writes 4 KiB, and commits each 64.
func BenchmarkWrite(b *testing.B) {
	r := newRig(b, b.TempDir())
	f := r.ready(Options{})
	file, _ := open(b, f, "file", readWrite)
	p := make([]byte, 4<<10)
	var w vfs.Written
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if n, err := file.WriteAt(b.Context(), p, uint64(i%64)*4096, vfs.Unstable, &w); n != len(p) {
			b.Fatal(n, err)
		}
		if i%64 == 63 {
			if err := file.Commit(b.Context(), 0, 0, &w); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestSmall: a small file that is used once goes over the network, and one that is
// used on, or is large, does not.
func TestSmall(t *testing.T) {
	r := newRig(t, inMemory(t))
	r.patient = true
	f := r.ready(Options{})
	file, _ := open(t, f, "small", readWrite)
	if w := write(t, file, "content", 0, vfs.Unstable); w.Committed != vfs.Unstable {
		t.Errorf("%+v", w)
	}
	commit(t, file)
	r.wantTraffic(0, 1, 1)
	again, _ := open(t, f, "small", vfs.ShareRead)
	wantBytes(t, again, 0, "content")
	r.wantTraffic(1, 1, 1)
	wantBytes(t, again, 0, "content")
	write(t, file, "CONTENT", 0, vfs.Unstable)
	commit(t, file)
	r.wantTraffic(1, 1, 1)
	third, _ := open(t, f, "small", vfs.ShareRead) // for which there is a descriptor
	wantBytes(t, third, 0, "CONTENT")
	large, _ := open(t, f, "large", readWrite)
	write(t, large, strings.Repeat("x", smallFile+1), 0, vfs.Unstable)
	commit(t, large)
	wantBytes(t, large, smallFile, "x")
	r.wantTraffic(1, 1, 1)
}
