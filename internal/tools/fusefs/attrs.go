//go:build linux

package fusefs

import (
	"errors"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/vfs"
)

// Lookup implements fuse.RawFileSystem.
func (m *Mount) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	c := m.begin(cancel, h)
	defer c.end()
	n, dir, ok := m.node(h.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	obj, a, dirAttr, err := c.fs.Lookup(c, dir, name)
	n.saw(&dirAttr)
	if errors.Is(err, vfs.ErrNoEnt) {
		keep := n.entryTime(&m.opt, false)
		if keep == 0 {
			return fuse.ENOENT
		}
		out.SetEntryTimeout(keep) // without a node: the kernel may go on saying no
		return fuse.OK
	}
	if err != nil {
		return errno(c, err)
	}
	return m.entry(c, n, name, obj, &a, out)
}

// Forget implements fuse.RawFileSystem.
func (m *Mount) Forget(id, count uint64) { m.nodes.forget(id, count) }

// GetAttr implements fuse.RawFileSystem.
func (m *Mount) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	n, h, ok := m.node(in.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	return m.answerAttr(c, n, h, nil, out)
}

func (m *Mount) answerAttr(c *call, n *node, h vfs.Handle, a *vfs.Attr, out *fuse.AttrOut) fuse.Status {
	full, err := c.attr(h, a)
	if err != nil {
		return errno(c, err)
	}
	out.SetTimeout(n.tell(&full, c.now, &m.opt.Times))
	fill(&out.Attr, &full, m.fsid)
	n.numbered(out.Attr.Ino)
	return fuse.OK
}

// SetAttr implements fuse.RawFileSystem.
func (m *Mount) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	n, h, ok := m.node(in.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	set := wanted(in)
	m.pagesFirst(n, &set)
	var wcc vfs.WCC
	var err error
	if f, ok := m.opened(in); ok && set.Valid&vfs.MaskSize != 0 {
		// ftruncate(2): the right to write was given when the file was opened.
		wcc, err = f.file.Truncate(c, set.Size)
		set.Valid &^= vfs.MaskSize
	} else if set.Valid&vfs.MaskSize != 0 {
		// truncate(2): servers let an owner write whatever the mode says, for the sake of files that are open (RFC 1813, 4.4).
		_, err = c.may(h, vfs.AccessModify)
	}
	if err == nil && set.Valid != 0 {
		wcc, err = c.fs.SetAttr(c, h, &set, nil)
		n.relisted()
	}
	if err != nil {
		return errno(c, err)
	}
	return m.answerAttr(c, n, h, &wcc.After, out)
}

// pagesFirst has the kernel write the pages that programs have changed by mappings before a time of change is set: it
// would do so later, and the time would be that of the write. A file whose size is set is left alone, since then the
// kernel holds its pages back until it has the answer.
func (m *Mount) pagesFirst(n *node, set *vfs.SetAttr) {
	n.mu.Lock()
	mixed := n.mixed > 0
	n.mu.Unlock()
	if mixed && set.Valid&vfs.MaskMtime != 0 && set.Valid&vfs.MaskSize == 0 {
		_ = m.server.InodeNotify(n.id, 0, 0) // ENOENT: it has none
	}
}

// opened is the file by which attributes are set, if it may be written.
func (m *Mount) opened(in *fuse.SetAttrIn) (*openFile, bool) {
	id, ok := in.GetFh()
	if !ok {
		return nil, false
	}
	f, ok := m.files.get(id)
	return f, ok && f.access&vfs.ShareWrite != 0
}

// wanted are the attributes that the kernel asks to be set.
func wanted(in *fuse.SetAttrIn) vfs.SetAttr {
	var s vfs.SetAttr
	for _, one := range []struct {
		asked uint32
		mask  vfs.Mask
	}{
		{fuse.FATTR_MODE, vfs.MaskMode},
		{fuse.FATTR_UID, vfs.MaskUID},
		{fuse.FATTR_GID, vfs.MaskGID},
		{fuse.FATTR_SIZE, vfs.MaskSize},
		{fuse.FATTR_ATIME, vfs.MaskAtime},
		{fuse.FATTR_MTIME, vfs.MaskMtime},
	} {
		if in.Valid&one.asked != 0 {
			s.Valid |= one.mask
		}
	}
	s.Mode, s.UID, s.GID, s.Size = in.Mode&0o7777, in.Uid, in.Gid, in.Size
	s.AtimeNow, s.MtimeNow = in.Valid&fuse.FATTR_ATIME_NOW != 0, in.Valid&fuse.FATTR_MTIME_NOW != 0
	s.Atime = time.Unix(int64(in.Atime), int64(in.Atimensec))
	s.Mtime = time.Unix(int64(in.Mtime), int64(in.Mtimensec))
	return s
}

// Access implements fuse.RawFileSystem. The kernel asks for access(2) and chdir(2).
func (m *Mount) Access(cancel <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	_, h, ok := m.node(in.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	a, err := c.fs.GetAttr(c, h, vfs.MaskType)
	if err != nil || in.Mask == fuse.F_OK {
		return errno(c, err)
	}
	_, err = c.may(h, rights(in.Mask, a.Type == vfs.TypeDir))
	return errno(c, err)
}

// rights are those that access(2) means.
func rights(mask uint32, dir bool) vfs.Access {
	var want vfs.Access
	if mask&fuse.R_OK != 0 {
		want |= vfs.AccessRead
	}
	if mask&fuse.W_OK != 0 {
		if want |= vfs.AccessModify | vfs.AccessExtend; dir {
			want |= vfs.AccessDelete
		}
	}
	if mask&fuse.X_OK != 0 {
		if dir {
			want |= vfs.AccessLookup
		} else {
			want |= vfs.AccessExecute
		}
	}
	return want
}

// may is ErrAccess unless the caller has all rights in want.
func (c *call) may(h vfs.Handle, want vfs.Access) (vfs.Attr, error) {
	have, a, err := c.fs.Access(c, h, want)
	if err == nil && have&want != want {
		err = vfs.ErrAccess
	}
	return a, err
}

// Readlink implements fuse.RawFileSystem.
func (m *Mount) Readlink(cancel <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	c := m.begin(cancel, h)
	defer c.end()
	_, obj, ok := m.node(h.NodeId)
	if !ok {
		return nil, fuse.Status(staleNode)
	}
	target, _, err := c.fs.Readlink(c, obj)
	return []byte(target), errno(c, err)
}

// blockSize is that of statfs(2). Space is in whole blocks, rounded down.
const blockSize = 4096

// StatFs implements fuse.RawFileSystem.
func (m *Mount) StatFs(cancel <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	c := m.begin(cancel, h)
	defer c.end()
	_, obj, ok := m.node(h.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	i, err := c.fs.Info(c, obj, vfs.InfoSpace|vfs.InfoNames)
	if err != nil {
		return errno(c, err)
	}
	*out = fuse.StatfsOut{
		Bsize: blockSize, Frsize: blockSize, NameLen: 255,
		Blocks: i.TotalBytes / blockSize, Bfree: i.FreeBytes / blockSize, Bavail: i.AvailBytes / blockSize,
		Files: i.TotalFiles, Ffree: i.FreeFiles,
	}
	if i.Valid&vfs.InfoNames != 0 && i.NameMax > 0 {
		out.NameLen = i.NameMax
	}
	return fuse.OK
}
