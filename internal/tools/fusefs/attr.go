//go:build linux

package fusefs

import (
	"encoding/binary"
	"hash/fnv"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/vfs"
)

// needed are the attributes without which an object cannot be shown.
const needed = vfs.MaskType | vfs.MaskMode | vfs.MaskNlink | vfs.MaskUID | vfs.MaskGID | vfs.MaskSize | vfs.MaskFileID |
	vfs.MaskAtime | vfs.MaskMtime | vfs.MaskCtime

// stamp is what changes when an object does.
type stamp struct {
	valid        bool
	size         uint64
	mtime, ctime int64
}

func stampOf(a *vfs.Attr) stamp {
	if !a.Has(vfs.MaskSize | vfs.MaskMtime | vfs.MaskCtime) {
		return stamp{}
	}
	return stamp{true, a.Size, a.Mtime.UnixNano(), a.Ctime.UnixNano()}
}

// tell notes that the kernel is told of a at the time now, and returns for how long it may keep it: the least time
// if the object has changed, else twice the time that has just passed, as Linux' own client has it.
func (n *node) tell(a *vfs.Attr, now time.Time, t *Times) time.Duration {
	least, most := t.FileMin, t.FileMax
	if a.Type == vfs.TypeDir {
		least, most = t.DirMin, t.DirMax
	}
	s := stampOf(a)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shared = a.Mode&0o111 == 0o111
	switch {
	case !s.valid || s != n.told:
		n.keep = least
		n.told, n.at = s, now
		n.forgetLists()
	case now.Sub(n.at) >= n.keep: // else it was asked for early
		n.keep = min(max(2*n.keep, least), most)
		n.at = now
	}
	n.believed, n.most = now.Add(n.keep), most
	return n.keep
}

// saw takes note of a directory's attributes that came with another answer, of which the kernel is not told. Nobody looks
// the root up, so that nothing else says in time who may search it.
func (n *node) saw(a *vfs.Attr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a.Has(vfs.MaskMode) {
		n.shared = a.Mode&0o111 == 0o111
	} else if n.id == rootID {
		n.shared = false
	}
}

// opened notes that the object is opened with the attributes a. pages says that the kernel's pages of it may stay: they
// were read since an open that found the same. That it was told of a change meanwhile says nothing of them. told
// says that it knows these attributes already.
func (n *node) opened(a *vfs.Attr) (pages, told bool) {
	s := stampOf(a)
	n.mu.Lock()
	defer n.mu.Unlock()
	pages, told = s.valid && s == n.pages, s.valid && s == n.told
	if n.pages = s; !told {
		n.forgetLists()
	}
	return pages, told
}

// changed reports whether a is not what the kernel was told of the object, if it was told at all.
func (n *node) changed(a *vfs.Attr) bool {
	s := stampOf(a)
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := n.told.valid && s != n.told
	if changed {
		n.forgetLists()
	}
	return changed
}

// entryTime is how long an entry of the directory may be kept. The kernel lets anybody through an entry that it has. So
// where users share a mount, it keeps none of directories that not everybody may search, and those of others for
// sharedEntry: that may have changed, and access control lists are not in the mode.
func (n *node) entryTime(opt *Options, found bool) time.Duration {
	if opt.Entries == EntriesNone || opt.Entries == EntriesPositive && !found {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	keep := min(max(n.keep, opt.Times.DirMin), opt.Times.DirMax)
	switch {
	case !opt.AllowOther:
		return keep
	case !n.shared:
		return 0
	}
	return min(keep, sharedEntry)
}

// inode is the number of an object as programs see it. The top bit is set in those of other file systems than the
// root's, with their file system mixed in.
func inode(a *vfs.Attr, root [2]uint64) uint64 {
	id := a.FileID
	if a.Has(vfs.MaskFSID) && a.FSID != root {
		h := fnv.New64a()
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], a.FSID[0])
		binary.LittleEndian.PutUint64(b[8:], a.FSID[1])
		_, _ = h.Write(b[:]) // a hash has no errors
		id = (id ^ h.Sum64()) | 1<<63
	}
	if id == 0 { // which means to programs that there is none
		id = 1 << 63
	}
	return id
}

var typeBits = [...]uint32{
	vfs.TypeReg: syscall.S_IFREG, vfs.TypeDir: syscall.S_IFDIR, vfs.TypeBlock: syscall.S_IFBLK, vfs.TypeChar: syscall.S_IFCHR,
	vfs.TypeSymlink: syscall.S_IFLNK, vfs.TypeSocket: syscall.S_IFSOCK, vfs.TypeFIFO: syscall.S_IFIFO,
}

// kind are the bits of st_mode that say what an object is; 0 if a does not say.
func kind(a *vfs.Attr) uint32 {
	if !a.Has(vfs.MaskType) || int(a.Type) >= len(typeBits) {
		return 0
	}
	return typeBits[a.Type]
}

// typeOf is what the bits of st_mode say.
func typeOf(mode uint32) vfs.Type {
	for t, bits := range typeBits {
		if bits != 0 && bits == mode&syscall.S_IFMT {
			return vfs.Type(t)
		}
	}
	return vfs.TypeReg // mknod(2): no type is a file
}

// fill writes a as the kernel has it.
func fill(out *fuse.Attr, a *vfs.Attr, root [2]uint64) {
	*out = fuse.Attr{
		Ino: inode(a, root), Size: a.Size, Blocks: (a.Used + 511) / 512, Mode: kind(a) | a.Mode&0o7777, Nlink: a.Nlink,
		Owner: fuse.Owner{Uid: a.UID, Gid: a.GID}, Rdev: packDev(a.Rdev), Blksize: 64 << 10,
	}
	if !a.Has(vfs.MaskUsed) {
		out.Blocks = (a.Size + 511) / 512
	}
	out.SetTimes(&a.Atime, &a.Mtime, &a.Ctime)
}

// packDev is a device's number as the kernel's new_encode_dev has it, and unpackDev is the contract's.
func packDev(d uint64) uint32 {
	major, minor := uint32(d>>32), uint32(d)
	return minor&0xff | major<<8 | minor&^0xff<<12
}

func unpackDev(d uint32) uint64 {
	major, minor := d&0xfff00>>8, d&0xff|d>>12&0xfff00
	return uint64(major)<<32 | uint64(minor)
}
