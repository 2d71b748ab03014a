package backup

import (
	"context"
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// wantRefused wants a backup to make no snapshot, and to leave what there is.
func (b *bed) wantRefused(change func(o *Options)) {
	b.t.Helper()
	o := b.options()
	change(&o)
	before, err := snapshot.Roots(b.t.Context(), b.store, "")
	if err != nil {
		b.t.Fatal(err)
	}
	partial := o.Partial != nil
	sum, err := Run(b.t.Context(), o)
	after, lerr := snapshot.Roots(b.t.Context(), b.store, "")
	if !errors.Is(err, ErrEmpty) || lerr != nil || sum.Snapshot != "" || sum.Partial || len(after) != len(before) {
		b.t.Errorf("%v, %v, %+v, %d roots and %d before", err, lerr, sum, len(after), len(before))
	}
	if o = b.options(); partial && (o.Partial == nil || !hasSomething(b.t.Context(), o.Partial)) {
		b.t.Error("what was left to go on from has gone")
	}
}

// TestEmptySource wants no snapshot of a tree in which nothing is met, where an earlier one has something: one that a stopped backup has
// left, or a complete one.
func TestEmptySource(t *testing.T) {
	b := newBed(t)
	nothing := func(*Options) {}
	empty := func() {
		t.Helper()
		for _, name := range []string{"a", "b"} {
			if _, err := b.fs.Remove(t.Context(), b.root, name, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill := func() {
		b.file(b.root, "a", "a")
		b.file(b.root, "b", "b")
	}
	if sum, _ := b.backup(); sum.Dirs != 1 || !sum.Complete {
		t.Errorf("nothing, on top of nothing: %+v", sum)
	}

	fill()
	ctx, cancel := context.WithCancel(t.Context())
	b.fault = func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "read" && b.calls["read"].Load() == 2 {
			cancel()
		}
		return nil
	}
	o := b.options()
	o.Parallel = 1
	if sum, err := Run(ctx, o); !errors.Is(err, context.Canceled) || !sum.Partial || sum.Files != 1 {
		t.Fatalf("%v: %+v", err, sum)
	}
	b.fault = nil
	empty()
	b.wantRefused(nothing)

	fill()
	b.backup()
	all, err := filter.New(filter.Options{Rules: []filter.Rule{{Pattern: "*"}}})
	if err != nil {
		t.Fatal(err)
	}
	b.wantRefused(func(o *Options) { o.Filter = all })
	empty()
	b.wantRefused(nothing)
	b.wantRefused(func(o *Options) { o.DryRun = true })

	o = b.options()
	o.FromEmpty = true
	if sum, _ := b.run(o); !sum.Complete || sum.Files != 0 {
		t.Errorf("what was meant: %+v", sum)
	}
	if sum, _ := b.backup(); !sum.Complete {
		t.Errorf("on top of that: %+v", sum)
	}
}
