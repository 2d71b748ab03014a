package objecttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing/iotest"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

var putTests = []test{
	{"put/sizes", func(e *env) {
		for i, n := range sizes {
			content := random(uint64(i), n)
			e.put("size", content)
			e.want("size", content)
		}
	}},
	{"put/announced", func(e *env) {
		for i, n := range sizes {
			content := random(uint64(i), n)
			sum := object.SumOf(content)
			info, err := e.s.Put(e.ctx(), "announced", bytes.NewReader(content), object.PutOptions{Size: int64(n), Sum: &sum})
			e.ok(err)
			e.wantInfo(info, "announced", content)
			e.want("announced", content)
		}
	}},
	{"put/replace", func(e *env) {
		e.put("k", []byte("the first and longer one"))
		r, _, err := e.s.Get(e.ctx(), "k", 0, -1)
		e.ok(err)
		e.put("k", []byte("the second"))
		e.want("k", []byte("the second"))
		old, err := io.ReadAll(r)
		e.ok(errors.Join(err, r.Close()))
		if string(old) != "the first and longer one" {
			e.Errorf("the object that was open has become %q", old)
		}
	}},
	{"put/if-absent", func(e *env) {
		o := object.PutOptions{Size: -1, IfAbsent: true}
		_, err := e.s.Put(e.ctx(), "k", strings.NewReader("first"), o)
		e.ok(err)
		_, err = e.s.Put(e.ctx(), "k", strings.NewReader("second"), o)
		e.wantErr(err, object.ErrExist)
		e.want("k", []byte("first"))
		e.ok(e.s.Delete(e.ctx(), "k"))
		_, err = e.s.Put(e.ctx(), "k", strings.NewReader("third"), o)
		e.ok(err)
		e.want("k", []byte("third"))
	}},
	{"put/mismatch", func(e *env) {
		for _, n := range []int{0, 1, 100, 65536, large} {
			content := random(1, n)
			other := object.SumOf([]byte("another content"))
			right := object.SumOf(content)
			for _, o := range []object.PutOptions{
				{Size: int64(n) + 1},
				{Size: int64(n) + 1, Sum: &right},
				{Size: int64(n) - 1, Sum: &right},
				{Size: int64(n), Sum: &other},
				{Size: -1, Sum: &other},
			} {
				if o.Size == -1 && o.Sum == &right {
					continue // of nothing one byte less is an unknown size
				}
				e.refused(func() io.Reader { return bytes.NewReader(content) }, o, object.ErrMismatch)
			}
		}
	}},
	{"put/failing-reader", func(e *env) {
		broken := errors.New("the reader is broken")
		for _, n := range []int{0, 1, 65536, large} {
			e.refused(func() io.Reader {
				return io.MultiReader(bytes.NewReader(random(2, n)), iotest.ErrReader(broken))
			}, anything, broken)
		}
		e.refused(func() io.Reader {
			return io.MultiReader(bytes.NewReader(random(2, large)), iotest.ErrReader(io.ErrUnexpectedEOF))
		}, anything, io.ErrUnexpectedEOF)
	}},
	{"put/odd-readers", func(e *env) {
		content := random(3, 70_000)
		for _, odd := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
			_, err := e.s.Put(e.ctx(), "odd", odd(bytes.NewReader(content)), anything)
			e.ok(err)
			e.want("odd", content)
		}
	}},
	{"put/cancelled", func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx())
		cancel()
		_, err := e.s.Put(ctx, "k", strings.NewReader("x"), anything)
		e.wantErr(err, context.Canceled)
		e.wantNone("k")

		ctx, cancel = context.WithCancel(e.ctx())
		defer cancel()
		content := bytes.NewReader(random(4, large))
		_, err = e.s.Put(ctx, "k", io.MultiReader(io.LimitReader(content, large/2), calls(cancel), content), anything)
		e.wantErr(err, context.Canceled)
		e.wantNone("k")

		_, err = e.s.Stat(ctx, "k")
		e.wantErr(err, context.Canceled)
		_, _, err = e.s.Get(ctx, "k", 0, -1)
		e.wantErr(err, context.Canceled)
		_, err = e.s.List(ctx, "", "", 0)
		e.wantErr(err, context.Canceled)
		e.wantErr(e.s.Delete(ctx, "k"), context.Canceled)
	}},
	{"put/reopen", func(e *env) {
		if e.c.Reopen == nil {
			e.Skip("this store cannot be opened anew")
		}
		content := random(5, large)
		e.put("kept/large", content)
		e.put("kept/empty", nil)
		e.put("gone", []byte("x"))
		e.ok(e.s.Delete(e.ctx(), "gone"))
		e.s = e.c.Reopen(e.T, e.s)
		e.want("kept/large", content)
		e.want("kept/empty", nil)
		e.wantNone("gone")
	}},
	{"put/closed", func(e *env) {
		e.put("k", []byte("x"))
		r, _, err := e.s.Get(e.ctx(), "k", 0, -1)
		e.ok(err)
		e.ok(e.s.Close())
		_, err = e.s.Put(e.ctx(), "k", strings.NewReader("y"), anything)
		e.wantErr(err, object.ErrClosed)
		_, _, err = e.s.Get(e.ctx(), "k", 0, -1)
		e.wantErr(err, object.ErrClosed)
		_, err = e.s.Stat(e.ctx(), "k")
		e.wantErr(err, object.ErrClosed)
		_, err = e.s.List(e.ctx(), "", "", 0)
		e.wantErr(err, object.ErrClosed)
		e.wantErr(e.s.Delete(e.ctx(), "k"), object.ErrClosed)
		b, err := io.ReadAll(r)
		e.ok(errors.Join(err, r.Close()))
		if string(b) != "x" {
			e.Errorf("a reader of before has read %q", b)
		}
	}},
}

// sizes are around what drivers may move at a time.
var sizes = []int{0, 1, 63, 64, 65, 4095, 4096, 4097, 65471, 65472, 65535, 65536, 65537, 131072, 131073, large}

// refused puts what must fail, where there is nothing and where there is
// something, and wants both as they were.
func (e *env) refused(r func() io.Reader, o object.PutOptions, want error) {
	e.Helper()
	e.put("there", []byte("as it was"))
	for _, key := range []string{"there", "none", "deep/er/none"} {
		_, err := e.s.Put(e.ctx(), key, r(), o)
		e.wantErr(err, want)
	}
	e.want("there", []byte("as it was"))
	e.wantNone("none")
	e.wantNone("deep/er/none")
}

// calls is a reader of nothing that calls itself.
type calls func()

func (c calls) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}
