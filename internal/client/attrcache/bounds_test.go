package attrcache_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/internal/client/attrcache"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestBounds: what is beyond the bounds is forgotten, that which was not used for longest first.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: long, Objects: 10, MaxNames: 10})
		first := r.put(r.server, r.root, "first", vfs.TypeReg)
		second := r.put(r.server, r.root, "second", vfs.TypeReg)
		for _, name := range []string{"first", "second"} {
			r.find(r.fs, r.root, name)
		}
		for i := range 100 {
			name := fmt.Sprint("f", i)
			r.put(r.server, r.root, name, vfs.TypeReg)
			r.find(r.fs, r.root, name)
			r.mode(first) // which is used all the time
		}
		r.want("what is used", r.asks(func() { r.mode(first) }, "getattr"), 0)
		r.want("what is not", r.asks(func() { r.mode(second) }, "getattr"), 1)
		r.want("a name that is not used", r.asks(func() { r.find(r.fs, r.root, "second") }, "lookup"), 1)
		r.want("the last name", r.asks(func() { r.find(r.fs, r.root, "f99") }, "lookup"), 0)
	})
}

// TestAppendBehindOthers: an append begins where the file ends at the server, and not where it ended when that was asked for.
func TestAppendBehindOthers(t *testing.T) {
	r := newRig(t, attrcache.Options{Times: long})
	h := r.put(r.server, r.root, "log", vfs.TypeReg)
	fs := writeback.New(r.fs, writeback.Options{})
	f, _, err := fs.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	r.ok(err)
	if a, err := fs.GetAttr(t.Context(), h, vfs.MaskSize); err != nil || a.Size != 0 {
		t.Fatal(a.Size, err)
	}
	other, _, err := r.server.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	r.ok(err)
	var w vfs.Written
	_, err = other.WriteAt(t.Context(), []byte("theirs"), 0, vfs.FileSync, &w)
	r.ok(err)
	r.ok(other.Close(t.Context()))
	a, ok := vfs.As[vfs.Appender](f)
	if !ok {
		t.Fatal("no appends")
	}
	off, _, err := a.Append(t.Context(), []byte("mine"), vfs.Unstable, &w)
	if r.ok(err); off != 6 {
		t.Errorf("appended at %d, want 6", off)
	}
	r.ok(f.Close(t.Context()))
	if got, err := r.fs.GetAttr(t.Context(), h, vfs.MaskSize); err != nil || got.Size != 10 {
		t.Errorf("size %d, %v", got.Size, err)
	}
}

// TestPowersPast: what would change a file past what is kept is no power.
func TestPowersPast(t *testing.T) {
	r := newRig(t, attrcache.Options{Times: long})
	if vfs.Has[vfs.Walker](r.fs) || vfs.Has[vfs.Forgetter](r.fs) || vfs.Has[vfs.HostOpener](r.fs) {
		t.Error("it has a power by which it is passed")
	}
	if vfs.Asked(r.fs) != vfs.FS(r.fs) {
		t.Error("questions go past what is kept")
	}
	if vfs.Anew(writebackBelow{r.fs}) == vfs.FS(r.fs) {
		t.Error("nothing asks past what is kept")
	}
}

// writebackBelow is an FS that embeds one that keeps answers.
type writebackBelow struct{ *attrcache.FS }
