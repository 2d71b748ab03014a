package export

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Anonymous is the UID and GID of a [vfs.Caller] that does not say who it is:
// AUTH_NONE. Every rule squashes it, as nfsd does.
const Anonymous = math.MaxUint32

// believed is the rule for callers that no rule concerns.
var believed rule

// claimed returns the caller that a call may claim to be. If the kernel knows the user
// (see [Origin]), it is that user with its groups on this host. Until the groups are known
// the error is vfs.ErrBusy. Otherwise, and for root and by TrustLocal, it is what the
// credential says. until, if not zero, is when to look again.
func (c *clients) claimed(ctx context.Context, r *rule, user *uint32, says *vfs.Caller) (who *vfs.Caller, until time.Time, err error) {
	if r.TrustLocal || says == nil || user == nil || *user == 0 {
		return says, until, nil
	}
	is := vfs.Caller{UID: *user, GID: Anonymous, Client: says.Client}
	if is.UID == Anonymous || says.UID == Anonymous {
		is.UID = Anonymous
		return &is, until, nil
	}
	is.Groups, until, err = c.groupsOf(ctx, is.UID)
	switch {
	case err != nil:
		return nil, until, err
	case says.UID == is.UID && slices.Contains(is.Groups, says.GID):
		is.GID = says.GID // as newgrp(1) has made it
	case len(is.Groups) > 0:
		is.GID = is.Groups[0]
	}
	return &is, until, nil
}

// groupsOf returns the groups of a user on this host, and none if there is no such
// user. It is vfs.ErrBusy if the look-up has failed, or takes longer than lookupWait: a
// guess could give rights away, or refuse those that a user has. until is when to look
// again.
func (c *clients) groupsOf(ctx context.Context, uid uint32) ([]uint32, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupWait)
	defer cancel()
	groups, until, ok := c.groups.get(ctx, uid)
	if !ok {
		return nil, until, vfs.ErrBusy
	}
	return groups, until, nil
}

// identity returns who the caller is by the rule, as nfsd_setuser() of Linux does.
// until, if not zero, is when to look again. It is vfs.ErrBusy while groups that the
// rule wants are not known.
func (c *clients) identity(ctx context.Context, r *rule, who *vfs.Caller) (is *vfs.Caller, until time.Time, err error) {
	if who == nil {
		return nil, until, nil
	}
	anonUID, anonGID := anon(r.AnonUID), anon(r.AnonGID)
	if r.Squash == SquashAll {
		return &vfs.Caller{UID: anonUID, GID: anonGID, Client: who.Client}, until, nil
	}
	out := *who
	if r.ManyGroups && who.UID != Anonymous {
		if out.Groups, until, err = c.groupsOf(ctx, who.UID); err != nil {
			return nil, until, err
		}
	}
	if r.Squash == SquashRoot {
		out.UID = swap(out.UID, 0, anonUID)
		out.GID = swap(out.GID, 0, anonGID)
		out.Groups = swapAll(out.Groups, 0, anonGID)
	}
	out.UID = swap(out.UID, Anonymous, anonUID)
	out.GID = swap(out.GID, Anonymous, anonGID)
	// The kernel refuses this number as a group: every call would fail.
	out.Groups = swapAll(out.Groups, Anonymous, anonGID)
	return &out, until, nil
}

func anon(id *uint32) uint32 {
	if id == nil {
		return Nobody
	}
	return *id
}

// swap is id, or to if id is from.
func swap(id, from, to uint32) uint32 {
	if id == from {
		return to
	}
	return id
}

// swapAll is swap for a list of groups. It copies the list, which views share.
func swapAll(groups []uint32, from, to uint32) []uint32 {
	if !slices.Contains(groups, from) {
		return groups
	}
	groups = slices.Clone(groups)
	for i := range groups {
		groups[i] = swap(groups[i], from, to)
	}
	return groups
}
