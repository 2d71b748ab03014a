package memfs

import (
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/vfs"
)

// inode is an object. Everything in it is guarded by tree.mu.
type inode struct {
	num      uint64
	typ      vfs.Type
	mode     uint32
	nlink    uint32
	uid, gid uint32
	rdev     uint64
	change   uint64
	atime    time.Time
	mtime    time.Time
	ctime    time.Time
	btime    time.Time

	opens int  // open Files, which keep it without a name
	dead  bool // removed from the tree: calls that still hold it get ErrStale

	content data       // of a regular file
	dir     *directory // of a directory, else nil
	target  string     // of a symbolic link

	exclusive bool // made by CreateExclusive, under verf
	verf      vfs.Verifier

	locks map[vfs.Owner]byterange.Set // never an empty set
	acl   vfs.ACL                     // canonical; without an access list that is equivalent to the mode

	xattrs map[string][]byte // of users
}

// newInode makes an object without a name or owner, all its times now.
func (t *tree) newInode(typ vfs.Type) *inode {
	now := t.now()
	t.last++
	t.change++
	n := &inode{num: t.last, typ: typ, change: t.change, atime: now, mtime: now, ctime: now, btime: now}
	t.inodes[n.num] = n
	return n
}

// release removes n from the tree if neither a name nor an open File holds it.
func (t *tree) release(n *inode) {
	if n.nlink == 0 && n.opens == 0 {
		t.drop(n)
	}
}

func (t *tree) drop(n *inode) {
	if n.dead {
		return
	}
	n.dead = true
	t.pages -= uint64(len(n.content.pages))
	n.content = data{}
	delete(t.inodes, n.num)
}

// changed notes a change of attributes; modified one of data or of entries.
func (t *tree) changed(n *inode, now time.Time) {
	t.change++
	n.change = t.change
	n.ctime = now
}

func (t *tree) modified(n *inode, now time.Time) {
	t.changed(n, now)
	n.mtime = now
}

func (t *tree) attr(n *inode) vfs.Attr {
	return vfs.Attr{
		Valid: vfs.MaskV3 | vfs.MaskBtime,
		Type:  n.typ, Mode: n.mode, Nlink: n.nlink, UID: n.uid, GID: n.gid,
		Size: n.size(), Used: uint64(len(n.content.pages)) * pageSize,
		FileID: n.num, Rdev: n.rdev, Change: n.change, FSID: [2]uint64{t.opt.ID, 0},
		Atime: n.atime, Mtime: n.mtime, Ctime: n.ctime, Btime: n.btime,
	}
}

func (n *inode) size() uint64 {
	switch n.typ {
	case vfs.TypeReg:
		return n.content.size
	case vfs.TypeDir:
		return uint64(len(n.dir.names)) * direntSize
	case vfs.TypeSymlink:
		return uint64(len(n.target))
	}
	return 0
}

// pre is what a WCC says of n before a change; wcc closes it afterwards.
func (n *inode) pre() vfs.PreAttr {
	return vfs.PreAttr{
		Valid: vfs.MaskSize | vfs.MaskChange | vfs.MaskMtime | vfs.MaskCtime,
		Size:  n.size(), Change: n.change, Mtime: n.mtime, Ctime: n.ctime,
	}
}

func (t *tree) wcc(n *inode, pre vfs.PreAttr) vfs.WCC {
	return vfs.WCC{Before: pre, Atomic: true, After: t.attr(n)}
}

// relatime is the greatest age of an access time of an unchanged file, as mount(8) says of the
// option relatime.
const relatime = 24 * time.Hour

// accessed updates n's access time if it is due. The caller holds no lock.
func (t *tree) accessed(n *inode) {
	now := t.now()
	t.mu.RLock()
	due := n.accessDue(now)
	t.mu.RUnlock()
	if !due {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.accessDue(now) {
		n.atime = now
	}
}

func (n *inode) accessDue(now time.Time) bool {
	return !n.atime.After(n.mtime) || !n.atime.After(n.ctime) || now.Sub(n.atime) >= relatime
}
