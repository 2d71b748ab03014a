package oncrpc

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/nfsbox/nfsbox/xdr"
)

func BenchmarkNull(b *testing.B) {
	for _, depth := range []int{1, 64} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			_, _, c := pair(b, ServerOptions{}, ClientOptions{})
			p := proc(procNull)
			b.ReportAllocs()
			if depth == 1 {
				for b.Loop() {
					r, err := c.Call(b.Context(), p, Auth{}, xdr.Void{}, xdr.Void{})
					if err != nil {
						b.Fatal(err)
					}
					r.Release()
				}
				return
			}
			b.SetParallelism(max(1, depth/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, err := c.Call(b.Context(), p, Auth{}, xdr.Void{}, xdr.Void{})
					if err != nil {
						b.Error(err)
						return
					}
					r.Release()
				}
			})
		})
	}
}

func BenchmarkRead1M(b *testing.B) {
	_, _, c := pair(b, ServerOptions{}, ClientOptions{})
	p := proc(procRead)
	buf := make([]byte, 1<<20)
	args := readArgs{Count: 1 << 20}
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		res := readRes{Data: buf}
		r, err := c.Call(b.Context(), p, Auth{}, &args, &res)
		if err != nil {
			b.Fatal(err)
		}
		r.Release()
	}
}
