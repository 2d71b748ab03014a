//go:build linux

package fusefs

import (
	"errors"
	"io"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// openFile is a file that a program has open. It is used with the opener's rights.
type openFile struct {
	file   vfs.File
	node   *node
	fs     vfs.FS
	access vfs.Share
	how    vfs.Stability // of every write
	told   atomic.Bool   // a program knows that something has failed

	unheard atomic.Pointer[error] // the first failure of which no program knows
}

// fmodeExec is in the flags of an open that runs the file (the kernel's __FMODE_EXEC).
const fmodeExec = 0x20

// use is what an open uses of the file, and the rights that it takes.
func use(flags uint32) (vfs.Share, vfs.Access) {
	if flags&fmodeExec != 0 {
		return vfs.ShareRead, vfs.AccessExecute
	}
	switch flags & syscall.O_ACCMODE {
	case syscall.O_WRONLY:
		return vfs.ShareWrite, vfs.AccessModify
	case syscall.O_RDONLY:
		return vfs.ShareRead, vfs.AccessRead
	}
	return vfs.ShareRead | vfs.ShareWrite, vfs.AccessRead | vfs.AccessModify
}

// stability is that of the writes of an open: those past the cache are safe when they return. O_SYNC is the kernel's,
// which calls fsync.
func (m *Mount) stability(flags uint32) vfs.Stability {
	switch {
	case m.opt.Sync:
		return vfs.FileSync
	case flags&syscall.O_DIRECT != 0:
		return vfs.DataSync
	}
	return vfs.Unstable
}

// Open implements fuse.RawFileSystem.
func (m *Mount) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	n, h, ok := m.node(in.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	access, want := use(in.Flags)
	a, err := c.may(h, want)
	if err == nil && !m.opt.NoCTO {
		a, err = c.attr(h, &a)
	}
	if err != nil {
		return errno(c, err)
	}
	file, _, err := c.fs.Open(c, vfs.At{H: h, Label: m.nodes.label(n)}, &vfs.OpenHow{Access: access})
	if err != nil {
		return errno(c, err)
	}
	if pages, told := n.opened(&a); m.opt.NoCTO || pages && told {
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
	} else if !told {
		// The kernel drops its pages. It is to ask for the size as well.
		_ = m.server.InodeNotify(n.id, -1, 0) // ENOENT: it has none
	}
	out.OpenFlags |= appends(in.Flags)
	out.Fh = m.number(&openFile{file: file, node: n, fs: c.fs, access: access, how: m.stability(in.Flags)})
	return fuse.OK
}

// appends has an open with O_APPEND go past the kernel's pages. The kernel would put the bytes into the page where it
// believes the end to be, and others may have moved it.
func appends(flags uint32) uint32 {
	if flags&syscall.O_APPEND != 0 {
		return fuse.FOPEN_DIRECT_IO
	}
	return 0
}

// number adds an open file, and returns its number.
func (m *Mount) number(f *openFile) uint64 {
	f.node.mix(f.access, 1)
	return m.files.add(f)
}

// mix counts opens to read and write.
func (n *node) mix(access vfs.Share, by int) {
	if access != vfs.ShareRead|vfs.ShareWrite {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mixed += by
}

// Create implements fuse.RawFileSystem.
func (m *Mount) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	n, dir, ok := m.node(in.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	access, want := use(in.Flags)
	how := &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked,
		Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: m.mode(c, n, dir, in.Mode, in.Umask)}}
	if in.Flags&syscall.O_EXCL != 0 {
		how.Mode = vfs.CreateExclusive
		m.opt.Rand(how.Verf[:])
	}
	file, o, err := m.openNew(c, dir, name, access, how)
	if err != nil {
		return errno(c, err)
	}
	if !o.Created {
		_, err = c.may(o.H, want)
	}
	a := o.Attr
	if err == nil {
		a, err = c.attr(o.H, &a)
	}
	if err != nil {
		return errno(c, errors.Join(err, file.Close(c)))
	}
	m.enter(c, n, name, o.H, &a, &out.EntryOut)
	out.OpenFlags |= appends(in.Flags)
	out.Fh = m.number(&openFile{file: file, node: m.nodes.get(out.NodeId), fs: c.fs, access: access, how: m.stability(in.Flags)})
	return fuse.OK
}

// openNew opens a name, and makes it first. A file that was made exclusively gets its attributes afterwards, since its
// times have held the verifier.
func (m *Mount) openNew(c *call, dir vfs.Handle, name string, access vfs.Share, how *vfs.CreateHow) (vfs.File, vfs.Opened, error) {
	at, open := vfs.At{Dir: dir, Name: name}, &vfs.OpenHow{Access: access, Create: how}
	file, o, err := c.fs.Open(c, at, open)
	if how.Mode != vfs.CreateExclusive {
		return file, o, err
	}
	if errors.Is(err, vfs.ErrNotSupp) {
		how.Mode = vfs.CreateGuarded
		return c.fs.Open(c, at, open)
	}
	if err != nil {
		return nil, o, err
	}
	set := how.Set
	set.Valid |= vfs.MaskAtime | vfs.MaskMtime
	set.AtimeNow, set.MtimeNow = true, true
	wcc, err := c.fs.SetAttr(c, o.H, &set, nil)
	if err != nil {
		return nil, o, errors.Join(err, file.Close(c))
	}
	o.Attr, o.Created = wcc.After, true
	return file, o, nil
}

// Read implements fuse.RawFileSystem.
func (m *Mount) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	f, ok := m.files.get(in.Fh)
	if !ok {
		return nil, fuse.EBADF
	}
	n, _, err := vfs.ReadFull(c, f.file, buf, in.Offset)
	if err != nil {
		return nil, errno(c, err)
	}
	return fuse.ReadResultData(buf[:n]), fuse.OK
}

// Write implements fuse.RawFileSystem.
func (m *Mount) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	f, ok := m.files.get(in.Fh)
	if !ok {
		return 0, fuse.EBADF
	}
	off, err := f.place(c, in)
	if err != nil {
		return 0, errno(c, err)
	}
	if off != in.Offset {
		defer m.forgetPages(f.node)
	}
	var w vfs.Written
	n, err := vfs.WriteFull(c, f.file, data, off, f.how, &w)
	if err != nil && n == 0 {
		if in.WriteFlags&fuse.WRITE_CACHE != 0 {
			f.unheard.CompareAndSwap(nil, &err) // pages of a mapping, which the kernel writes when it likes
		} else {
			f.told.Store(true)
		}
		return 0, errno(c, err)
	}
	if in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0 {
		_ = m.server.InodeNotify(f.node.id, -1, 0) // set-uid bits have gone with the write
	}
	return uint32(n), fuse.OK
}

// place is where the bytes of a write belong: with O_APPEND at the end of the file as the server has it now. The kernel
// names the end that it was told of last. Two hosts that append at the same moment may still meet: NFS has no APPEND.
func (f *openFile) place(c *call, in *fuse.WriteIn) (uint64, error) {
	if in.Flags&syscall.O_APPEND == 0 {
		return in.Offset, nil
	}
	a, err := f.fs.GetAttr(c, f.node.handle(), vfs.MaskSize)
	if err == nil && !a.Has(vfs.MaskSize) {
		err = vfs.ErrServerFault
	}
	return a.Size, err
}

// forgetPages has the kernel drop its pages and attributes of a file. That waits for pages which the request under way
// may hold, and so is done beside it.
func (m *Mount) forgetPages(n *node) {
	go func() { _ = m.server.InodeNotify(n.id, 0, 0) }() // ENOENT: it has none
}

// Flush implements fuse.RawFileSystem: close(2), which says what has failed.
func (m *Mount) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	f, ok := m.files.get(in.Fh)
	if !ok {
		return fuse.EBADF
	}
	c := m.closing(cancel, &in.InHeader)
	defer c.end()
	var lost error
	if f.access&vfs.ShareWrite != 0 {
		lost = f.commit(c)
		if lost != nil && c.Err() == nil && leaving(in.Pid) {
			f.unheard.CompareAndSwap(nil, &lost) // a process on its way out hears nothing
		}
	}
	// After the bytes: the next holder of the lock is to find them.
	err := errors.Join(lost, m.unlockAll(c, f.node, in.LockOwner))
	m.settle.announce(f, c.now)
	return errno(c, err)
}

// commit makes all bytes of the file stable.
func (f *openFile) commit(c *call) error {
	var w vfs.Written
	err := f.file.Commit(c, 0, 0, &w)
	if err != nil && c.Err() == nil {
		f.told.Store(true)
	}
	return err
}

// Fsync implements fuse.RawFileSystem.
func (m *Mount) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	f, ok := m.files.get(in.Fh)
	if !ok {
		return fuse.EBADF
	}
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	return errno(c, f.commit(c))
}

// Release implements fuse.RawFileSystem. Nobody waits for it.
func (m *Mount) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	if f, ok := m.files.take(in.Fh); ok {
		f.node.mix(f.access, -1)
		m.shut(f)
	}
}

// shut closes a file behind the kernel's back. Its bytes are sent for as long as the mount lasts.
func (m *Mount) shut(f *openFile) {
	m.settle.begin(f)
	go func() {
		m.unlockLast(f)
		err := f.file.Close(m.base)
		if err != nil && f.told.Load() {
			err = nil // whoever wrote has heard of it
		}
		if lost := f.unheard.Load(); err == nil && lost != nil {
			err = *lost
		}
		if err != nil {
			err = m.lost(f.node, err)
		}
		if !m.settle.end(err) || err != nil {
			m.log(err.Error())
		}
	}()
}

// Lseek implements fuse.RawFileSystem: SEEK_DATA and SEEK_HOLE. Without the power the kernel takes the whole file for data.
func (m *Mount) Lseek(cancel <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	f, ok := m.files.get(in.Fh)
	if !ok {
		return fuse.EBADF
	}
	seeker, ok := vfs.As[vfs.HoleSeeker](f.file)
	if !ok {
		return fuse.ENOSYS
	}
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	next := seeker.NextHole
	if in.Whence == unix.SEEK_DATA {
		next = seeker.NextData
	}
	at, err := next(c, in.Offset)
	if errors.Is(err, io.EOF) {
		return fuse.Status(syscall.ENXIO)
	}
	out.Offset = at
	return errno(c, err)
}
