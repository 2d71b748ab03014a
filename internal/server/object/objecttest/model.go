package objecttest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

var modelTests = []test{{"model", model}}

const (
	modelSeed  = 88 // always the same, so that a failure repeats
	modelSteps = 500
)

// model makes random calls of the store and of the fake, and compares.
func model(e *env) {
	fake := object.NewMemory(object.MemoryOptions{})
	r := rand.New(rand.NewPCG(modelSeed, 0))
	keys := []string{"a", "a/b", "a/b/c", "ab", "ab/c", "b0", "sha256/00", "sha256/01", "x/y/z"}
	for step := range modelSteps {
		key := keys[r.IntN(len(keys))]
		switch r.IntN(5) {
		case 0, 1:
			content := random(r.Uint64(), r.IntN(200)*r.IntN(700))
			o := object.PutOptions{Size: -1, IfAbsent: r.IntN(2) == 0}
			if r.IntN(2) == 0 {
				o.Size = int64(len(content) + r.IntN(10)/9)
			}
			a, errA := e.s.Put(e.ctx(), key, bytes.NewReader(content), o)
			b, errB := fake.Put(e.ctx(), key, bytes.NewReader(content), o)
			e.same(step, "put", a, b, errA, errB)
		case 2:
			e.same(step, "delete", object.Info{}, object.Info{}, e.s.Delete(e.ctx(), key), fake.Delete(e.ctx(), key))
		case 3:
			off, n := int64(r.IntN(100)*r.IntN(700)), int64(r.IntN(200)*r.IntN(700))-1
			a, infoA, errA := read(e, e.s, key, off, n)
			b, infoB, errB := read(e, fake, key, off, n)
			e.same(step, "get", infoA, infoB, errA, errB)
			if !bytes.Equal(a, b) {
				e.Fatalf("step %d: %d bytes from %d on, of %s: other ones", step, n, off, key)
			}
		case 4:
			a, errA := e.s.Stat(e.ctx(), key)
			b, errB := fake.Stat(e.ctx(), key)
			e.same(step, "stat", a, b, errA, errB)
			prefix, after, limit := key[:r.IntN(len(key)+1)], keys[r.IntN(len(keys))], r.IntN(4)
			pageA, errA := e.s.List(e.ctx(), prefix, after, limit)
			pageB, errB := fake.List(e.ctx(), prefix, after, limit)
			e.same(step, "list", object.Info{}, object.Info{}, errA, errB)
			if len(pageA.Objects) != len(pageB.Objects) {
				e.Fatalf("step %d: %+v, want %+v", step, pageA, pageB)
			}
			for i := range pageA.Objects {
				e.same(step, "list", pageA.Objects[i], pageB.Objects[i], nil, nil)
			}
		}
	}
}

// same compares what two stores say, but for the times.
func (e *env) same(step int, what string, a, b object.Info, errA, errB error) {
	e.Helper()
	if (errA == nil) != (errB == nil) {
		e.Fatalf("step %d: %s: %v, want %v", step, what, errA, errB)
	}
	for _, kind := range []error{object.ErrNotExist, object.ErrExist, object.ErrRange, object.ErrMismatch} {
		if errors.Is(errA, kind) != errors.Is(errB, kind) {
			e.Fatalf("step %d: %s: %v, want %v", step, what, errA, errB)
		}
	}
	if a.ModTime = b.ModTime; a != b {
		e.Fatalf("step %d: %s: %+v, want %+v", step, what, a, b)
	}
}

func read(e *env, s object.Store, key string, off, n int64) ([]byte, object.Info, error) {
	r, info, err := s.Get(e.ctx(), key, off, n)
	if err != nil {
		return nil, info, err
	}
	b, err := io.ReadAll(r)
	return b, info, errors.Join(err, r.Close())
}
