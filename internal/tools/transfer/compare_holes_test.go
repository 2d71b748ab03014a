package transfer

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// sparse makes a file of 30 GiB with a few bytes at the places that at says.
func (e *end) sparse(name string, at ...uint64) Source {
	e.t.Helper()
	s := e.file(name, []byte("start"))
	ctx := context.Background()
	if _, err := e.fs.SetAttr(ctx, s.Handle, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 30 << 30}, nil); err != nil {
		e.t.Fatal(err)
	}
	f, _, err := e.fs.Open(ctx, vfs.At{H: s.Handle}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		e.t.Fatal(err)
	}
	for _, off := range at {
		var w vfs.Written
		if _, err := vfs.WriteFull(ctx, f, []byte("data"), off, vfs.FileSync, &w); err != nil {
			e.t.Fatal(err)
		}
	}
	if err := f.Close(ctx); err != nil {
		e.t.Fatal(err)
	}
	return s
}

// TestCompareHoles: what is a hole on both sides is not read; what is one on one side is.
func TestCompareHoles(t *testing.T) {
	var reads atomic.Int64
	count := func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "read" {
			reads.Add(1)
		}
		return nil
	}
	a, b := mem(t, memfs.Options{Fault: count}), mem(t, memfs.Options{Fault: count})
	x, y, z := a.sparse("x", 20<<30), b.sparse("y", 20<<30), b.sparse("z", 10<<30, 20<<30)
	o := &Options{Pool: new(bufpool.Pool)}
	if cmp, err := Compare(t.Context(), x, y, 30<<30, o); err != nil || cmp.Differ || cmp.Bytes != 30<<30 {
		t.Errorf("%v, %+v", err, cmp)
	}
	if n := reads.Load(); n == 0 || n > 20 {
		t.Errorf("%d reads", n)
	}
	if cmp, err := Compare(t.Context(), x, z, 30<<30, o); err != nil || !cmp.Differ || cmp.Offset != 10<<30 {
		t.Errorf("%v, %+v", err, cmp)
	}
	if _, err := b.fs.SetAttr(t.Context(), y.Handle, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 29 << 30}, nil); err != nil {
		t.Fatal(err)
	}
	if cmp, err := Compare(t.Context(), x, y, 30<<30, o); err != nil || !cmp.Differ {
		t.Errorf("one that is shorter: %v, %+v", err, cmp)
	}
}
