package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

type right struct {
	access vfs.Access
	mode   uint32
}

// The mode bits that each right of RFC 1813, section 3.3.4 needs. A right in neither table,
// such as looking up names in a file, is never given.
var (
	dirRights = [...]right{
		{vfs.AccessRead, mayRead},
		{vfs.AccessLookup, mayExec},
		{vfs.AccessModify, mayWrite | mayExec},
		{vfs.AccessExtend, mayWrite | mayExec},
		{vfs.AccessDelete, mayWrite | mayExec},
	}
	fileRights = [...]right{
		{vfs.AccessRead, mayRead},
		{vfs.AccessModify, mayWrite},
		{vfs.AccessExtend, mayWrite},
		{vfs.AccessExecute, mayExec},
	}
)

// Access returns those of the rights in want that the caller has on h.
func (f *FS) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	if err := f.begin(ctx, "access", h); err != nil {
		return 0, vfs.Attr{}, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.get(h)
	if err != nil {
		return 0, vfs.Attr{}, err
	}
	rights := fileRights[:]
	if n.typ == vfs.TypeDir {
		rights = dirRights[:]
	}
	var have vfs.Access
	for _, r := range rights {
		if want&r.access != 0 && f.may(n, r.mode) == nil {
			have |= r.access
		}
	}
	return have, f.attr(n), nil
}
