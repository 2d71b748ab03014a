package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// TestEach: what cannot be read is yielded under the name of its key, and the others follow.
func TestEach(t *testing.T) {
	store := object.NewMemory(object.MemoryOptions{})
	take(t, mem(t), store, Meta{Name: "a", Complete: true})
	take(t, mem(t), store, Meta{Name: "ab"})
	put(t, store, rootPrefix+"a/bad", []byte("{}\n"))
	put(t, store, partialPrefix+"ab", []byte("{}\n"))
	put(t, store, partialPrefix+"abc", []byte("{}\n"))
	put(t, store, rootPrefix+"junk", []byte("{}\n"))
	list := func(name string) (all []string) {
		for ref, err := range Each(t.Context(), store, name) {
			if err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(ref.Text(), " ", err == nil))
		}
		return all
	}
	id := strings.ToLower(epoch.Format(idLayout))
	for name, want := range map[string][]string{
		"":   {"a@" + id + " true", "a@bad false", "ab@" + id + " true", "junk@ false", "partial ab false", "partial abc false"},
		"a":  {"a@" + id + " true", "a@bad false"},
		"ab": {"ab@" + id + " true", "partial ab false"},
		"x":  nil,
	} {
		if got := list(name); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, err := range Each(t.Context(), store, "A") {
		if !errors.Is(err, ErrName) {
			t.Error(err)
		}
	}
}

// spoiled is a store in which keys are of something else, and others cannot be read.
type spoiled struct {
	object.Store
	foreign, unreadable string
}

func (s *spoiled) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	p, err := s.Store.List(ctx, prefix, after, limit)
	for i := range p.Objects {
		switch {
		case p.Objects[i].Key != s.foreign:
		case i == 0:
			return object.Page{}, object.Fail("list", prefix, &object.ForeignError{Key: s.foreign, What: "a directory"})
		default:
			return object.Page{Objects: p.Objects[:i], More: true}, err
		}
	}
	return p, err
}

func (s *spoiled) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	switch key {
	case s.foreign:
		return nil, object.Info{}, object.Fail("get", key, object.ErrCorrupted)
	case s.unreadable:
		return nil, object.Info{}, object.Fail("get", key, syscall.EACCES)
	}
	return s.Store.Get(ctx, key, off, n)
}

// TestEachAround: what has the place of a root, and a root that may not be read, are yielded with their names, and the others follow. The name
// of a snapshot leads to the error.
func TestEachAround(t *testing.T) {
	store := &spoiled{Store: object.NewMemory(object.MemoryOptions{})}
	var refs []Ref
	for i := range 5 {
		refs = append(refs, take(t, mem(t), store, Meta{Name: "a", Time: epoch.Add(time.Duration(i) * time.Hour), Complete: true}).Ref())
	}
	for _, bad := range [][2]int{{0, 1}, {2, 1}, {4, 3}} {
		store.foreign, store.unreadable = refs[bad[0]].Key(), refs[bad[1]].Key()
		n := 0
		for ref, err := range Each(t.Context(), store, "") {
			if want := n == bad[0] || n == bad[1]; ref.Text() != refs[n].Text() || (err != nil) != want || err != nil && !IsOwn(err) {
				t.Errorf("%s: %v", ref.Text(), err)
			}
			if (n == bad[1]) != errors.Is(err, fs.ErrPermission) || (n == bad[0]) != errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", ref.Text(), err)
			}
			n++
		}
		if n != len(refs) {
			t.Errorf("%d of %d", n, len(refs))
		}
	}
	if ref, err := Find(t.Context(), store, "a"); !errors.Is(err, ErrDamaged) {
		t.Errorf("%+v, %v", ref, err)
	}
	if _, err := Roots(t.Context(), &stuck{store.Store}, ""); !errors.Is(err, object.ErrForeign) {
		t.Error(err)
	}
}

// stuck is a store whose listings meet the same thing again and again.
type stuck struct{ object.Store }

func (s *stuck) List(context.Context, string, string, int) (object.Page, error) {
	return object.Page{}, &object.ForeignError{Key: "snapshots/a/b"}
}
