package objecttest

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

var getTests = []test{
	{"get/ranges", func(e *env) {
		for _, size := range []int64{0, 1, 1000, 65536, large} {
			content := random(uint64(size), int(size))
			e.put("k", content)
			for _, off := range []int64{0, 1, size / 2, size - 1, size, size + 1, -1} {
				for _, n := range []int64{-1, 0, 1, size / 3, size, size + 1, 1 << 62} {
					got, _, err := e.get("k", off, n)
					if off < 0 || off > size {
						e.wantErr(err, object.ErrRange)
						continue
					}
					e.ok(err)
					end := size
					if n >= 0 && n < size-off {
						end = off + n
					}
					if !bytes.Equal(got, content[off:end]) {
						e.Fatalf("%d bytes from %d on, of %d: there are %d, or others", n, off, size, len(got))
					}
				}
			}
		}
	}},
	{"get/missing", func(e *env) {
		e.put("a/b", []byte("x"))
		for _, key := range []string{"none", "a", "a/b/c", "a/bb", "deep/er/er"} {
			e.wantNone(key)
		}
	}},
	{"get/deleted-while-open", func(e *env) {
		for _, size := range []int{10, large} {
			content := random(6, size)
			e.put("k", content)
			r, _, err := e.s.Get(e.ctx(), "k", 0, -1)
			e.ok(err)
			e.ok(e.s.Delete(e.ctx(), "k"))
			got, err := io.ReadAll(r)
			e.ok(errors.Join(err, r.Close()))
			if !bytes.Equal(got, content) {
				e.Errorf("an object of %d bytes that was open is no longer itself", size)
			}
		}
	}},
	{"get/cancelled", func(e *env) {
		for _, size := range []int{10, large} {
			e.put("k", random(7, size))
			ctx, cancel := context.WithCancel(e.ctx())
			r, _, err := e.s.Get(ctx, "k", 0, -1)
			e.ok(err)
			cancel()
			_, err = io.ReadAll(r)
			e.wantErr(err, context.Canceled)
			e.ok(r.Close())
		}
	}},
	{"get/reader", func(e *env) {
		// Asks odd things of a reader.
		for _, size := range []int{0, 10, large} {
			content := random(8, size)
			e.put("k", content)
			r, _, err := e.s.Get(e.ctx(), "k", 0, -1)
			e.ok(err)
			if n, err := r.Read(nil); n != 0 || (err != nil && size > 0) {
				e.Errorf("reading nothing: %d, %v", n, err)
			}
			got, err := io.ReadAll(r)
			e.ok(err)
			if !bytes.Equal(got, content) {
				e.Errorf("an object of %d bytes reads as one of %d", size, len(got))
			}
			for range 2 {
				if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					e.Errorf("behind the end: %d, %v", n, err)
				}
			}
			e.ok(r.Close())
			e.ok(r.Close())
			if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
				e.Errorf("a closed reader: %d, %v", n, err)
			}
		}
	}},
	{"get/corrupted", func(e *env) {
		if e.c.Corrupt == nil {
			e.Skip("nobody can corrupt this store")
		}
		for _, size := range []int{1, 1000, 65536, large} {
			e.put("k", random(9, size))
			e.c.Corrupt(e.T, e.s, "k")
			_, _, err := e.get("k", 0, -1)
			e.wantErr(err, object.ErrCorrupted)
		}
		e.put("k", []byte("good again"))
		e.want("k", []byte("good again"))
	}},
}
