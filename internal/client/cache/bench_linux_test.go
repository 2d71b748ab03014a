package cache_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/client/cache"
	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/vfs"
)

// lineFS is a server behind a line.
type lineFS struct {
	vfs.FS
	line *sim.Line
}

type lineFile struct {
	vfs.File
	line *sim.Line
}

func (l lineFS) As(c *vfs.Caller) vfs.FS { return lineFS{l.FS.As(c), l.line} }

func (l lineFS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, o, err := l.FS.Open(ctx, at, how)
	if err != nil {
		return nil, o, err
	}
	return lineFile{f, l.line}, o, nil
}

func (l lineFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	n, eof, err := l.File.ReadAt(ctx, p, off, post)
	if err == nil {
		err = l.line.Pass(ctx, n)
	}
	return n, eof, err
}

// BenchmarkHit reads 4 KiB that are kept, and as many of a local file in turn. On a busy machine the quickest turns of both
// say most: times-pread is their ratio.
func BenchmarkHit(b *testing.B) {
	const size, turn = 16 << 20, 500
	r := newRig(b, memfs.Options{}, store.Options{})
	data := content(1, size)
	r.put("f", data)
	f := r.open(r.fs, "f")
	r.wantFile(f, data, 1<<20)
	name := filepath.Join(b.TempDir(), "f")
	r.ok(os.WriteFile(name, data, 0o600))
	local, err := os.Open(name) //nolint:gosec // The test's own.
	r.ok(err)
	p, i := make([]byte, 4096), uint64(0)
	least := func(best time.Duration, read func(off uint64) error) time.Duration {
		start := time.Now()
		for range turn {
			i++
			if err := read(i * 7919 * 4096 % size); err != nil {
				b.Fatal(err)
			}
		}
		return min(best, time.Since(start))
	}
	hit, pread := time.Hour, time.Hour
	for b.Loop() {
		hit = least(hit, func(off uint64) error {
			_, _, err := f.ReadAt(b.Context(), p, off, nil)
			return err
		})
		pread = least(pread, func(off uint64) error {
			_, err := local.ReadAt(p, int64(off)) //nolint:gosec // Below size.
			return err
		})
	}
	b.ReportMetric(float64(hit)/turn, "ns/hit")
	b.ReportMetric(float64(pread)/turn, "ns/pread")
	b.ReportMetric(float64(hit)/float64(pread), "times-pread")
	r.ok(f.Close(b.Context()))
	r.ok(local.Close())
}

// BenchmarkSequential reads a file of 64 MiB in a row from a server behind 100 MB/s: without a cache, for the first time, and
// again when the kernel has dropped what it had of the disk, in turn with a local file of which it has. Of those the quickest
// of each say most on a busy machine.
func BenchmarkSequential(b *testing.B) {
	const size = 64 << 20
	data := content(2, size)
	below := memfs.New(memfs.Options{Mode: 0o777})
	behind := lineFS{below, sim.NewLine(0, 100e6)}
	r := &rig{t: b, below: below}
	r.put("f", data)
	read := func(b *testing.B, fs vfs.FS) {
		f := r.open(fs, "f")
		p := make([]byte, 1<<20)
		for off := uint64(0); off < size; {
			n, _, err := f.ReadAt(b.Context(), p, off, nil)
			if err != nil || n == 0 {
				b.Fatal(n, err)
			}
			off += uint64(n)
		}
		r.ok(f.Close(b.Context()))
	}
	dir := b.TempDir()
	r.ok(chmod(dir))
	open := func(b *testing.B) (*cache.FS, *store.Store) {
		st, err := store.Open(store.Options{Dir: dir, Space: roomy})
		if err != nil {
			b.Fatal(err)
		}
		return cache.New(behind, st, cache.Options{Server: "s"}), st
	}
	r.ahead.Store(0)
	b.Run("without", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			read(b, behind)
		}
	})
	b.Run("first", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			fs, st := open(b)
			if _, err := st.Flush(); err != nil {
				b.Fatal(err)
			}
			read(b, fs)
			if err := st.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("warm", func(b *testing.B) {
		name := filepath.Join(b.TempDir(), "f")
		r.ok(os.WriteFile(name, data, 0o600))
		warm, local := time.Hour, time.Hour
		for b.Loop() {
			names, err := filepath.Glob(filepath.Join(store.Path(dir, ""), "data", "*", "*"))
			if err != nil || len(names) != 1 {
				b.Fatal(names, err)
			}
			drop(b, names[0])
			fs, st := open(b)
			start := time.Now()
			read(b, fs)
			warm = min(warm, time.Since(start))
			if s := fs.Stats(); s.Bypassed > 0 {
				b.Logf("%+v", s)
			}
			r.ok(st.Close())
			drop(b, name)
			start = time.Now()
			f, err := os.Open(name) //nolint:gosec // The test's own.
			r.ok(err)
			p := make([]byte, 1<<20)
			for off := int64(0); off < size; off += 1 << 20 {
				if _, err := f.ReadAt(p, off); err != nil {
					b.Fatal(err)
				}
			}
			local = min(local, time.Since(start))
			r.ok(f.Close())
		}
		b.ReportMetric(size/1e6/warm.Seconds(), "MB/s-warm")
		b.ReportMetric(size/1e6/local.Seconds(), "MB/s-local")
		b.ReportMetric(local.Seconds()/warm.Seconds(), "of-local")
	})
}

// drop has the kernel forget what it has of a file.
func drop(b *testing.B, name string) {
	f, err := os.OpenFile(name, os.O_RDWR, 0) //nolint:gosec // The test's own.
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }() // synced below
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		b.Fatal(err)
	}
}
