package objecttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// mutantEnv names the mutant that a child process runs the suite on.
const mutantEnv = "OBJECTTEST_MUTANT"

// mutant is a store with one lie. What is nil is the store's own.
type mutant struct {
	object.Store
	put    func(object.Store, context.Context, string, io.Reader, object.PutOptions) (object.Info, error)
	get    func(object.Store, context.Context, string, int64, int64) (io.ReadCloser, object.Info, error)
	list   func(object.Store, context.Context, string, string, int) (object.Page, error)
	delete func(object.Store, context.Context, string) error
}

func (m *mutant) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if m.put == nil {
		return m.Store.Put(ctx, key, r, o)
	}
	return m.put(m.Store, ctx, key, r, o)
}

func (m *mutant) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	if m.get == nil {
		return m.Store.Get(ctx, key, off, n)
	}
	return m.get(m.Store, ctx, key, off, n)
}

func (m *mutant) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	if m.list == nil {
		return m.Store.List(ctx, prefix, after, limit)
	}
	return m.list(m.Store, ctx, prefix, after, limit)
}

func (m *mutant) Delete(ctx context.Context, key string) error {
	if m.delete == nil {
		return m.Store.Delete(ctx, key)
	}
	return m.delete(m.Store, ctx, key)
}

// mutants are the lies. The suite must find every one.
var mutants = map[string]mutant{
	"put-ignores-if-absent": {put: func(s object.Store, ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
		o.IfAbsent = false
		return s.Put(ctx, key, r, o)
	}},
	"put-looks-then-writes": {put: func(s object.Store, ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
		if _, err := s.Stat(ctx, key); err == nil && o.IfAbsent {
			return object.Info{}, object.Fail("put", key, object.ErrExist)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return object.Info{}, object.Fail("put", key, err)
		}
		o.IfAbsent = false
		return s.Put(ctx, key, bytes.NewReader(b), o)
	}},
	"put-ignores-the-sum": {put: func(s object.Store, ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
		o.Sum = nil
		return s.Put(ctx, key, r, o)
	}},
	"put-ignores-the-size": {put: func(s object.Store, ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
		o.Size = -1
		return s.Put(ctx, key, r, o)
	}},
	"put-deletes-first": {put: func(s object.Store, ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
		if !o.IfAbsent {
			if err := s.Delete(ctx, key); err != nil {
				return object.Info{}, err
			}
		}
		return s.Put(ctx, key, r, o)
	}},
	"put-stores-what-came-before-an-error": {put: func(s object.Store, ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
		return s.Put(ctx, key, swallows{r}, o)
	}},
	"get-ignores-the-range": {get: func(s object.Store, ctx context.Context, key string, off, _ int64) (io.ReadCloser, object.Info, error) {
		return s.Get(ctx, key, off, -1)
	}},
	"get-is-deaf": {get: func(s object.Store, _ context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
		return s.Get(context.Background(), key, off, n)
	}},
	"get-follows-replacements": {get: func(s object.Store, ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
		r, info, err := s.Get(ctx, key, off, n)
		if err == nil {
			r = &follows{r, func() (io.ReadCloser, object.Info, error) { return s.Get(ctx, key, off, n) }}
		}
		return r, info, err
	}},
	"list-includes-after": {list: func(s object.Store, ctx context.Context, prefix, after string, limit int) (object.Page, error) {
		p, err := s.List(ctx, prefix, after, limit)
		if info, serr := s.Stat(ctx, after); serr == nil {
			info.Sum = object.Sum{}
			p.Objects = append([]object.Info{info}, p.Objects...)
		}
		return p, err
	}},
	"list-takes-prefixes-for-directories": {list: func(s object.Store, ctx context.Context, prefix, after string, limit int) (object.Page, error) {
		if prefix != "" && !strings.HasSuffix(prefix, "/") {
			prefix += "/"
		}
		return s.List(ctx, prefix, after, limit)
	}},
	"list-ends-after-a-page": {list: func(s object.Store, ctx context.Context, prefix, after string, limit int) (object.Page, error) {
		p, err := s.List(ctx, prefix, after, limit)
		p.More = false
		return p, err
	}},
	"delete-wants-an-object": {delete: func(s object.Store, ctx context.Context, key string) error {
		if _, err := s.Stat(ctx, key); err != nil {
			return err
		}
		return s.Delete(ctx, key)
	}},
	"delete-takes-what-is-below": {delete: func(s object.Store, ctx context.Context, key string) error {
		if object.CheckKey(key) == nil {
			for info, err := range object.All(ctx, s, key+"/") {
				if err != nil {
					return err
				}
				if err := s.Delete(ctx, info.Key); err != nil {
					return err
				}
			}
		}
		return s.Delete(ctx, key)
	}},
}

// swallows takes an error for the end.
type swallows struct{ io.Reader }

func (s swallows) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// follows opens the object when it is first read.
type follows struct {
	io.ReadCloser
	again func() (io.ReadCloser, object.Info, error)
}

func (f *follows) Read(p []byte) (int, error) {
	if f.again != nil {
		if r, _, err := f.again(); err == nil {
			if err := f.Close(); err != nil {
				return 0, err
			}
			f.ReadCloser = r
		}
		f.again = nil
	}
	return f.ReadCloser.Read(p)
}

// TestMutants runs the suite on each mutant, in a process of its own, and wants it
// to fail there.
func TestMutants(t *testing.T) {
	if name := os.Getenv(mutantEnv); name != "" {
		m, ok := mutants[name]
		if !ok {
			t.Skipf("there is no mutant %q", name) // which the parent takes for a failure
		}
		Run(t, Config{New: func(*testing.T) object.Store {
			m.Store = object.NewMemory(object.MemoryOptions{})
			return &m
		}})
		return
	}
	for name := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutants$", "-test.failfast", "-test.timeout=60s")
			child.Env = append(os.Environ(), mutantEnv+"="+name)
			out, err := child.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), "--- FAIL: TestMutants/") {
				t.Fatalf("the suite does not find it: %v\n%s", err, out)
			}
			if strings.Contains(string(out), "panic:") {
				t.Errorf("the suite panics:\n%s", out)
			}
		})
	}
}
