package client

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestGetAttrs asks for many objects at once: each gets the attributes, or the
// error, that it would get alone, and what is not sent yet counts.
func TestGetAttrs(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	fs := dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: mem})+"/").FS()
	root := rootOf(t, fs)
	const files = 200
	hs := make([]vfs.Handle, 0, files+2)
	for i := range files {
		name := fmt.Sprintf("f%d", i)
		put(t, fs, name, make([]byte, i))
		h, _, _, err := fs.Lookup(t.Context(), root, name)
		if err != nil {
			t.Fatal(err)
		}
		hs = append(hs, h)
	}
	if _, err := fs.Remove(t.Context(), root, "f7", false); err != nil {
		t.Fatal(err)
	}
	f, _, err := fs.Open(t.Context(), vfs.At{H: hs[9]}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		t.Fatal(err)
	}
	var w vfs.Written
	if _, err := f.WriteAt(t.Context(), make([]byte, 1000), 0, vfs.Unstable, &w); err != nil {
		t.Fatal(err)
	}
	hs = append(hs, root, vfs.Handle{})
	attrs, errs := make([]vfs.Attr, len(hs)), make([]error, len(hs))
	vfs.GetAttrs(t.Context(), fs, hs, vfs.MaskV3, attrs, errs)
	for i, h := range hs {
		want, wantErr := fs.GetAttr(t.Context(), h, vfs.MaskV3)
		st, _ := vfs.StatusOf(errs[i])
		wantSt, _ := vfs.StatusOf(wantErr)
		if attrs[i] != want || st != wantSt || (errs[i] == nil) != (wantErr == nil) {
			t.Errorf("object %d: %+v, %v; alone %+v, %v", i, attrs[i], errs[i], want, wantErr)
		}
	}
	if attrs[9].Size != 1000 || !errors.Is(errs[7], vfs.ErrStale) {
		t.Errorf("size %d with 1000 bytes written; of a file removed: %v", attrs[9].Size, errs[7])
	}
	if err := f.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
