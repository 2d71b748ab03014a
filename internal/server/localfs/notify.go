//go:build linux

package localfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxNotified bounds the watches of an FS. At the bound, and at the kernel's own,
	// Watch is ErrBusy.
	maxNotified = 64 << 10
	// watchesShare is how much of what the kernel lets a user watch, one in so many,
	// is an FS's: the user's other programs need some, too. It is at least one
	// inode; beyond, Watch is ErrBusy.
	watchesShare = 4
	watchesLimit = "/proc/sys/fs/inotify/max_user_watches"
	// notifyBuffer is how many bytes of events are read at once, some 4000 of them.
	notifyBuffer = 64 << 10
	// notifyMask is what may end what somebody was granted: a change of rights or
	// of the number of names, and the end. A rename ends nothing.
	notifyMask = unix.IN_ATTRIB | unix.IN_DELETE_SELF
)

var _ vfs.Watcher = (*FS)(nil)

// notifier watches inodes by inotify(7), and so hears also of what programs of
// this host change. The first watch begins it. What is changed through this FS it
// is told at once, and hears of once more.
type notifier struct {
	h *host
	n atomic.Int64 // watches; while there are none, a change looks at nothing else

	mu      sync.Mutex // held while those who watch are told
	file    *os.File   // the inotify instance; nil: none yet, or closed
	fd      int        // of file
	most    int        // inodes that may be watched
	silent  bool       // that none can be had was reported
	closed  bool
	noted   map[int32]*noted      // by the kernel's number of the inode's watch
	byName  map[vfs.Handle]*noted // the same
	byInode map[inode]*noted      // the same: an inode has a handle by each mount
	running sync.WaitGroup        // the goroutine that reads
}

// noted is an inode that is watched.
type noted struct {
	wd       int32
	x        vfs.Handle // if it has two, by two mounts, the one that was watched first
	inode    inode
	was      grounds
	watchers map[*func(vfs.Change)]struct{}
}

// inode tells an inode from others by whatever mount it is seen, unless it is
// copied to another layer (overlayfs), which leaves it its handle.
type inode struct {
	linux.Ident
	dev uint64
}

func inodeBy(st *linux.Stat) inode { return inode{st.Ident(), st.Dev()} }

// grounds are what rights rest on.
type grounds struct {
	mode, nlink, uid, gid uint32
	acl                   string
}

// Watch implements vfs.Watcher. Programs of this host are heard, unless there is no
// inotify or this process may not read the object: that is ErrNotSupp.
func (v *FS) Watch(x vfs.Handle, changed func(vfs.Change)) (stop func(), err error) {
	if err := v.begin(context.Background(), classMeta); err != nil {
		return nil, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return nil, err
	}
	defer v.fds.Unpin(d)
	o, err := v.notifier.add(d, &changed)
	if err != nil {
		return nil, err
	}
	return func() { v.notifier.remove(o, &changed) }, nil
}

func (n *notifier) add(d *fdcache.Desc, changed *func(vfs.Change)) (*noted, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.start(); err != nil {
		return nil, err
	}
	if n.n.Load() >= maxNotified {
		return nil, vfs.ErrBusy
	}
	wd, err := unix.InotifyAddWatch(n.fd, linux.ProcPath(d.FD), notifyMask)
	switch {
	case errors.Is(err, unix.ENOSPC):
		return nil, fmt.Errorf("localfs: fs.inotify.max_user_watches: %w", vfs.ErrBusy)
	case errors.Is(err, unix.ENOMEM):
		return nil, linux.Fail("inotify_add_watch", err)
	case err != nil:
		return nil, vfs.ErrNotSupp
	}
	o := n.noted[int32(wd)]
	if o == nil {
		o = &noted{wd: int32(wd), x: d.H, watchers: make(map[*func(vfs.Change)]struct{})}
		// What has changed up to here is the caller's to see, who looks afterwards.
		var st linux.Stat
		err = st.Of(d.FD)
		o.inode = inodeBy(&st)
		n.noted[o.wd], n.byName[o.x], n.byInode[o.inode] = o, o, o
		switch {
		case err == nil && st.Nlink == 0:
			err = vfs.ErrStale
		case err == nil && len(n.noted) > n.most:
			err = vfs.ErrBusy
		}
		if err != nil {
			n.drop(o)
			return nil, linux.Fail("statx", err)
		}
		o.was = groundsBy(d, &st)
	}
	o.watchers[changed] = struct{}{}
	n.n.Add(1)
	return o, nil
}

// start begins to listen. n.mu is held.
func (n *notifier) start() error {
	switch {
	case n.file != nil:
		return nil
	case n.closed:
		return vfs.ErrNotSupp
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil { // the next watch tries again: descriptors may be short, or instances
		if !n.silent {
			n.silent = true
			n.h.o.Report(fmt.Errorf("localfs: %s: what local programs change is not heard of: inotify: %w", n.h.rootPath, err))
		}
		return vfs.ErrNotSupp
	}
	n.file, n.fd, n.most = os.NewFile(uintptr(fd), "inotify"), fd, mostNotified()
	n.noted, n.byName, n.byInode = make(map[int32]*noted), make(map[vfs.Handle]*noted), make(map[inode]*noted)
	n.h.fds.Lend(1)
	file := n.file
	n.running.Go(func() { n.listen(file) })
	return nil
}

// mostNotified is how many inodes an FS watches at most.
func mostNotified() int {
	raw, err := os.ReadFile(watchesLimit)
	if err != nil {
		return maxNotified
	}
	limit, err := strconv.Atoi(string(bytes.TrimSpace(raw)))
	if err != nil {
		return maxNotified
	}
	return max(1, min(maxNotified, limit/watchesShare))
}

// find is the inode x, of which st was told, if it is watched. n.mu is held.
func (n *notifier) find(x vfs.Handle, st *linux.Stat) *noted {
	if o := n.byName[x]; o != nil {
		return o
	}
	return n.byInode[inodeBy(st)]
}

func (n *notifier) remove(o *noted, changed *func(vfs.Change)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := o.watchers[changed]; !ok || n.closed {
		return
	}
	delete(o.watchers, changed)
	n.n.Add(-1)
	if len(o.watchers) == 0 && n.noted[o.wd] == o {
		n.drop(o)
	}
}

// drop forgets an inode that nobody watches any more. n.mu is held.
func (n *notifier) drop(o *noted) {
	n.forget(o)
	// The kernel's watch may have gone with the inode.
	_, _ = unix.InotifyRmWatch(n.fd, uint32(o.wd))
}

// forget forgets an inode that the kernel does not watch any more. n.mu is held.
func (n *notifier) forget(o *noted) {
	delete(n.noted, o.wd)
	if n.byName[o.x] == o {
		delete(n.byName, o.x)
	}
	if n.byInode[o.inode] == o {
		delete(n.byInode, o.inode)
	}
}

// close ends all watches, and the goroutine that reads.
func (n *notifier) close() (err error) {
	n.mu.Lock()
	file := n.file
	n.file, n.noted, n.byName, n.byInode, n.closed = nil, nil, nil, nil, true
	n.mu.Unlock()
	if file == nil {
		return nil
	}
	err = file.Close()
	n.running.Wait()
	n.h.fds.Lend(-1)
	return err
}

// listen reads events until the instance is closed.
func (n *notifier) listen(file *os.File) {
	buf := make([]byte, notifyBuffer)
	for {
		got, err := file.Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			n.h.o.Report(fmt.Errorf("localfs: %s: what local programs change is no longer heard of: %w", n.h.rootPath, err))
			n.tellAll()
			return
		}
		for b := buf[:got]; len(b) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
			n.event(wd, mask)
			b = b[min(unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(b[12:])), len(b)):]
		}
	}
}

// event deals with one event: it looks at what has become of the object.
func (n *notifier) event(wd int32, mask uint32) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		n.tellAll()
		return
	}
	n.mu.Lock()
	o := n.noted[wd]
	n.mu.Unlock()
	if o == nil {
		return
	}
	now, change := grounds{}, vfs.ChangeGone
	var err error
	if mask&(unix.IN_IGNORED|unix.IN_DELETE_SELF|unix.IN_UNMOUNT) == 0 {
		if now, err = n.look(o.x); err == nil {
			change = 0
		} else if !errors.Is(err, vfs.ErrStale) {
			change |= vfs.ChangeRights
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.noted[wd] != o {
		return
	}
	if change == 0 {
		change = o.was.changed(now)
		o.was = now
	}
	o.tell(change)
	if mask&unix.IN_IGNORED != 0 {
		n.forget(o)
	}
}

// look is what rights of x rest on now.
func (n *notifier) look(x vfs.Handle) (g grounds, err error) {
	v := FS{host: n.h, who: n.h.creds.Of(nil)}
	if err := v.begin(context.Background(), classMeta); err != nil {
		return g, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return g, err
	}
	defer v.fds.Unpin(d)
	if g, err = groundsOf(d); errors.Is(err, vfs.ErrStale) {
		v.fds.Forget(x) // whose blocks a local program wants back
	}
	return g, err
}

func groundsOf(d *fdcache.Desc) (g grounds, err error) {
	var st linux.Stat
	if err := st.Of(d.FD); err != nil {
		return g, linux.Fail("statx", err)
	}
	if st.Nlink == 0 {
		return g, vfs.ErrStale
	}
	return groundsBy(d, &st), nil
}

// groundsBy is groundsOf when st is known.
func groundsBy(d *fdcache.Desc, st *linux.Stat) grounds {
	g := grounds{mode: uint32(st.Mode), nlink: st.Nlink, uid: st.Uid, gid: st.Gid}
	var list [unix.PathMax]byte
	size, err := unix.Getxattr(linux.ProcPath(d.FD), linux.XattrAccess, list[:])
	switch {
	case err == nil:
		g.acl = string(list[:size])
	case errors.Is(err, unix.ERANGE):
		g.acl = strconv.FormatUint(st.Change(), 10) // any change counts, then
	}
	return g
}

// judged notes that somebody who watches d is granted something on the ground of
// what st says. It may not be what the watch began with, and be the same again
// before the events are read, which then would tell of no change.
func (n *notifier) judged(d *fdcache.Desc, st *linux.Stat) {
	if n.n.Load() == 0 {
		return
	}
	now := groundsBy(d, st)
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := n.find(d.H, st); o != nil {
		change := o.was.changed(now)
		o.was = now
		o.tell(change)
	}
}

// changed says what is another in now.
func (g grounds) changed(now grounds) (c vfs.Change) {
	if now.nlink < g.nlink {
		c |= vfs.ChangeGone
	}
	if now.nlink = g.nlink; now != g {
		c |= vfs.ChangeRights
	}
	return c
}

// tell tells those who watch. notifier.mu is held.
func (o *noted) tell(c vfs.Change) {
	if c == 0 {
		return
	}
	for changed := range o.watchers {
		(*changed)(c)
	}
}

// changed tells those who watch x, of which st was told before, of a change that was
// made through this FS, or may have been, since it ended with err.
func (n *notifier) changed(x vfs.Handle, st *linux.Stat, c vfs.Change, err error) {
	if n.n.Load() == 0 || errors.Is(err, vfs.ErrPerm) || errors.Is(err, vfs.ErrAccess) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := n.find(x, st); o != nil {
		o.tell(c)
	}
}

// tellAll tells everybody that something may have happened.
func (n *notifier) tellAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.noted {
		o.tell(vfs.ChangeGone | vfs.ChangeRights)
	}
}
