package export

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Anonymous is the UID and GID of a [vfs.Caller] who does not say who it is:
// AUTH_NONE. Every rule squashes it, as nfsd does.
const Anonymous = math.MaxUint32

// believed is the rule for callers whom no rule concerns.
var believed rule

// identity is who c is by the rule: as nfsd_setuser() of Linux has it. until, if
// not zero, is when to look again.
func (c *clients) identity(ctx context.Context, r *rule, who *vfs.Caller) (is *vfs.Caller, until time.Time) {
	if who == nil {
		return nil, until
	}
	anonUID, anonGID := anon(r.AnonUID), anon(r.AnonGID)
	if r.Squash == SquashAll {
		return &vfs.Caller{UID: anonUID, GID: anonGID, Client: who.Client}, until
	}
	out := *who
	if r.ManyGroups && who.UID != Anonymous {
		ctx, cancel := context.WithTimeout(ctx, lookupWait)
		defer cancel()
		groups, good, ok := c.groups.get(ctx, who.UID)
		if until = good; ok && len(groups) > 0 {
			out.Groups = groups
		}
	}
	if r.Squash == SquashRoot {
		out.UID = swap(out.UID, 0, anonUID)
		out.GID = swap(out.GID, 0, anonGID)
		out.Groups = swapAll(out.Groups, 0, anonGID)
	}
	out.UID = swap(out.UID, Anonymous, anonUID)
	out.GID = swap(out.GID, Anonymous, anonGID)
	// No kernel takes this one for a group: every call would fail.
	out.Groups = swapAll(out.Groups, Anonymous, anonGID)
	return &out, until
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

// swapAll is swap for groups, which stay as they are: views share them.
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
