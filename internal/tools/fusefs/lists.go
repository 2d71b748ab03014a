//go:build linux

package fusefs

import (
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// lists are an object's access control lists as programs see them: in Linux' form. nil says that there is none, or that
// it says no more than the mode.
type lists struct {
	access, dflt []byte
	at           time.Time // when they were asked for
}

func listsOf(all *vfs.ACL, at time.Time) *lists {
	l := &lists{at: at}
	if len(all.Access) > 3 {
		l.access = encodeACL(all.Access)
	}
	if len(all.Default) > 0 {
		l.dflt = encodeACL(all.Default)
	}
	return l
}

// value is the list of that attribute.
func (l *lists) value(name string) []byte {
	if name == aclDefault {
		return l.dflt
	}
	return l.access
}

// lists are those of an object. Like attributes they take no right but the way to it, so that what one user was told
// serves all. ls -l asks for them of every file, right after its attributes. A call for each is saved where they are known.
func (m *Mount) lists(c *call, n *node, h vfs.Handle) (*lists, error) {
	p, err := m.acler(c)
	if err != nil {
		return nil, err
	}
	l, epoch := n.known(c.now)
	if l != nil {
		return l, nil
	}
	all, err := p.ACL(c, h)
	if err != nil {
		return nil, err
	}
	l = listsOf(&all, c.now)
	n.know(l, epoch)
	return l, nil
}

// known are the lists that are kept: while the kernel believes the attributes that they belong to, and no longer than
// attributes are ever believed. The second is for servers whose clocks are too coarse to show each change. epoch is for know.
func (n *node) known(now time.Time) (l *lists, epoch uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l = n.lists; l == nil || !now.Before(n.believed) || now.Sub(l.at) >= n.most {
		return nil, n.epoch
	}
	return l, n.epoch
}

// know keeps lists, unless they may have changed since known gave that epoch.
func (n *node) know(l *lists, epoch uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.epoch == epoch && n.told.valid && len(l.access)+len(l.dflt) <= maxKeptLists {
		n.lists = l
	}
}

// forgetLists has lists asked for again, since they may have changed. node.mu is held.
func (n *node) forgetLists() {
	n.lists, n.epoch = nil, n.epoch+1
}

// relisted says that this mount has changed the lists, or the mode, which is part of them. A call that fails may have, too.
func (n *node) relisted() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forgetLists()
	n.inherits, n.inheritsAt = inherits{}, time.Time{}
}
