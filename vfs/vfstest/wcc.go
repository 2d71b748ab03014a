package vfstest

import "github.com/nfsbox/nfsbox/vfs"

// checkWCC compares what a mutation said of an object with what GetAttr said
// before and after it, as far as it said anything.
func (e *env) checkWCC(w *vfs.WCC, before, after *vfs.Attr) {
	e.Helper()
	b, a := &w.Before, &w.After
	if b.Valid&vfs.MaskSize != 0 && before.Type == vfs.TypeReg && b.Size != before.Size {
		e.Errorf("wcc: size before is %d, want %d", b.Size, before.Size)
	}
	if b.Valid&vfs.MaskMtime != 0 && !b.Mtime.Equal(before.Mtime) {
		e.Errorf("wcc: mtime before is %v, want %v", b.Mtime, before.Mtime)
	}
	if b.Valid&vfs.MaskCtime != 0 && !b.Ctime.Equal(before.Ctime) {
		e.Errorf("wcc: ctime before is %v, want %v", b.Ctime, before.Ctime)
	}
	if a.Has(vfs.MaskFileID) && a.FileID != after.FileID {
		e.Errorf("wcc: speaks of file %d, want %d", a.FileID, after.FileID)
	}
	if a.Has(vfs.MaskSize) && after.Type == vfs.TypeReg && a.Size != after.Size {
		e.Errorf("wcc: size after is %d, want %d", a.Size, after.Size)
	}
	if a.Has(vfs.MaskMtime) && !a.Mtime.Equal(after.Mtime) {
		e.Errorf("wcc: mtime after is %v, want %v", a.Mtime, after.Mtime)
	}
}
