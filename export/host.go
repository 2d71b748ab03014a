package export

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.HostOpener = (*View)(nil)

// OpenHost implements vfs.HostOpener. What rules say of READ and WRITE holds for
// it. Beyond that, since no rule is asked again once a descriptor is out:
//
//   - Of an export or a rule that is Remote no file is handed out.
//   - To be read only, a file is opened sealed. Where the file system cannot do
//     that, only those processes get it that could open it for themselves and write (see
//     below), and of an export that is read-only for them nobody does.
//   - To be written, it is handed out to such callers alone.
//
// Those are processes that the rule believes to be who they are, as the kernel
// says (how.Peer), and for whom the view speaks: of the same user, or root. A caller
// that is squashed is somebody else on the disk of this host than over the network, and
// could use as the one what was opened for the other. how.Trusted lets all pass
// for such.
//
// What no seal keeps in: a descriptor also names its file system, and a process with
// CAP_DAC_READ_SEARCH in the host's own user namespace opens by it whatever else is
// there (open_by_handle_at(2)), to be read if it was sealed. Such a process, which
// would be a container's root that was left that capability, is not to be told from
// others here; an export that must be kept from it is Remote.
//
// Whatever is not handed out, and might be read or written through the view, is
// vfs.ErrNotSupp; vfs.ErrNoDev if the export has no files of this host at all.
func (v *View) OpenHost(ctx context.Context, h vfs.Handle, how *vfs.HostOpen) (*os.File, vfs.Attr, error) {
	for range maxReloads {
		r, err := v.ref(ctx, &h)
		if err != nil {
			return nil, vfs.Attr{}, err
		}
		f, a, err := r.openHost(ctx, how)
		inForce := v.t.state.Load() == r.st
		r.leave()
		if err != nil {
			return nil, vfs.Attr{}, err
		}
		if inForce {
			return f, a, nil
		}
		// The exports were replaced meanwhile, and the watchers of the file have
		// been told, or will be. Nobody has used it yet.
		if err := f.Close(); err != nil {
			return nil, vfs.Attr{}, err
		}
	}
	return nil, vfs.Attr{}, vfs.ErrBusy
}

func (r *ref) openHost(ctx context.Context, how *vfs.HostOpen) (*os.File, vfs.Attr, error) {
	writes := how.Access&vfs.ShareWrite != 0
	switch {
	case how.Access == 0 || how.Access&^(vfs.ShareRead|vfs.ShareWrite) != 0 || how.Sealed && writes:
		return nil, vfs.Attr{}, vfs.ErrInval
	case writes && r.readOnly:
		return nil, vfs.Attr{}, vfs.ErrROFS
	case r.e.Remote || r.rule.Remote:
		return nil, vfs.Attr{}, vfs.ErrNotSupp
	}
	power, ok := vfs.As[vfs.HostOpener](r.fs)
	if !ok {
		return nil, vfs.Attr{}, vfs.ErrNoDev
	}
	below := *how
	if !writes {
		below.Sealed = true
		f, a, err := power.OpenHost(ctx, r.h, &below)
		if !errors.Is(err, vfs.ErrNotSupp) || how.Sealed || r.readOnly {
			return f, a, err
		}
		below.Sealed = false
	}
	if !how.Trusted && !r.speaksFor(ctx, &how.Peer) {
		return nil, vfs.Attr{}, vfs.ErrNotSupp
	}
	return power.OpenHost(ctx, r.h, &below)
}

// speaksFor reports whether the process peer, with what it may on this host by
// itself, may no more than the view gives it: the rule takes peer for who it is,
// all its groups included, and the view's caller is the same user, or peer is
// root, who could have said so of anybody.
func (r *ref) speaksFor(ctx context.Context, peer *vfs.Caller) bool {
	is, _, err := r.v.t.clients.identity(ctx, r.rule, peer)
	switch {
	case err != nil:
		return false
	case is.UID != peer.UID:
		return false
	case peer.UID == 0:
		return true
	case r.caller == nil || r.caller.UID != peer.UID || !is.InGroup(peer.GID):
		return false
	}
	return !slices.ContainsFunc(peer.Groups, func(g uint32) bool { return !is.InGroup(g) })
}
