package export

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.HostOpener = (*View)(nil)

// OpenHost implements vfs.HostOpener. The rules hold as for READ and WRITE. No rule is
// asked again once a descriptor is out, so more is demanded here:
//
//   - An export or a rule with NoHostFiles hands out no file.
//   - For reading, the file is opened sealed. If the file system cannot do that, only
//     a trusted process gets the file, and of a read-only export no process.
//   - For writing, only a trusted process gets the file.
//
// A process is trusted if how.Trusted is set, or if it has no more rights on this host
// than the view gives it. For that, the rule must not squash the user or any group that
// the kernel says the process has (how.Peer). And the process must be the same user as
// the view's caller, or root. A squashed process has its own user on this host and
// another over the network; it could use as the one what was opened for the other.
//
// A seal does not keep everything in. A descriptor also names its file system: a process
// with CAP_DAC_READ_SEARCH in the host's own user namespace can open any other file there
// by it (open_by_handle_at(2)), for reading if it was sealed. A container's root that kept
// this capability is such a process, and cannot be told from others here. An export that
// must be kept from it sets NoHostFiles.
//
// A file that is not handed out, but might be read or written through the view, is
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
		// The exports were replaced meanwhile. Watchers of the file have been told,
		// or will be, and the descriptor has not been used yet.
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
	case r.e.NoHostFiles || r.rule.NoHostFiles:
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

// speaksFor reports whether the process peer has no more rights on this host than the
// view gives it. The rule must squash neither its user nor any of its groups, and the
// view's caller must be the same user. Unsquashed root always passes: it could have
// claimed to be any caller.
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
