//go:build linux

package iogate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// eachKind runs test for each kind; one that is not to be had here is said so.
func eachKind(t *testing.T, test func(t *testing.T, l *Lanes)) {
	for k := range kinds {
		t.Run(k.String(), func(t *testing.T) {
			g := gate(t, Options{Kind: k})
			if g.Kind() != k {
				t.Skip("LEFT OUT: ", g.Snapshot().Reason)
			}
			test(t, g.Export("e"))
		})
	}
}

func file(t testing.TB, content []byte) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, path, unix.O_RDWR)
}

func open(t testing.TB, path string, how int) int {
	t.Helper()
	fd, err := unix.Open(path, how|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	})
	return fd
}

// TestCalls writes and reads back from many goroutines, each its own part.
func TestCalls(t *testing.T) {
	const part, parts, rounds = 4096, 100, 20
	eachKind(t, func(t *testing.T, l *Lanes) {
		fd := file(t, nil)
		var all sync.WaitGroup
		for i := range parts {
			all.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				wrote, read := make([]byte, part), make([]byte, part)
				for range rounds {
					for j := range wrote {
						wrote[j] = byte(random.Uint32())
					}
					if err := l.Enter(t.Context(), Write, fmt.Sprint(i)); err != nil {
						t.Error(err)
						return
					}
					n, err := l.Pwrite(fd, wrote, int64(i*part))
					if err == nil && i == 0 {
						err = errors.Join(l.Fsync(fd), l.Fdatasync(fd))
					}
					if n != part || err != nil {
						t.Errorf("wrote %d: %v", n, err)
					}
					n, err = l.Pread(fd, read, int64(i*part))
					if n != part || err != nil || !bytes.Equal(read, wrote) {
						t.Errorf("read %d: %v; the same: %v", n, err, bytes.Equal(read, wrote))
					}
					l.Leave(Write)
				}
			})
		}
		all.Wait()
	})
}

// TestCallErrors compares counts and errors with those of the system calls.
func TestCallErrors(t *testing.T) {
	eachKind(t, func(t *testing.T, l *Lanes) {
		enter(t, l, Read, 1)
		defer l.Leave(Read)
		short := file(t, []byte("short"))
		p := make([]byte, 4096)
		if n, err := l.Pread(short, p, 2); n != 3 || err != nil {
			t.Errorf("at the end: %d, %v", n, err)
		}
		if n, err := l.Pread(short, p, 5); n != 0 || err != nil {
			t.Errorf("behind the end: %d, %v", n, err)
		}
		if n, err := l.Pread(short, nil, 0); n != 0 || err != nil {
			t.Errorf("nothing: %d, %v", n, err)
		}
		status, full, dir := open(t, "/proc/self/status", unix.O_RDONLY), open(t, "/dev/full", unix.O_RDWR), open(t, t.TempDir(), unix.O_RDONLY)
		readOnly := open(t, fmt.Sprintf("/proc/self/fd/%d", short), unix.O_RDONLY)
		for _, c := range []struct {
			name string
			op   op
			fd   int
			off  int64
			want unix.Errno
		}{
			{"read of no descriptor", opRead, -1, 0, unix.EBADF},
			{"sync of no descriptor", opFsync, -1, 0, unix.EBADF},
			{"datasync of no descriptor", opFdatasync, -1, 0, unix.EBADF},
			{"write for reading", opWrite, readOnly, 0, unix.EBADF},
			{"read of a directory", opRead, dir, 0, unix.EISDIR},
			{"no space", opWrite, full, 0, unix.ENOSPC},
			{"before the beginning", opRead, short, -1, unix.EINVAL},
			{"far beyond", opWrite, short, 1<<63 - 1, unix.EINVAL},
			{"sync of a file that has none", opFsync, status, 0, unix.EINVAL},
		} {
			if n, err := l.run(c.op, c.fd, p, c.off); n != 0 || !errors.Is(err, c.want) {
				t.Errorf("%s: %d, %v, want %v", c.name, n, err, c.want)
			}
			if _, err := c.op.do(c.fd, p, c.off); !errors.Is(err, c.want) {
				t.Errorf("%s: the system call itself says %v", c.name, err)
			}
			if n, err := c.op.block(c.fd, p, c.off); n != 0 || !errors.Is(err, c.want) {
				t.Errorf("%s: %d, %v where it is known to wait", c.name, n, err)
			}
		}
	})
}

// TestBlocking has more calls wait than there are processors, and then have what
// they wait for.
func TestBlocking(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	const callers = 20
	var all sync.WaitGroup
	var sum atomic.Int64
	for range callers {
		all.Go(func() {
			p := make([]byte, 1)
			for {
				n, errno := Blocking(unix.SYS_READ, uintptr(pipe[0]), uintptr(unsafe.Pointer(&p[0])), 1, 0)
				if errno == unix.EINTR {
					continue
				}
				if n != 1 || errno != 0 {
					t.Errorf("%d, %v", n, errno)
				}
				sum.Add(int64(p[0]))
				return
			}
		})
	}
	for i := range callers {
		runtime.Gosched()
		if _, err := unix.Write(pipe[1], []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	if got := sum.Load(); got != callers*(callers-1)/2 {
		t.Errorf("the bytes add up to %d", got)
	}
	for _, fd := range pipe {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
	if _, errno := Blocking(unix.SYS_FSYNC, uintptr(pipe[0]), 0, 0, 0); errno != unix.EBADF {
		t.Errorf("a closed descriptor: %v", errno)
	}
}

// TestUninvited makes more calls than there are places: a caller without one makes the
// call alone.
func TestUninvited(t *testing.T) {
	eachKind(t, func(t *testing.T, l *Lanes) {
		fd := file(t, []byte("content"))
		var all sync.WaitGroup
		for range 4 * DefaultThreads {
			all.Go(func() {
				p := make([]byte, 7)
				if n, err := l.Pread(fd, p, 0); n != 7 || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			})
		}
		all.Wait()
	})
}

// TestCloseUnderLoad closes the gate while many come and go: nobody who has a
// place finds a backend that has ended.
func TestCloseUnderLoad(t *testing.T) {
	for range 3 {
		eachKind(t, func(t *testing.T, l *Lanes) {
			fd := file(t, []byte("content"))
			var all sync.WaitGroup
			var entered atomic.Int64
			for i := range 16 {
				all.Go(func() {
					p := make([]byte, 7)
					for {
						err := l.Enter(t.Context(), Read, fmt.Sprint(i))
						if errors.Is(err, ErrClosed) {
							return
						}
						entered.Add(1)
						if err != nil {
							t.Error(err)
							return
						}
						if n, err := l.Pread(fd, p, 0); n != len(p) || err != nil {
							t.Errorf("%d, %v", n, err)
						}
						l.Leave(Read)
					}
				})
			}
			for entered.Load() < 100 {
				runtime.Gosched()
			}
			if err := l.g.Close(); err != nil {
				t.Error(err)
			}
			all.Wait()
		})
	}
}

// TestCallAllocations: none of ours, whatever thread makes the call.
func TestCallAllocations(t *testing.T) {
	need.Speed(t, "it allocates")
	eachKind(t, func(t *testing.T, l *Lanes) {
		fd, p := file(t, make([]byte, 4096)), make([]byte, 4096)
		ctx := context.Background()
		if n := testing.AllocsPerRun(300, func() {
			if _, ok := l.TryRead(fd, p, 0); ok {
				return
			}
			if err := l.Enter(ctx, Read, "client"); err != nil {
				t.Error(err)
			}
			if n, err := l.Pread(fd, p, 0); n != len(p) || err != nil {
				t.Error(n, err)
			}
			if err := l.Fdatasync(fd); err != nil {
				t.Error(err)
			}
			l.Leave(Read)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestTryRead reads what was written just now, and is thus in memory; or finds
// out that the file system cannot do so, and does not ask again.
func TestTryRead(t *testing.T) {
	for _, size := range []int{100, 4096, nowaitRaw, nowaitRaw + 1, 1 << 20} {
		g := gate(t, Options{})
		l, want := g.Export("e"), bytes.Repeat([]byte{7}, size)
		fd, p := file(t, want), make([]byte, size+10)
		n, ok := l.TryRead(fd, p[:size], 0)
		if _, errno := preadNowait(fd, p[:size], 0); errno == unix.EOPNOTSUPP {
			if n, ok := l.TryRead(fd, p[:size], 0); n != 0 || ok || g.Snapshot().Untried != 1 || g.Snapshot().Misses != 1 {
				t.Errorf("tried again: %d, %v, %+v", n, ok, g.Snapshot())
			}
			continue
		}
		if n != size || !ok || !bytes.Equal(p[:n], want) {
			t.Errorf("%d bytes: %d, %v", size, n, ok)
		}
		if n, ok := l.TryRead(fd, p, 0); n != size || ok {
			t.Errorf("%d bytes, and more asked for: %d, %v", size, n, ok)
		}
		if s := g.Snapshot(); s.Hits != 1 || s.Misses != 1 {
			t.Errorf("counted %d, %d", s.Hits, s.Misses)
		}
	}
	for _, o := range []Options{{Kind: None}, {Kind: Go}} {
		if n, ok := gate(t, o).Export("e").TryRead(0, make([]byte, 1), 0); n != 0 || ok {
			t.Errorf("%v reads without blocking: %d, %v", o.Kind, n, ok)
		}
	}
}

// TestTryReadBound: a read that finds too many at it goes the other way.
func TestTryReadBound(t *testing.T) {
	g := gate(t, Options{})
	fd, p := file(t, []byte("content")), make([]byte, 7)
	g.nowait.inside.Store(int64(nowaitPerCPU * runtime.GOMAXPROCS(0)))
	if n, ok := g.Export("e").TryRead(fd, p, 0); n != 0 || ok || g.Snapshot().Untried != 1 {
		t.Errorf("%d, %v, %d untried", n, ok, g.Snapshot().Untried)
	}
}

func BenchmarkPread(b *testing.B) {
	for k := range kinds {
		b.Run(k.String(), func(b *testing.B) {
			g := gate(b, Options{Kind: k})
			if g.Kind() != k {
				b.Skip(g.Snapshot().Reason)
			}
			l, fd, ctx := g.Export("e"), file(b, make([]byte, 4096)), b.Context()
			b.SetParallelism(16)
			b.ReportAllocs()
			b.RunParallel(func(run *testing.PB) {
				p := make([]byte, 4096)
				for run.Next() {
					_ = l.Enter(ctx, Read, "client")
					_, _ = l.Pread(fd, p, 0)
					l.Leave(Read)
				}
			})
		})
	}
}
