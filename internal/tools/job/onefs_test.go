package job

import (
	"context"
	"iter"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// mounted says of one directory that it is on another file system, as a server does of what is mounted there. No listing of
// that directory is answered.
type mounted struct {
	vfs.FS
	t  *testing.T
	at vfs.Handle
}

func (f mounted) mark(h vfs.Handle, a *vfs.Attr) {
	if h == f.at {
		a.FSID = [2]uint64{7, 7}
	}
}

func (f mounted) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	a, err := f.FS.GetAttr(ctx, h, want)
	f.mark(h, &a)
	return a, err
}

func (f mounted) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	h, a, up, err := f.FS.Lookup(ctx, dir, name)
	f.mark(h, &a)
	return h, a, up, err
}

func (f mounted) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	if dir == f.at {
		f.t.Error("what is mounted is listed")
	}
	return func(yield func(*vfs.Entry, error) bool) {
		for e, err := range f.FS.ReadDir(ctx, dir, from, want, n) {
			if e != nil {
				own := *e
				f.mark(own.Handle, &own.Attr)
				e = &own
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestOneFileSystem: a directory of the source that is on another file system, by its id, is copied as an empty one, and counted.
// What the copy has in it is neither deleted nor extra.
func TestOneFileSystem(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("a/f", 0o644, nil)
	src.file("mnt/theirs/g", 0o644, nil)
	from := mounted{src.fs, t, src.at("mnt")}
	for i, how := range []*SyncOptions{nil, {}, {Delete: new(DeleteOptions)}, {Delete: new(DeleteOptions)}} {
		o, v := options(t, src, dst, "")
		o.Source.FS, o.OneFileSystem, o.Sync, o.DryRun = from, true, how, i == 3
		sum, err := Copy(t.Context(), o)
		if err != nil || sum.Errors > 0 || sum.Mounts != 1 || sum.Deleted > 0 {
			t.Fatalf("%+v: %+v, %v\n%v", how, sum, err, v)
		}
		if how == nil {
			if sum.Files != 1 || sum.Dirs != 3 {
				t.Errorf("copied: %+v", sum)
			}
			dst.file("mnt/precious", 0o644, nil)
		}
		dst.at("mnt/precious")
	}
	c, v := options(t, src, dst, "")
	vo := VerifyOptions{Source: c.Source, Dest: c.Dest, Pool: c.Pool, Now: c.Now, Progress: c.Progress}
	vo.Source.FS, vo.OneFileSystem = from, true
	sum, err := Verify(t.Context(), vo)
	// The directory's own time has changed with what came into it.
	if err != nil || sum.Extra+sum.Missing > 0 || sum.Errors > 0 || sum.Mounts != 1 || sum.Files != 1 || sum.Dirs != 3 {
		t.Errorf("verify: %+v, %v\n%v", sum, err, v)
	}
}
