package export

import (
	"context"
	"errors"
	"hash/maphash"

	"github.com/nfsbox/nfsbox/vfs"
)

// Names, and the watchers of what loses one.
//
// A file system does not tell which object has lost a name by a Remove or a
// Rename. So the name is looked up before, and it must still mean the same when
// the change is made: as long as anything is watched, a call that takes a name away has
// its directory to itself, from the look to the change. Calls that give names
// share the directory with one another, and with calls that take names while
// nothing is watched. If one of these finds watches at the end, it does not know
// which object has lost the name, and tells all watchers.
//
// The change alone is made with the directory locked, not what makes it stable,
// which many shall wait for together.

// naming is a change of names in one directory or two.
type naming struct {
	all    *watches
	alone  bool
	stripe [2]int // in this order, which all share; -1: none
}

// naming begins a change of names in dir, and in other if that is not zero.
func (r *ref) naming(alone bool, dir, other *vfs.Handle) naming {
	n := naming{all: &r.e.users.watches, alone: alone, stripe: [2]int{r.e.users.watches.stripe(dir), -1}}
	if !other.IsZero() {
		if j := n.all.stripe(other); j != n.stripe[0] {
			n.stripe = [2]int{min(n.stripe[0], j), max(n.stripe[0], j)}
		}
	}
	for _, i := range n.stripe {
		switch {
		case i < 0:
		case alone:
			n.all.names[i].Lock()
		default:
			n.all.names[i].RLock()
		}
	}
	return n
}

func (n *naming) end() {
	for _, i := range n.stripe {
		switch {
		case i < 0:
		case n.alone:
			n.all.names[i].Unlock()
		default:
			n.all.names[i].RUnlock()
		}
	}
}

// giving begins a change that gives an object a name in dir, and takes none.
func (r *ref) giving(dir *vfs.Handle) naming { return r.naming(false, dir, &vfs.Handle{}) }

// taking makes a change by which what is called name in dir loses that name, and
// tells those who watch it. other is a second directory that changes, or zero.
func (r *ref) taking(ctx context.Context, dir vfs.Handle, name string, other vfs.Handle, change func() error) error {
	all := &r.e.users.watches
	watched := all.n.Load() != 0
	n := r.naming(watched, &dir, &other)
	var victim vfs.Handle
	if watched {
		victim, watched = r.named(ctx, dir, name)
	}
	err := change()
	n.end()
	switch {
	case all.n.Load() == 0 || refused(err):
	case watched:
		all.tell(&victim, vfs.ChangeGone)
	default:
		all.each(func(w *watch) bool {
			w.changed(vfs.ChangeGone)
			return true
		})
	}
	return err
}

// named returns what is called name in dir, or the zero Handle if nothing is. ok
// is false if that cannot be told. It is asked as the file system's own caller: one
// who may take a name may not be one who may look it up.
func (r *ref) named(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, ok bool) {
	h, _, _, err := r.e.FS.Lookup(ctx, dir, name)
	if err != nil {
		return vfs.Handle{}, errors.Is(err, vfs.ErrNoEnt)
	}
	return h, true
}

// rights are the attributes by which callers are judged.
const rights = vfs.MaskMode | vfs.MaskUID | vfs.MaskGID

// rejudged tells those who watch h that it has other rights, if set, which ended
// with err, was to give it such.
func (r *ref) rejudged(h *vfs.Handle, set vfs.Mask, err error) {
	if set&rights != 0 && !refused(err) {
		r.e.users.watches.tell(h, vfs.ChangeRights)
	}
}

// refused reports whether err says that nothing was changed, because the caller
// may not or because it makes no sense: a caller that asks for such must not make
// others lose what they have. What failed in another way may have changed a part.
func refused(err error) bool {
	if err == nil || errors.Is(err, vfs.ErrUnknownOutcome) {
		return false
	}
	switch s, _ := vfs.StatusOf(err); s {
	case vfs.ErrPerm, vfs.ErrAccess, vfs.ErrROFS, vfs.ErrNoEnt, vfs.ErrExist, vfs.ErrNotEmpty, vfs.ErrNotDir,
		vfs.ErrIsDir, vfs.ErrInval, vfs.ErrXDev, vfs.ErrNameTooLong, vfs.ErrStale, vfs.ErrBadHandle, vfs.ErrNotSync:
		return true
	}
	return false
}

// stripe is the lock of the directory h.
func (a *watches) stripe(h *vfs.Handle) int {
	return int(maphash.Bytes(a.seed, h.Bytes()) % nameStripes)
}
