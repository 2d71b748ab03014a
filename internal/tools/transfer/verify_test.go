package transfer

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestVerifyDropsWhatTheHostKeeps: a copy in a directory of this host is synced, and
// the host's pages of it forgotten, before it is read back; its attributes are synced
// afterwards.
func TestVerifyDropsWhatTheHostKeeps(t *testing.T) {
	for _, c := range []struct {
		err  error
		want error
	}{{nil, nil}, {vfs.ErrNotSupp, nil}, {vfs.ErrIO, vfs.ErrIO}} {
		var out hooks
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: out.fault})
		to, o := dst.target("f"), options(t)
		o.Verify = true
		to.FS = &syncer{FS: &openFS{dst.fs, func(f vfs.File) vfs.File { return &dropper{f, &out, c.err} }}}
		out.start(0, nil)
		_, err := File(t.Context(), src.file("f", pattern(1000)), to, o)
		if !errors.Is(err, c.want) {
			t.Errorf("%v: error %v", c.err, err)
		}
		want := []string{"open", "write", "commit", "drop", "read", "setattr", "commit", "close", "rename"}
		if c.want == nil && !slices.Equal(out.ops, want) {
			t.Errorf("%v: %q, want %q", c.err, out.ops, want)
		}
		dst.noTemps()
	}
}

// dropper says what it drops.
type dropper struct {
	vfs.File
	k   *hooks
	err error
}

func (d *dropper) Drop(ctx context.Context, _, _ uint64) error {
	if err := d.k.fault(ctx, "drop", vfs.Handle{}); err != nil {
		return err
	}
	return d.err
}
