package export

import (
	"context"
	"errors"
	"hash/maphash"

	"github.com/nfsbox/nfsbox/vfs"
)

// Changes of names, and the watchers of objects that lose one.
//
// A file system does not tell which object has lost a name by a Remove or a
// Rename. So the name is looked up first, and must still mean the same object when
// the change is made. While anything is watched, a call that takes a name away locks
// its directory exclusively, from the look-up to the change. Calls that give names
// lock it shared, and so do calls that take names while nothing is watched. If a watch
// appears during one of these, the object that lost the name is unknown: the call
// tells every watcher.
//
// The lock covers the change, not the sync after it, so that many changes share a
// sync.

// naming is a change of names in one directory or two.
type naming struct {
	all    *watches
	alone  bool   // the locks are exclusive
	stripe [2]int // locked in ascending order, against deadlocks; -1: none
}

// naming locks dir for a change of names, and other if that is not zero.
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

// giving begins a change that gives an object a name in dir and takes none away.
func (r *ref) giving(dir *vfs.Handle) naming { return r.naming(false, dir, &vfs.Handle{}) }

// taking makes a change by which the object called name in dir loses that name, and
// tells its watchers. other is a second directory that changes, or zero.
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

// named returns the object called name in dir, or the zero Handle if there is none. ok
// is false if the look-up failed. It asks with the file system's own rights: a caller
// that may remove a name need not be able to look it up.
func (r *ref) named(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, ok bool) {
	h, _, _, err := r.e.FS.Lookup(ctx, dir, name)
	if err != nil {
		return vfs.Handle{}, errors.Is(err, vfs.ErrNoEnt)
	}
	return h, true
}

// rights are the attributes by which callers are judged.
const rights = vfs.MaskMode | vfs.MaskUID | vfs.MaskGID

// rejudged tells the watchers of h that its rights may have changed. set is what was to
// be set, and err how that ended: if it changes no rights, or was refused, nothing is
// told.
func (r *ref) rejudged(h *vfs.Handle, set vfs.Mask, err error) {
	if set&rights != 0 && !refused(err) {
		r.e.users.watches.tell(h, vfs.ChangeRights)
	}
}

// refused reports whether err says that nothing was changed, because the caller may not
// or because the request makes no sense. Such a request must not cost other clients
// their grants. A change that failed in another way may have been made in part.
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
