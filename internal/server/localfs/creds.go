//go:build linux

package localfs

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// threadIDs are the calls that change the identity of the calling thread alone.
// (syscall.Setgroups and its like change that of all threads.) Tests put others
// in their place.
type threadIDs struct {
	setGroups func(gids []int) error
	setFSGID  func(gid int) (old int, err error)
	setFSUID  func(uid int) (old int, err error)
	setCaps   func(*caps) error
}

func osThreadIDs() threadIDs {
	return threadIDs{
		setGroups: unix.Setgroups,
		setFSGID:  unix.SetfsgidRetGid,
		setFSUID:  unix.SetfsuidRetUid,
		setCaps:   setCaps,
	}
}

// caps are a thread's capabilities, as capset(2) has them.
type caps [2]unix.CapUserData

func getCaps(c *caps) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&hdr, &c[0])
}

func setCaps(c *caps) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(&hdr, &c[0])
}

// without returns c less one capability in its effective set.
func (c caps) without(capability int) caps {
	c[capability/32].Effective &^= 1 << (capability % 32)
	return c
}

// has reports whether a capability is in the effective set.
func (c *caps) has(capability int) bool {
	return c[capability/32].Effective&(1<<(capability%32)) != 0
}

// errIdentity says that the thread of this goroutine could not be given its
// own identity back. The goroutine keeps the thread to itself, and both end
// together; until then nothing is done on it.
var errIdentity = fmt.Errorf("localfs: this thread's identity could not be restored: %w", vfs.ErrServerFault)

// creds lends other people's identities to the thread of a call. Each part of an
// identity costs a system call of about two microseconds there, and one back, so
// only what differs is set; a hand-off to another goroutine would cost more.
type creds struct {
	ids      threadIDs
	uid, gid int // the process' own
	groups   []int
	own      caps
	less     caps // what own leaves to others
	able     bool // we may take on other identities

	// lost counts, and threads holds, those whose identity could not be
	// restored.
	lost    atomic.Int32
	mu      sync.Mutex
	threads map[int]bool
}

// newCreds finds out as which user the process runs and whether it may be others.
func newCreds(ids threadIDs) (*creds, error) {
	c := &creds{ids: ids, uid: unix.Geteuid(), gid: unix.Getegid(), threads: make(map[int]bool)}
	var err error
	if c.groups, err = unix.Getgroups(); err != nil {
		return nil, linux.Fail("getgroups", err)
	}
	if err := getCaps(&c.own); err != nil {
		return nil, linux.Fail("capget", err)
	}
	c.less = c.own.without(unix.CAP_SYS_RESOURCE)
	// Only root drops and regains its file capabilities as its fsuid comes and
	// goes (capabilities(7)): a process with a bare CAP_SETUID would keep them.
	if c.uid == 0 && c.own.has(unix.CAP_SETUID) && c.own.has(unix.CAP_SETGID) {
		// A user namespace may not know the ids of others.
		err := c.as(&identity{uid: nobody, gid: nobody}, wholly, func() error { return nil })
		c.able = err == nil
		if errors.Is(err, errIdentity) {
			return nil, err
		}
	}
	return c, nil
}

// nobody is the id that newCreds tries on.
const nobody = 65534

// identity is the user that a view acts for.
type identity struct {
	caller   *vfs.Caller // nil: the process
	uid, gid int
	groups   []int
	switched bool // the kernel is asked as this identity
	regroup  bool // groups are not the process' own
	super    bool // no rights are checked here
}

// identityOf prepares a caller.
func (c *creds) identityOf(caller *vfs.Caller) *identity {
	if caller == nil {
		return &identity{uid: c.uid, gid: c.gid, super: true}
	}
	id := &identity{caller: caller, uid: int(caller.UID), gid: int(caller.GID), super: caller.UID == 0}
	for _, g := range caller.Groups {
		id.groups = append(id.groups, int(g))
	}
	own := id.uid == c.uid && id.gid == c.gid
	id.regroup = !sameGroups(id.groups, c.groups, id.gid)
	id.switched = c.able && (!own || id.regroup)
	if own && !c.able {
		id.super = true // the kernel checks the process itself
	}
	return id
}

// speakFor reports whether what the process peer may do on this host by itself, as
// far as its user goes, is what callers may do here: they are given their own
// identity or, where they all have that of this process, so has peer.
func (c *creds) speakFor(peer *vfs.Caller) bool {
	in := func(gid uint32) bool { return int(gid) == c.gid || slices.Contains(c.groups, int(gid)) }
	return c.able || int(peer.UID) == c.uid && in(peer.GID) &&
		!slices.ContainsFunc(peer.Groups, func(gid uint32) bool { return !in(gid) })
}

// sameGroups reports whether a and b make the same groups beside the primary one of
// the user that has them. (Root's often has itself among the others, and that one
// is no caller's.)
func sameGroups(a, b []int, primary int) bool {
	in := func(all []int) func(int) bool {
		return func(g int) bool { return g != primary && !slices.Contains(all, g) }
	}
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}

// extent is how much of an identity a call needs.
type extent uint8

const (
	// wholly: names are looked up and made.
	wholly extent = iota
	// forData: a descriptor is written to. Groups matter to that in one case
	// only: the set-gid bit of a file that its group may not run, which once
	// meant mandatory locking, falls when a member of the group writes, too.
	forData
)

// as runs f under id, on a thread that is locked to this goroutine meanwhile. f
// is not run if the identity cannot be taken on.
func (c *creds) as(id *identity, x extent, f func() error) error {
	runtime.LockOSThread()
	err := c.enter(id, x)
	if err == nil {
		err = f()
	}
	if e := c.leave(id, x); e != nil {
		// The thread stays locked. f's outcome is real, but the caller cannot go
		// on here, so it must learn of this rather than of a success.
		c.lose()
		return errors.Join(errIdentity, e, err)
	}
	runtime.UnlockOSThread()
	return err
}

// enter makes the thread id's. The user comes last: giving up uid 0 gives up the
// capabilities of files.
func (c *creds) enter(id *identity, x extent) error {
	if x == wholly {
		if id.regroup {
			if err := c.ids.setGroups(id.groups); err != nil {
				return fmt.Errorf("localfs: setgroups: %w: %w", vfs.ErrServerFault, err)
			}
		}
		if err := c.setGID(id.gid, c.gid); err != nil {
			return err
		}
	}
	if id.uid != 0 && c.less != c.own {
		if err := c.ids.setCaps(&c.less); err != nil {
			return fmt.Errorf("localfs: capset: %w: %w", vfs.ErrServerFault, err)
		}
	}
	return c.setUID(id.uid, c.uid)
}

// leave makes the thread the process' own again, in all that enter may have
// changed.
func (c *creds) leave(id *identity, x extent) error {
	if err := c.setUID(c.uid, id.uid); err != nil {
		return err
	}
	if id.uid != 0 && c.less != c.own {
		if err := c.ids.setCaps(&c.own); err != nil {
			return fmt.Errorf("capset: %w", err)
		}
	}
	if x != wholly {
		return nil
	}
	if err := c.setGID(c.gid, id.gid); err != nil {
		return err
	}
	if id.regroup {
		if err := c.ids.setGroups(c.groups); err != nil {
			return fmt.Errorf("setgroups: %w", err)
		}
	}
	return nil
}

// noID is no id: setfsuid(2) refuses it, and tells the one in force.
const noID = -1

// setUID sets the user that files are opened and made with, where it can be
// another one. The call reports no error, so it is asked what became of it.
func (c *creds) setUID(uid, other int) error {
	if uid == other {
		return nil
	}
	if _, err := c.ids.setFSUID(uid); err != nil {
		return fmt.Errorf("setfsuid: %w", err)
	}
	if got, err := c.ids.setFSUID(noID); err != nil || got != uid {
		return fmt.Errorf("localfs: cannot act for user %d: %w", uid, vfs.ErrServerFault)
	}
	return nil
}

// setGID is setUID for the group.
func (c *creds) setGID(gid, other int) error {
	if gid == other {
		return nil
	}
	if _, err := c.ids.setFSGID(gid); err != nil {
		return fmt.Errorf("setfsgid: %w", err)
	}
	if got, err := c.ids.setFSGID(noID); err != nil || got != gid {
		return fmt.Errorf("localfs: cannot act for group %d: %w", gid, vfs.ErrServerFault)
	}
	return nil
}

// lose marks the current thread.
func (c *creds) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.threads[unix.Gettid()] = true
	c.lost.Store(int32(len(c.threads)))
}

// check fails on a thread whose identity was lost. It tries once more to
// restore it; a thread that was born with the number of a lost one passes.
func (c *creds) check() error {
	if c.lost.Load() == 0 {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.mu.Lock()
	defer c.mu.Unlock()
	tid := unix.Gettid()
	if !c.threads[tid] {
		return nil
	}
	if err := c.leave(&identity{uid: noID, gid: noID, regroup: true}, wholly); err != nil {
		return errors.Join(errIdentity, err)
	}
	delete(c.threads, tid)
	c.lost.Store(int32(len(c.threads)))
	return nil
}
