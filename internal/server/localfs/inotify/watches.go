//go:build linux

package inotify

import (
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxWatches bounds the watches. At the bound, and at the kernel's own, Watch is
	// vfs.ErrBusy.
	maxWatches = 64 << 10
	// watchesShare is how much of what the kernel lets a user watch, one in so many, is
	// for one Watches: the user's other programs need some, too. It is at least one
	// inode; beyond, Watch is vfs.ErrBusy.
	watchesShare = 4
	watchesLimit = "/proc/sys/fs/inotify/max_user_watches"
	// watchMask is what may end what somebody was granted: a change of rights or of the
	// number of names, and the end. A rename ends nothing.
	watchMask = unix.IN_ATTRIB | unix.IN_DELETE_SELF
)

// Watches are the watchers of a file system's objects. The fields are set before the
// first call; the methods may be called concurrently.
type Watches struct {
	// Look opens the object x anew, and is Of it. vfs.ErrStale says that it is gone. It
	// is called by a goroutine of Watches, and may block.
	Look func(x vfs.Handle) (State, error)
	// Report is told once that there is no inotify, and that it has failed.
	Report func(error)
	// Opened counts descriptors: 1 when one is opened, -1 when it is closed.
	Opened func(n int)

	n atomic.Int64 // watches; while there are none, a change looks at nothing else

	mu      sync.Mutex // held while those who watch are told
	file    *os.File   // the inotify instance; nil: none yet, or closed
	fd      int        // of file
	most    int        // inodes that may be watched
	silent  bool       // that none can be had was reported
	closed  bool
	watched map[int32]*watched      // by the kernel's number of the inode's watch
	byName  map[vfs.Handle]*watched // the same
	byInode map[inode]*watched      // the same: an inode has a handle by each mount
	running sync.WaitGroup          // the goroutine that reads
}

// watched is an inode that is watched.
type watched struct {
	wd       int32
	x        vfs.Handle // if it has two, by two mounts, the one that was watched first
	inode    inode
	was      State
	watchers map[*func(vfs.Change)]struct{}
}

// inode tells an inode from others by whatever mount it is seen, unless it is
// copied to another layer (overlayfs), which leaves it its handle.
type inode struct {
	linux.Ident
	dev uint64
}

func inodeBy(st *linux.Stat) inode { return inode{st.Ident(), st.Dev()} }

// find is the inode x, of which st was told, if it is watched. n.mu is held.
func (n *Watches) find(x vfs.Handle, st *linux.Stat) *watched {
	if o := n.byName[x]; o != nil {
		return o
	}
	return n.byInode[inodeBy(st)]
}

func (n *Watches) remove(o *watched, changed *func(vfs.Change)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := o.watchers[changed]; !ok || n.closed {
		return
	}
	delete(o.watchers, changed)
	n.n.Add(-1)
	if len(o.watchers) == 0 && n.watched[o.wd] == o {
		n.drop(o)
	}
}

// drop forgets an inode that nobody watches any more. n.mu is held.
func (n *Watches) drop(o *watched) {
	n.forget(o)
	// The kernel's watch may have gone with the inode.
	_, _ = unix.InotifyRmWatch(n.fd, uint32(o.wd))
}

// forget forgets an inode that the kernel does not watch any more. n.mu is held.
func (n *Watches) forget(o *watched) {
	delete(n.watched, o.wd)
	if n.byName[o.x] == o {
		delete(n.byName, o.x)
	}
	if n.byInode[o.inode] == o {
		delete(n.byInode, o.inode)
	}
}

// Count is how many watches there are, and of how many inodes.
func (n *Watches) Count() (watches, inodes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int(n.n.Load()), max(len(n.watched), len(n.byName), len(n.byInode))
}

// Close ends all watches, and the goroutine that reads.
func (n *Watches) Close() (err error) {
	n.mu.Lock()
	file := n.file
	n.file, n.watched, n.byName, n.byInode, n.closed = nil, nil, nil, nil, true
	n.mu.Unlock()
	if file == nil {
		return nil
	}
	err = file.Close()
	n.running.Wait()
	n.Opened(-1)
	return err
}

// Judged notes that somebody is granted something on the ground of what st says of x, of
// which fd is a descriptor. If that is another state than the one noted, the watchers are
// told.
func (n *Watches) Judged(x vfs.Handle, fd int, st *linux.Stat) {
	if n.n.Load() == 0 {
		return
	}
	now := stateBy(fd, st)
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := n.find(x, st); o != nil {
		change := o.was.changed(now)
		o.was = now
		o.tell(change)
	}
}

// Changed tells the watchers of x, of which st was told before, that c has happened.
func (n *Watches) Changed(x vfs.Handle, st *linux.Stat, c vfs.Change) {
	if n.n.Load() == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := n.find(x, st); o != nil {
		o.tell(c)
	}
}

// tell tells the watchers. Watches.mu is held.
func (o *watched) tell(c vfs.Change) {
	if c == 0 {
		return
	}
	for changed := range o.watchers {
		(*changed)(c)
	}
}
