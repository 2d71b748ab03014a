package transfer

import (
	"context"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// deaf answers that it has set attributes, and leaves some as they are.
type deaf struct {
	vfs.FS
	to     vfs.Mask
	silent bool // about the attributes, too
}

func (f *deaf) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	heard := *set
	heard.Valid &^= f.to
	wcc, err := f.FS.SetAttr(ctx, h, &heard, guard)
	if f.silent {
		wcc = vfs.WCC{}
	}
	return wcc, err
}

// TestDeafServer: what a server says that it has set, and shows that it has not, is
// lost. Set-id bits are not given to a file whose owner it has not changed.
func TestDeafServer(t *testing.T) {
	for _, c := range []struct {
		name string
		to   vfs.Mask
		mode uint32
		lost Lost
	}{
		{"hears", 0, 0o6751, Lost{}},
		{"owner", vfs.MaskUID, 0o640, Lost{Owner: true}},
		{"owner, and set-id bits", vfs.MaskUID, 0o6751, Lost{Owner: true, SetID: true}},
		{"group, and set-id bits", vfs.MaskGID, 0o6751, Lost{Owner: true, SetID: true}},
		{"mode", vfs.MaskMode, 0o640, Lost{Mode: true}},
		{"mode with set-id bits", vfs.MaskMode, 0o4600, Lost{SetID: true}},
		{"mtime", vfs.MaskMtime, 0o640, Lost{Times: true}},
		{"atime, which few keep", vfs.MaskAtime, 0o640, Lost{}},
	} {
		for _, silent := range []bool{false, true} {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			from := src.file("f", pattern(10))
			src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: 7, GID: 8})
			src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskMode, Mode: c.mode})
			from = src.source("f")
			to, o := dst.target("f"), options(t)
			to.FS, o.Owners = &deaf{dst.fs, c.to, silent}, &Owners{}
			for range 2 { // the second time with what it has learned
				res, err := File(t.Context(), from, to, o)
				if !silent && (err != nil || res.Lost != c.lost) {
					t.Errorf("%s: lost %+v, want %+v; %v", c.name, res.Lost, c.lost, err)
				}
				a := dst.source("f").Attr
				if a.Mode&setUID != 0 && a.UID != 7 || a.Mode&setGID != 0 && a.GID != 8 {
					t.Errorf("%s, silent %v: a file of %d:%d has mode %o", c.name, silent, a.UID, a.GID, a.Mode)
				}
			}
		}
	}
}

// TestDeafToLinks: a server that does not set the times of symbolic links, as
// nfs-ganesha, and says that it has.
func TestDeafToLinks(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.make("l", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"})
	src.set(src.source("l").Handle, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
	to := dst.target("l")
	to.FS = &deaf{FS: dst.fs, to: vfs.MaskMtime}
	if res, err := Symlink(t.Context(), src.source("l"), to, options(t)); err != nil || res.Lost != (Lost{Times: true}) {
		t.Errorf("lost %+v, %v", res.Lost, err)
	}
}

// TestCoarseTimes: a file system with coarser times than the source's has lost none
// that it could keep, whether it says how coarse they are or not.
func TestCoarseTimes(t *testing.T) {
	for _, delta := range []time.Duration{1, 100, time.Microsecond, time.Millisecond, 3 * time.Millisecond, time.Second, 2 * time.Second} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{TimeDelta: delta})
		from, to := src.file("f", pattern(10)), dst.target("f")
		if delta != 3*time.Millisecond {
			to.FS = &boaster{dst.fs}
		}
		if res, err := File(t.Context(), from, to, options(t)); err != nil || res.Lost != (Lost{}) {
			t.Errorf("%v: lost %+v, %v", delta, res.Lost, err)
		}
	}
}

// boaster says that its times are exact.
type boaster struct{ vfs.FS }

func (f *boaster) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	info, err := f.FS.Info(ctx, h, want)
	info.TimeDelta = 1
	return info, err
}
