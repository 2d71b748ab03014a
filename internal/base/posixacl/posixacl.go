// Package posixacl is the arithmetic of POSIX access control lists (POSIX.1e, draft 17;
// acl(5)): which lists are valid, how a list and a file's mode depend on each other, and which
// rights a list gives.
package posixacl

import (
	"cmp"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

// MaxEntries bounds a list, as the NFSACL protocol does; a longer one is vfs.ErrInval.
const MaxEntries = 1024

// single are the tags that a list may have once; base are those that it must have.
const (
	base   = vfs.ACLUserObj | vfs.ACLGroupObj | vfs.ACLOther
	named  = vfs.ACLUser | vfs.ACLGroup
	single = base | vfs.ACLMask
)

// noID is no user's id (chown(2) takes it for "unchanged").
const noID = 1<<32 - 1

// Canonical is list in the order that Linux keeps: by tag and id, with a mask if there are
// named entries. An invalid list (a tag twice or unknown, a user twice, one of the mode's three
// entries missing) is vfs.ErrInval.
func Canonical(list []vfs.ACLEntry) ([]vfs.ACLEntry, error) {
	if len(list) > MaxEntries {
		return nil, vfs.ErrInval
	}
	list = slices.Clone(list)
	have, class := vfs.ACLTag(0), uint32(0)
	for i := range list {
		e := &list[i]
		switch e.Tag {
		case vfs.ACLUser, vfs.ACLGroup:
			if e.ID == noID {
				return nil, vfs.ErrInval
			}
		case vfs.ACLUserObj, vfs.ACLGroupObj, vfs.ACLMask, vfs.ACLOther:
			e.ID = 0
		default:
			return nil, vfs.ErrInval
		}
		if e.Perm&^7 != 0 || e.Tag&single&have != 0 {
			return nil, vfs.ErrInval
		}
		have |= e.Tag
		if e.Tag&(named|vfs.ACLGroupObj) != 0 {
			class |= e.Perm
		}
	}
	if have&base != base {
		return nil, vfs.ErrInval
	}
	if have&named != 0 && have&vfs.ACLMask == 0 {
		list = append(list, vfs.ACLEntry{Tag: vfs.ACLMask, Perm: class})
	}
	if len(list) > MaxEntries {
		return nil, vfs.ErrInval
	}
	slices.SortFunc(list, func(a, b vfs.ACLEntry) int {
		return cmp.Or(cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.ID, b.ID))
	})
	for i := 1; i < len(list); i++ {
		if list[i].Tag == list[i-1].Tag && list[i].ID == list[i-1].ID {
			return nil, vfs.ErrInval
		}
	}
	return list, nil
}

// FromMode is the list that is equivalent to a mode.
func FromMode(mode uint32) []vfs.ACLEntry {
	return []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: mode >> 6 & 7},
		{Tag: vfs.ACLGroupObj, Perm: mode >> 3 & 7},
		{Tag: vfs.ACLOther, Perm: mode & 7},
	}
}

// Minimal reports whether a canonical list is equivalent to a mode.
func Minimal(list []vfs.ACLEntry) bool { return len(list) <= 3 }

// Unmasked is list without a mask that is there for Solaris' sake alone: it takes nothing away, and
// nobody is named. On the wire (NFSACL) every list has a mask, and Linux leaves such a one out at
// both ends. It may change list.
func Unmasked(list []vfs.ACLEntry) []vfs.ACLEntry {
	if len(list) != 4 {
		return list
	}
	mask := slices.IndexFunc(list, func(e vfs.ACLEntry) bool { return e.Tag == vfs.ACLMask })
	group := slices.IndexFunc(list, func(e vfs.ACLEntry) bool { return e.Tag == vfs.ACLGroupObj })
	if mask < 0 || group < 0 || list[mask].Perm != list[group].Perm {
		return list
	}
	return slices.Delete(list, mask, mask+1)
}

// Mode is the nine permission bits that a canonical list shows: the group's are the mask, if
// there is one.
func Mode(list []vfs.ACLEntry) uint32 {
	var mode uint32
	for _, e := range list {
		switch e.Tag {
		case vfs.ACLUserObj:
			mode |= e.Perm << 6
		case vfs.ACLGroupObj:
			mode |= e.Perm << 3
		case vfs.ACLMask:
			mode = mode&^0o070 | e.Perm<<3
		case vfs.ACLOther:
			mode |= e.Perm
		}
	}
	return mode
}

// Chmod is a canonical list after a change of the mode.
func Chmod(list []vfs.ACLEntry, mode uint32) []vfs.ACLEntry {
	return set(list, func(old, class uint32) uint32 { return class }, mode)
}

// Inherit is the list of an object that is created with mode in a directory with the default
// list dflt: it has the rights that both give.
func Inherit(dflt []vfs.ACLEntry, mode uint32) []vfs.ACLEntry {
	return set(dflt, func(old, class uint32) uint32 { return old & class }, mode)
}

// set merges a mode into the entries that correspond to it.
func set(list []vfs.ACLEntry, merge func(old, class uint32) uint32, mode uint32) []vfs.ACLEntry {
	list = slices.Clone(list)
	masked := slices.ContainsFunc(list, func(e vfs.ACLEntry) bool { return e.Tag == vfs.ACLMask })
	for i := range list {
		e := &list[i]
		switch {
		case e.Tag == vfs.ACLUserObj:
			e.Perm = merge(e.Perm, mode>>6&7)
		case e.Tag == vfs.ACLMask, e.Tag == vfs.ACLGroupObj && !masked:
			e.Perm = merge(e.Perm, mode>>3&7)
		case e.Tag == vfs.ACLOther:
			e.Perm = merge(e.Perm, mode&7)
		}
	}
	return list
}

// Permits reports whether a canonical list gives c all rights in want on an object of uid and
// gid. The first class that c belongs to decides; among several groups of c one that gives them
// suffices.
func Permits(list []vfs.ACLEntry, c *vfs.Caller, uid, gid, want uint32) bool {
	mask := uint32(7)
	for _, e := range list {
		if e.Tag == vfs.ACLMask {
			mask = e.Perm
		}
	}
	grouped := false
	for _, e := range list {
		switch e.Tag {
		case vfs.ACLUserObj:
			if c.UID == uid {
				return e.Perm&want == want
			}
		case vfs.ACLUser:
			if c.UID == e.ID {
				return e.Perm&mask&want == want
			}
		case vfs.ACLGroupObj, vfs.ACLGroup:
			if e.Tag == vfs.ACLGroupObj {
				e.ID = gid
			}
			if c.InGroup(e.ID) {
				if e.Perm&mask&want == want {
					return true
				}
				grouped = true
			}
		case vfs.ACLOther:
			return !grouped && e.Perm&want == want
		}
	}
	return false
}
