//go:build linux

package localfs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/internal/server/localfs/identity"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/server/localfs/mounts"
	"github.com/nfsbox/nfsbox/vfs"
)

var (
	_ vfs.FS     = (*FS)(nil)
	_ vfs.Syncer = (*FS)(nil)
	_ vfs.Closer = (*FS)(nil)
)

// New serves the directory dir. A symbolic link in dir is followed, here and
// never again. Close ends the FS.
func New(dir string, o Options) (*FS, error) {
	o.fill()
	h := &host{o: o, sys: o.Sys, rootFD: -1, wholeFD: -1, locks: o.Locks}
	if h.locks == nil {
		h.locks = &Locks{}
	}
	if h.sys == nil {
		h.sys = linux.OS{}
	}
	h.disk = h.sys
	if o.Gate != nil {
		h.sys = gatedSys{h.disk, o.Gate}
	}
	if err := h.open(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("localfs: %s: %w", dir, err), h.shut())
	}
	v := &FS{host: h, who: h.creds.Of(nil)}
	v.openWhole()
	return v, nil
}

// open sets h up. What it has opened, shut closes, also after an error.
func (h *host) open(dir string) (err error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil {
		// Half of what the process may have: the other half is for connections.
		h.o.MaxOpen = int(min(uint64(h.o.MaxOpen), limit.Cur/2))
	}
	h.fds = fdcache.New(h.o.MaxOpen, h.closedDirty)
	h.flocks.Most, h.flocks.Closed = h.o.MaxOpen/lockShare, func() { h.fds.AddOpen(-1) }
	h.initWatches()
	h.sweeper.Look, h.sweeper.More = h.look, h.more
	h.fds.Clean, h.fds.Filled = h.cleanOldest, h.sweeper.Wake
	h.flights.init()
	h.newVerifier()
	if h.creds, err = identity.New(); err != nil {
		return err
	}
	if err := h.openRoot(dir); err != nil {
		return err
	}
	if err := h.openHandles(); err != nil {
		return err
	}
	if h.o.CrossMounts {
		if h.mounts, err = mounts.Open(mounts.Options{
			Path: h.rootPath, Root: h.rootFD, RootMount: h.rootMount, NeedHandles: h.mode == HandlesKernel,
			NoHandles: h.o.noHandles, Opened: h.fds.AddOpen, Report: h.o.Report,
		}); err != nil {
			return err
		}
	}
	h.root, err = h.handles.Root()
	return err
}

// openRoot opens the top directory and learns what tells it from others.
func (h *host) openRoot(dir string) (err error) {
	h.rootFD, err = unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		h.rootFD = -1
		return linux.Fail("open", err)
	}
	var st linux.Stat
	if err := st.Of(h.rootFD); err != nil {
		return fmt.Errorf("statx (Linux 5.8 or later is needed): %w", linux.Fail("statx", err))
	}
	if err := unix.Faccessat2(h.rootFD, "", 0, unix.AT_EMPTY_PATH); err != nil {
		return fmt.Errorf("faccessat2 (Linux 5.8 or later is needed): %w", linux.Fail("faccessat2", err))
	}
	h.rootIno, h.rootDev = st.Ino, st.Dev()
	if st.Mask&unix.STATX_MNT_ID != 0 {
		h.rootMount = st.Mnt_id
	}
	var buf [unix.PathMax]byte
	n, err := unix.Readlink(linux.ProcPath(h.rootFD), buf[:])
	if err != nil {
		return fmt.Errorf("/proc is not mounted: %w", linux.Fail("readlink", err))
	}
	h.rootPath = string(buf[:n])
	var sfs unix.Statfs_t
	if err := unix.Fstatfs(h.rootFD, &sfs); err != nil {
		return linux.Fail("fstatfs", err)
	}
	h.fsid = uint64(uint32(sfs.Fsid.Val[0])) | uint64(uint32(sfs.Fsid.Val[1]))<<32
	h.attrsInMemory = !h.o.CrossMounts && linux.IsLocal(int64(sfs.Type))
	return nil
}

// openHandles chooses what handles are made of.
func (h *host) openHandles() error {
	if h.o.Handles != HandlesMap {
		k, err := newKernelHandles(h)
		if err == nil {
			h.handles, h.mode = k, HandlesKernel
			return nil
		}
		if h.o.Handles == HandlesKernel {
			return fmt.Errorf("handles of the kernel do not work here: %w", err)
		}
	}
	m, err := handlemap.New(handlemap.Options{
		StateDir: h.o.StateDir, Volatile: h.o.Volatile, Disk: h.sys, Rand: h.o.Rand, Report: h.o.Report,
		Path: h.rootPath, Root: h.rootFD, RootMount: h.rootMount, Mount: func(id uint64) (*handlemap.Identifier, uint64, bool) { return h.mounts.Identifier(id) },
		FDs: h.fds, InTree: h.inTree, NoHandles: h.o.noHandles,
		Beneath: func(fd int) (bool, error) { return h.beneath(&fdcache.Desc{FD: fd}) },
	})
	if err != nil {
		return err
	}
	h.handles, h.mode, h.mapped, h.copiesUp = m, HandlesMap, m, m.CopiesUp()
	if h.o.Gate != nil {
		h.handles = gatedMap{m, h, m}
	}
	return nil
}

// Close makes stable what was written and closes all descriptors. No call may
// be in flight and no File open; the FS and its views are of no use afterwards.
func (h *host) Close() error {
	if h.closed.Swap(true) {
		return vfs.ErrInval
	}
	return h.shut()
}

func (h *host) shut() error {
	h.sweeper.Close()
	h.flocks.Release(func(*vfs.Owner) bool { return true })
	err := errors.Join(h.watches.Close(), h.mounts.Close())
	h.seal.Close(h.fds.AddOpen)
	err = errors.Join(h.closeWhole(err), h.fds.Close(h.syncLast))
	if h.handles != nil {
		err = errors.Join(err, h.handles.Close())
	}
	if h.rootFD >= 0 {
		err = linux.Close(h.rootFD, err)
		h.rootFD = -1
	}
	return err
}
