package cache_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

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

// BenchmarkHit reads 4 KiB that are kept. BenchmarkPread is what it is compared with: the same of the entry's file, or of any
// other.
func BenchmarkHit(b *testing.B) {
	r := newRig(b, memfs.Options{}, store.Options{})
	data := content(1, 16<<20)
	r.put("f", data)
	f := r.open(r.fs, "f")
	r.wantFile(f, data, 1<<20)
	p, i := make([]byte, 4096), uint64(0)
	b.SetBytes(4096)
	b.ReportAllocs()
	for b.Loop() {
		i++
		if _, _, err := f.ReadAt(b.Context(), p, i*7919*4096%(16<<20), nil); err != nil {
			b.Fatal(err)
		}
	}
	r.ok(f.Close(b.Context()))
}

func BenchmarkPread(b *testing.B) {
	name := filepath.Join(b.TempDir(), "f")
	if err := os.WriteFile(name, content(1, 16<<20), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(name) //nolint:gosec // The test's own.
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	p, i := make([]byte, 4096), int64(0)
	b.SetBytes(4096)
	for b.Loop() {
		i++
		if _, err := f.ReadAt(p, i*7919*4096%(16<<20)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSequential reads a file of 64 MiB in a row from a server behind 100 MB/s: without a cache, for the first time, and
// again when the kernel has dropped what it had of the disk; and from a local file of which it has.
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
			st.Flush()
			read(b, fs)
			if err := st.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("warm", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			names, err := filepath.Glob(filepath.Join(store.Path(dir, ""), "data", "*", "*"))
			if err != nil || len(names) != 1 {
				b.Fatal(names, err)
			}
			b.StopTimer()
			drop(b, names[0])
			fs, st := open(b)
			b.StartTimer()
			read(b, fs)
			b.StopTimer()
			if s := fs.Stats(); s.Bypassed > 0 {
				b.Logf("%+v", s)
			}
			if err := st.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("local", func(b *testing.B) {
		name := filepath.Join(b.TempDir(), "f")
		r.ok(os.WriteFile(name, data, 0o600))
		p := make([]byte, 1<<20)
		b.SetBytes(size)
		for b.Loop() {
			b.StopTimer()
			drop(b, name)
			b.StartTimer()
			f, err := os.Open(name)
			r.ok(err)
			for off := int64(0); off < size; off += 1 << 20 {
				if _, err := f.ReadAt(p, off); err != nil {
					b.Fatal(err)
				}
			}
			r.ok(f.Close())
		}
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
