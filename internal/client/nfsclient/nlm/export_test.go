package nlm

import (
	"slices"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/vfs"
)

// Held is what the client takes for locked, by whom as the server knows it, and whether the owner
// has yet to be told of a loss.
func (f *FS) Held(h vfs.Handle, o vfs.Owner) (set byterange.Set, oh string, lost bool) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	e := f.s.entries[key{h, o}]
	if e == nil {
		return nil, "", false
	}
	return slices.Clone(e.set), string(e.owner.oh[:]), e.lost != nil
}
