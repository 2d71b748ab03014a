//go:build linux

package localfs

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// benchModes runs a benchmark with each kind of handle.
func benchModes(b *testing.B, run func(b *testing.B, f *FS)) {
	for _, m := range []Mode{HandlesKernel, HandlesMap} {
		b.Run(m.String(), func(b *testing.B) {
			f, err := New(b.TempDir(), Options{Handles: m, Volatile: true})
			if err != nil {
				b.Skip(err)
			}
			run(b, f)
			if err := f.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

// views are the process itself and, where that can be, somebody else.
func views(b *testing.B, f *FS, run func(b *testing.B, v vfs.FS)) {
	b.Run("own", func(b *testing.B) { run(b, f) })
	if !f.Squashed() {
		b.Run("other", func(b *testing.B) { run(b, f.As(alice())) })
	}
}

func BenchmarkGetAttr(b *testing.B) {
	benchModes(b, func(b *testing.B, f *FS) {
		x := mkfile(b, f, root(b, f), "x", "data")
		for b.Loop() {
			if _, err := f.GetAttr(b.Context(), x, vfs.MaskV3); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	benchModes(b, func(b *testing.B, f *FS) {
		d := mkdir(b, f, root(b, f), "d")
		mkfile(b, f, d, "x", "data")
		views(b, f, func(b *testing.B, v vfs.FS) {
			for b.Loop() {
				if _, _, _, err := v.Lookup(b.Context(), d, "x"); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

// BenchmarkRead is what an NFSv3 READ does: an open, a read, a close.
func BenchmarkRead(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			benchModes(b, func(b *testing.B, f *FS) {
				p := make([]byte, size)
				x := mkfile(b, f, root(b, f), "x", string(p))
				views(b, f, func(b *testing.B, v vfs.FS) {
					b.SetBytes(int64(size))
					var post vfs.Attr
					for b.Loop() {
						file, _, err := v.Open(b.Context(), vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareRead})
						if err != nil {
							b.Fatal(err)
						}
						if n, _, err := file.ReadAt(b.Context(), p, 0, &post); err != nil || n != size {
							b.Fatal(n, err)
						}
						if err := file.Close(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	benchModes(b, func(b *testing.B, f *FS) {
		p := make([]byte, 4<<10)
		x := mkfile(b, f, root(b, f), "x", "")
		_, err := f.SetAttr(b.Context(), x, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o666}, nil)
		if err != nil {
			b.Fatal(err)
		}
		views(b, f, func(b *testing.B, v vfs.FS) {
			file, _, err := v.Open(b.Context(), vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareWrite})
			if err != nil {
				b.Fatal(err)
			}
			var w vfs.Written
			for b.Loop() {
				if _, err := file.WriteAt(context.Background(), p, 0, vfs.Unstable, &w); err != nil {
					b.Fatal(err)
				}
			}
			if err := file.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// BenchmarkCreate makes files and has their names stable, or the files as well,
// as the server does; alone and together with others.
func BenchmarkCreate(b *testing.B) {
	benchModes(b, func(b *testing.B, f *FS) {
		r := root(b, f)
		var made atomic.Int64
		for _, workers := range []int{1, 64} {
			for _, both := range []bool{false, true} {
				b.Run(fmt.Sprintf("workers=%d/both=%v", workers, both), func(b *testing.B) {
					before := f.Snapshot().Syncs
					b.SetParallelism(max(workers/runtime.GOMAXPROCS(0), 1))
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							if err := createStable(b, f, r, fmt.Sprint(made.Add(1)), both); err != nil {
								b.Error(err)
							}
						}
					})
					b.ReportMetric(float64(f.Snapshot().Syncs-before)/float64(b.N), "syncs/op")
				})
			}
		}
	})
}

func createStable(b *testing.B, f *FS, dir vfs.Handle, name string, both bool) error {
	x, _, _, err := f.Create(b.Context(), dir, name, &vfs.CreateHow{Type: vfs.TypeReg})
	if err == nil && both {
		err = f.Sync(b.Context(), x)
	}
	if err == nil {
		err = f.Sync(b.Context(), dir)
	}
	return err
}

func BenchmarkList(b *testing.B) {
	benchModes(b, func(b *testing.B, f *FS) {
		const files = 1000
		r := root(b, f)
		for i := range files {
			mkdir(b, f, r, fmt.Sprint(i))
		}
		for _, want := range []vfs.Mask{0, vfs.MaskV3 | vfs.MaskHandle} {
			b.Run(fmt.Sprintf("%#x", want), func(b *testing.B) {
				for b.Loop() {
					for _, err := range f.ReadDir(b.Context(), r, vfs.Pos{}, want, 0) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*files), "ns/entry")
			})
		}
	})
}
