package dir

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// BenchmarkPut puts objects of 50 KiB by their checksum from 64 goroutines, with
// and without syncs, with and without names for what is not finished, into one
// directory, 16 and 256 of them. Compare within one run only.
func BenchmarkPut(b *testing.B) {
	for _, noSync := range []bool{true, false} {
		for _, sys := range []Sys{osSys{}, named{osSys{}}} {
			for _, fanout := range []int{0, 1, 2} {
				b.Run(fmt.Sprintf("nosync=%v/%T/directories=%d", noSync, sys, 1<<(4*fanout)), func(b *testing.B) {
					s, err := Open(b.TempDir(), Options{Create: true, NoSync: noSync, Sys: sys})
					if err != nil {
						b.Fatal(err)
					}
					s.layout.Fanout = fanout
					benchPut(b, s)
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
				})
			}
		}
	}
}

func benchPut(b *testing.B, s *Store) {
	content := make([]byte, 50<<10)
	var n atomic.Int64
	b.SetBytes(int64(len(content)))
	b.SetParallelism(32) // on two processors
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key := object.ContentKey(object.SumOf(fmt.Append(nil, n.Add(1))))
			if _, err := s.Put(b.Context(), key, bytes.NewReader(content), object.PutOptions{Size: int64(len(content)), IfAbsent: true}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkGet reads an object of 50 KiB whole.
func BenchmarkGet(b *testing.B) {
	s, err := Open(b.TempDir(), Options{Create: true, NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Put(b.Context(), "key", bytes.NewReader(make([]byte, 50<<10)), object.PutOptions{Size: -1}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	p := make([]byte, chunk)
	for b.Loop() {
		r, _, err := s.Get(b.Context(), "key", 0, -1)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = r.Read(p)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStat looks at an object.
func BenchmarkStat(b *testing.B) {
	s, err := Open(b.TempDir(), Options{Create: true, NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Put(b.Context(), "key", bytes.NewReader(nil), object.PutOptions{Size: -1}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Stat(b.Context(), "key"); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
