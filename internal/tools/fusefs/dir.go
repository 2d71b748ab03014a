//go:build linux

package fusefs

import (
	"context"
	"iter"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/vfs"
)

// folder is a directory that a program has open, and its one listing.
type folder struct {
	node *node
	fs   vfs.FS // the opener's view
	base context.Context

	mu   sync.Mutex // guards what follows; held over the calls of a listing
	list *listing   // nil: none is under way
	verf vfs.Verifier
	far  farCookies
}

// listing is a listing under way. It lives on between requests, in a context of its own.
type listing struct {
	next func() (*vfs.Entry, error, bool)
	stop func()     // ends the iteration
	end  func()     // ends its calls
	at   uint64     // the kernel's offset of what next returns
	kept *vfs.Entry // read, and not handed out yet
	plus bool       // entries have attributes
	n    int        // entries handed out
}

// OpenDir implements fuse.RawFileSystem.
func (m *Mount) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	n, h, ok := m.node(in.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	a, err := c.may(h, vfs.AccessRead)
	if err != nil {
		return errno(c, err)
	}
	n.saw(&a)
	if !m.opt.NoCTO && n.changed(&a) {
		_ = m.server.InodeNotify(n.id, -1, 0) // ENOENT: it has none. What others have made there shows in its attributes
	}
	out.Fh = m.folders.add(&folder{node: n, fs: c.fs, base: m.base})
	return fuse.OK
}

// ReleaseDir implements fuse.RawFileSystem.
func (m *Mount) ReleaseDir(in *fuse.ReleaseIn) {
	if d, ok := m.folders.take(in.Fh); ok {
		d.close()
	}
}

// FsyncDir implements fuse.RawFileSystem. An FS without the power makes names stable before it answers.
func (m *Mount) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	_, h, ok := m.node(in.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	s, ok := vfs.As[vfs.Syncer](c.fs)
	if !ok {
		return fuse.OK
	}
	return errno(c, s.Sync(c, h))
}

// ReadDir implements fuse.RawFileSystem.
func (m *Mount) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return m.readDir(cancel, in, false, out)
}

// ReadDirPlus implements fuse.RawFileSystem.
func (m *Mount) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return m.readDir(cancel, in, true, out)
}

// The kernel's offsets: behind "." and "..", and then those of cookies (see farCookies).
const (
	behindDot    = 1
	behindDotDot = 2
)

func (m *Mount) readDir(cancel <-chan struct{}, in *fuse.ReadIn, plus bool, out *fuse.DirEntryList) fuse.Status {
	d, ok := m.folders.get(in.Fh)
	if !ok {
		return fuse.EBADF
	}
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	d.mu.Lock()
	defer d.mu.Unlock()
	at := in.Offset
	if at < behindDotDot {
		if at = m.dots(c, d, at, plus, out); at < behindDotDot {
			return fuse.OK
		}
	}
	l, err := d.listFrom(at, plus)
	if err != nil {
		return errno(c, err)
	}
	// The listing outlives the request, but an interruption ends it.
	stop := context.AfterFunc(c, l.end)
	count, err := m.hand(c, d, l, plus, out)
	if !stop() || err != nil {
		d.drop()
	}
	if err != nil && count == 0 {
		if c.Err() != nil {
			return fuse.EINTR
		}
		return errno(c, err)
	}
	return fuse.OK // an error after entries is met again by the next request
}

// hand hands out entries until there is no more room, or none is left. It says how many.
func (m *Mount) hand(c *call, d *folder, l *listing, plus bool, out *fuse.DirEntryList) (n int, err error) {
	for ; ; n++ {
		e := l.kept
		if e == nil {
			var ok bool
			if e, err, ok = l.next(); err != nil || !ok {
				return n, err
			}
		}
		off := d.far.offset(e.Next.Cookie)
		if !m.add(c, d, e, off, plus, out) {
			l.kept = e // valid until next is called
			return n, nil
		}
		d.verf, l.kept, l.at = e.Next.Verf, nil, off
		l.n++
	}
}

// add adds one entry, unless there is no room.
func (m *Mount) add(c *call, d *folder, e *vfs.Entry, off uint64, plus bool, out *fuse.DirEntryList) bool {
	id := e.Attr
	id.FileID = e.FileID
	entry := fuse.DirEntry{Name: string(e.Name), Mode: kind(&e.Attr), Ino: inode(&id, m.fsid), Off: off}
	if vfs.CheckName(entry.Name) != nil {
		return true // no program could use it, and the kernel gives the listing up
	}
	if !plus {
		return out.AddDirEntry(entry)
	}
	slot := out.AddDirLookupEntry(entry)
	if slot == nil {
		return false
	}
	if !e.Handle.IsZero() && e.Attr.Has(needed) {
		m.enter(c, d.node, entry.Name, e.Handle, &e.Attr, slot)
	}
	return true
}

// dots hands out "." and "..", of which the contract's listings say nothing. The kernel makes no nodes of them.
func (m *Mount) dots(c *call, d *folder, at uint64, plus bool, out *fuse.DirEntryList) uint64 {
	self := d.node.handle()
	for ; at < behindDotDot; at++ {
		e := fuse.DirEntry{Name: ".", Mode: typeBits[vfs.TypeDir], Off: at + 1, Ino: d.node.number()}
		switch {
		case at == behindDot:
			e.Name, e.Ino = "..", m.numberAbove(c, d.fs, self)
		case e.Ino == 0:
			e.Ino = m.numberOf(c, d.fs, self, nil)
		}
		if plus && out.AddDirLookupEntry(e) == nil || !plus && !out.AddDirEntry(e) {
			return at
		}
	}
	return at
}

// numberOf is the inode number of a directory, of which some attributes may be known; 0 if it cannot be told.
func (m *Mount) numberOf(c *call, fs vfs.FS, h vfs.Handle, a *vfs.Attr) uint64 {
	const both = vfs.MaskFileID | vfs.MaskFSID
	if a == nil || !a.Has(both) {
		got, err := fs.GetAttr(c, h, both)
		if err != nil {
			return 0
		}
		a = &got
	}
	return inode(a, m.fsid)
}

// numberAbove is the inode number of the directory above one: its own, where it may not be searched.
func (m *Mount) numberAbove(c *call, fs vfs.FS, h vfs.Handle) uint64 {
	up, a, _, err := fs.Lookup(c, h, "..")
	if err != nil {
		return m.numberOf(c, fs, h, nil)
	}
	return m.numberOf(c, fs, up, &a)
}

// listFrom is the listing from the kernel's offset on: the one under way, if it stands there. folder.mu is held.
func (d *folder) listFrom(at uint64, plus bool) (*listing, error) {
	if l := d.list; l != nil && l.at == at {
		// What was listed with attributes also serves those who ask for none, for a while.
		if l.plus == plus || l.plus && l.n < plusBatch {
			return l, nil
		}
	}
	d.drop()
	cookie, ok := d.far.cookie(at)
	if !ok {
		return nil, vfs.ErrBadCookie
	}
	pos := vfs.Pos{Cookie: cookie}
	if cookie != 0 {
		pos.Verf = d.verf
	}
	want := vfs.Mask(0)
	if plus {
		want = vfs.MaskV3 | vfs.MaskHandle
	}
	ctx, cancel := context.WithCancel(d.base)
	next, stop := iter.Pull2(d.fs.ReadDir(ctx, d.node.handle(), pos, want, 0))
	d.list = &listing{next: next, stop: stop, end: cancel, at: at, plus: plus}
	return d.list, nil
}

// drop ends the listing under way. folder.mu is held.
func (d *folder) drop() {
	if d.list != nil {
		d.list.end()
		d.list.stop()
		d.list = nil
	}
}

func (d *folder) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop()
}

// farCookies has the cookies that do not fit the kernel's offsets, which are signed, and of which two are taken.
// A cookie that fits is its offset, shifted by two.
type farCookies struct {
	list  []uint64
	first uint64 // how many have been forgotten
	index map[uint64]uint64
}

// farOffsets is where the offsets of far cookies begin.
const farOffsets = 1<<63 - 1<<40

// offset is the kernel's offset behind an entry with that cookie.
func (f *farCookies) offset(cookie uint64) uint64 {
	if cookie < farOffsets-behindDotDot {
		return cookie + behindDotDot
	}
	if at, ok := f.index[cookie]; ok {
		return farOffsets + at
	}
	if f.index == nil {
		f.index = make(map[uint64]uint64)
	}
	if len(f.list) == maxFarCookies {
		half := maxFarCookies / 2
		for _, old := range f.list[:half] {
			delete(f.index, old)
		}
		f.list, f.first = append(f.list[:0], f.list[half:]...), f.first+uint64(half)
	}
	at := f.first + uint64(len(f.list))
	f.list, f.index[cookie] = append(f.list, cookie), at
	return farOffsets + at
}

// cookie is the cookie that an offset stands for. ok is false if it was forgotten, or never was one.
func (f *farCookies) cookie(off uint64) (cookie uint64, ok bool) {
	if off < farOffsets {
		return off - behindDotDot, off >= behindDotDot
	}
	at := off - farOffsets
	if at < f.first || at-f.first >= uint64(len(f.list)) {
		return 0, false
	}
	return f.list[at-f.first], true
}
