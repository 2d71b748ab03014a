//go:build linux

package fusefs

import (
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// inherits is what a directory's default list makes of the modes of what is made in it.
type inherits struct {
	list   bool   // there is one
	rights uint32 // the most that it lets a mode say
}

// inheritsOf is that of a list. As in acl(5), a mode's group is the mask where there is one.
func inheritsOf(list []vfs.ACLEntry) inherits {
	var user, group, other, mask uint32
	masked := false
	for _, e := range list {
		switch e.Tag {
		case vfs.ACLUserObj:
			user = e.Perm
		case vfs.ACLGroupObj:
			group = e.Perm
		case vfs.ACLOther:
			other = e.Perm
		case vfs.ACLMask:
			mask, masked = e.Perm, true
		}
	}
	if masked {
		group = mask
	}
	return inherits{len(list) > 0, user<<6 | group<<3 | other}
}

// mode is what an object is made with in a directory. The kernel leaves the umask to us (FUSE_DONT_MASK): where the
// directory has a default list that counts in its stead (acl(5)). The server would see to that, but in an exclusive CREATE it
// hears of no mode; that is set afterwards, and must not say more than the list. A directory that cannot be asked has no list.
func (m *Mount) mode(c *call, n *node, dir vfs.Handle, mode, umask uint32) uint32 {
	mode &= 0o7777
	n.mu.Lock()
	in, known := n.inherits, c.now.Sub(n.inheritsAt) < listAge
	n.mu.Unlock()
	if !known {
		p, err := m.acler(c)
		var all vfs.ACL
		if err == nil {
			all, err = p.ACL(c, dir)
		}
		in = inherits{}
		if err == nil {
			in = inheritsOf(all.Default)
		}
		n.inherit(in, c.now)
	}
	if in.list {
		return mode & (in.rights | 0o7000)
	}
	return mode &^ umask
}

// inherit notes what was heard of a directory's default list at the time now.
func (n *node) inherit(in inherits, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inherits, n.inheritsAt = in, now
}
