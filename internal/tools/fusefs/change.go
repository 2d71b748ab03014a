//go:build linux

package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/vfs"
)

// staleNode answers a request for a node that is not in the table.
const staleNode = syscall.ESTALE

// make makes an object, and tells the kernel of it.
func (m *Mount) make(cancel <-chan struct{}, h *fuse.InHeader, name string, how *vfs.CreateHow, umask uint32, out *fuse.EntryOut) fuse.Status {
	c := m.begin(cancel, h)
	defer c.end()
	n, dir, ok := m.node(h.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	if how.Set.Valid&vfs.MaskMode != 0 {
		how.Set.Mode = m.mode(c, n, dir, how.Set.Mode, umask)
	}
	obj, a, _, err := c.fs.Create(c, dir, name, how)
	if err != nil {
		return errno(c, err)
	}
	if obj.IsZero() { // RFC 1813 leaves the handle of what was made to the server's pleasure
		if obj, a, _, err = c.fs.Lookup(c, dir, name); err != nil {
			return errno(c, err)
		}
	}
	return m.entry(c, n, name, obj, &a, out)
}

// Mknod implements fuse.RawFileSystem.
func (m *Mount) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return m.make(cancel, &in.InHeader, name, &vfs.CreateHow{
		Type: typeOf(in.Mode), Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: in.Mode & 0o7777}, Rdev: unpackDev(in.Rdev),
	}, in.Umask, out)
}

// Mkdir implements fuse.RawFileSystem.
func (m *Mount) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return m.make(cancel, &in.InHeader, name, &vfs.CreateHow{
		Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: in.Mode & 0o7777},
	}, in.Umask, out)
}

// Symlink implements fuse.RawFileSystem.
func (m *Mount) Symlink(cancel <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return m.make(cancel, h, name, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: target}, 0, out)
}

// Link implements fuse.RawFileSystem.
func (m *Mount) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	n, dir, ok := m.node(in.NodeId)
	_, h, ok2 := m.node(in.Oldnodeid)
	if !ok || !ok2 {
		return fuse.Status(staleNode)
	}
	a, _, err := c.fs.Link(c, h, dir, name)
	if err != nil {
		return errno(c, err)
	}
	return m.entry(c, n, name, h, &a, out)
}

// Unlink implements fuse.RawFileSystem.
func (m *Mount) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return m.remove(cancel, h, name, false)
}

// Rmdir implements fuse.RawFileSystem.
func (m *Mount) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return m.remove(cancel, h, name, true)
}

func (m *Mount) remove(cancel <-chan struct{}, h *fuse.InHeader, name string, isDir bool) fuse.Status {
	c := m.begin(cancel, h)
	defer c.end()
	_, dir, ok := m.node(h.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	m.settle.wait(c)
	_, err := c.fs.Remove(c, dir, name, isDir)
	return errno(c, err)
}

// Rename implements fuse.RawFileSystem. NFS has none of the flags of renameat2(2).
func (m *Mount) Rename(cancel <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	if in.Flags != 0 {
		return fuse.EINVAL
	}
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	n, dir, ok := m.node(in.NodeId)
	toNode, toDir, ok2 := m.node(in.Newdir)
	if !ok || !ok2 {
		return fuse.Status(staleNode)
	}
	m.settle.wait(c)
	_, _, err := c.fs.Rename(c, dir, from, toDir, to)
	if err == nil {
		m.nodes.rename(n, from, toNode, to)
	}
	return errno(c, err)
}
