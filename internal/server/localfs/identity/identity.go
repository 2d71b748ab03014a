//go:build linux

package identity

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

// Calls change the identity of the calling thread alone. (syscall.Setgroups and its like
// change that of all threads.) Tests put others in their place.
type Calls struct {
	SetGroups func(gids []int) error
	SetFSGID  func(gid int) (old int, err error)
	SetFSUID  func(uid int) (old int, err error)
	SetCaps   func(*linux.Caps) error
}

func osCalls() Calls {
	return Calls{
		SetGroups: unix.Setgroups,
		SetFSGID:  unix.SetfsgidRetGid,
		SetFSUID:  unix.SetfsuidRetUid,
		SetCaps:   linux.SetCaps,
	}
}

// ErrLost says that the thread of this goroutine could not be given its own identity back.
// The goroutine keeps the thread to itself, and both end together. Until then nothing is
// done on it.
var ErrLost = fmt.Errorf("localfs: this thread's identity could not be restored: %w", vfs.ErrServerFault)

// Switcher gives a thread the identity of a caller, and takes it back. Its methods may be
// called concurrently.
type Switcher struct {
	Calls    Calls // the system's
	uid, gid int   // the process' own
	groups   []int
	own      linux.Caps
	less     linux.Caps // what own leaves to others
	able     bool       // we may take on other identities

	// lost counts, and threads holds, those whose identity could not be
	// restored.
	lost    atomic.Int32
	mu      sync.Mutex
	threads map[int]bool
}

// New finds out which user the process runs as, and whether it can act as others.
func New() (*Switcher, error) {
	return newBy(osCalls())
}

// newBy is New with other calls than the system's.
func newBy(ids Calls) (*Switcher, error) {
	c := &Switcher{Calls: ids, uid: unix.Geteuid(), gid: unix.Getegid(), threads: make(map[int]bool)}
	var err error
	if c.groups, err = unix.Getgroups(); err != nil {
		return nil, linux.Fail("getgroups", err)
	}
	if err := linux.GetCaps(&c.own); err != nil {
		return nil, linux.Fail("capget", err)
	}
	c.less = c.own.Without(unix.CAP_SYS_RESOURCE)
	// Only root drops and regains its file capabilities as its fsuid comes and
	// goes (capabilities(7)): a process with a bare CAP_SETUID would keep them.
	if c.uid == 0 && c.own.Has(unix.CAP_SETUID) && c.own.Has(unix.CAP_SETGID) {
		// A user namespace may not know the ids of others.
		err := c.As(&Identity{uid: nobody, gid: nobody}, Whole, func() error { return nil })
		c.able = err == nil
		if errors.Is(err, ErrLost) {
			return nil, err
		}
	}
	return c, nil
}

// nobody is the id that New tries on.
const nobody = 65534

// Identity is the user that a view acts for.
type Identity struct {
	Caller   *vfs.Caller // nil: the process
	uid, gid int
	groups   []int
	Switched bool // the kernel is asked as this identity, and judges its rights
	regroup  bool // groups are not the process' own
	Super    bool // no rights are checked here
}

// Client is the client that the gate counts the caller's work for; "" is the process.
func (id *Identity) Client() string {
	if id.Caller == nil {
		return ""
	}
	return id.Caller.Client
}

// ActsAsOther reports whether the kernel is asked as id, and id is another user than the
// process.
func (c *Switcher) ActsAsOther(id *Identity) bool { return id.Switched && id.uid != c.uid }

// CannotActAs reports whether id is another user than the process, which cannot act for it.
func (c *Switcher) CannotActAs(id *Identity) bool {
	return id.Caller != nil && !c.able && id.uid != c.uid
}

// Able reports whether the process can act for others.
func (c *Switcher) Able() bool { return c.able }

// Has reports whether the process has a capability, in its effective set.
func (c *Switcher) Has(capability int) bool { return c.own.Has(capability) }

// Of prepares the identity of a caller; nil is the process.
func (c *Switcher) Of(caller *vfs.Caller) *Identity {
	if caller == nil {
		return &Identity{uid: c.uid, gid: c.gid, Super: true}
	}
	id := &Identity{Caller: caller, uid: int(caller.UID), gid: int(caller.GID), Super: caller.UID == 0}
	for _, g := range caller.Groups {
		id.groups = append(id.groups, int(g))
	}
	own := id.uid == c.uid && id.gid == c.gid
	id.regroup = !sameGroups(id.groups, c.groups, id.gid)
	id.Switched = c.able && (!own || id.regroup)
	if own && !c.able {
		id.Super = true // the kernel checks the process itself
	}
	return id
}

// SpeaksFor reports whether callers may do here what the process peer may do on this host
// by itself, as far as its user goes. That is so if callers are given their own identity.
// It is also so if they all have that of this process, and peer has the same.
func (c *Switcher) SpeaksFor(peer *vfs.Caller) bool {
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

// Extent is how much of an identity a call needs.
type Extent uint8

const (
	// Whole is for calls that look names up, or make them.
	Whole Extent = iota
	// UserOnly is for calls that write to a descriptor. Groups matter to them in one case
	// only. The set-gid bit of a file that its group may not run once meant mandatory
	// locking; it falls when a member of the group writes, too.
	UserOnly
)

// As runs f under id, on a thread that is locked to this goroutine meanwhile. It does not
// run f if the thread cannot take on the identity. f's error comes back; with ErrLost, f
// has run and the thread is of no further use.
func (c *Switcher) As(id *Identity, x Extent, f func() error) error {
	runtime.LockOSThread()
	err := c.enter(id, x)
	if err == nil {
		err = f()
	}
	if e := c.leave(id, x); e != nil {
		// The thread stays locked. f's outcome is real, but the caller cannot go
		// on here, so it must learn of this rather than of a success.
		c.markLost()
		return errors.Join(ErrLost, e, err)
	}
	runtime.UnlockOSThread()
	return err
}

// enter makes the thread id's. The user comes last: giving up uid 0 gives up the
// capabilities of files.
func (c *Switcher) enter(id *Identity, x Extent) error {
	if x == Whole {
		if id.regroup {
			if err := c.Calls.SetGroups(id.groups); err != nil {
				return fmt.Errorf("localfs: setgroups: %w: %w", vfs.ErrServerFault, err)
			}
		}
		if err := c.setGID(id.gid, c.gid); err != nil {
			return err
		}
	}
	if id.uid != 0 && c.less != c.own {
		if err := c.Calls.SetCaps(&c.less); err != nil {
			return fmt.Errorf("localfs: capset: %w: %w", vfs.ErrServerFault, err)
		}
	}
	return c.setUID(id.uid, c.uid)
}

// leave makes the thread the process' own again, in all that enter may have
// changed.
func (c *Switcher) leave(id *Identity, x Extent) error {
	if err := c.setUID(c.uid, id.uid); err != nil {
		return err
	}
	if id.uid != 0 && c.less != c.own {
		if err := c.Calls.SetCaps(&c.own); err != nil {
			return fmt.Errorf("capset: %w", err)
		}
	}
	if x != Whole {
		return nil
	}
	if err := c.setGID(c.gid, id.gid); err != nil {
		return err
	}
	if id.regroup {
		if err := c.Calls.SetGroups(c.groups); err != nil {
			return fmt.Errorf("setgroups: %w", err)
		}
	}
	return nil
}

// noID is no id: setfsuid(2) refuses it, and tells the one in force.
const noID = -1

// setUID sets the user that files are opened and made with, where it can be
// another one. The call reports no error, so it is asked what became of it.
func (c *Switcher) setUID(uid, other int) error {
	if uid == other {
		return nil
	}
	if _, err := c.Calls.SetFSUID(uid); err != nil {
		return fmt.Errorf("setfsuid: %w", err)
	}
	if got, err := c.Calls.SetFSUID(noID); err != nil || got != uid {
		return fmt.Errorf("localfs: cannot act for user %d: %w", uid, vfs.ErrServerFault)
	}
	return nil
}

func (c *Switcher) setGID(gid, other int) error {
	if gid == other {
		return nil
	}
	if _, err := c.Calls.SetFSGID(gid); err != nil {
		return fmt.Errorf("setfsgid: %w", err)
	}
	if got, err := c.Calls.SetFSGID(noID); err != nil || got != gid {
		return fmt.Errorf("localfs: cannot act for group %d: %w", gid, vfs.ErrServerFault)
	}
	return nil
}

// markLost marks the current thread, whose identity could not be restored.
func (c *Switcher) markLost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.threads[unix.Gettid()] = true
	c.lost.Store(int32(len(c.threads)))
}

// Check is ErrLost on a thread whose identity was lost. It tries once more to restore it. A
// new thread with the number of a lost one passes.
func (c *Switcher) Check() error {
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
	if err := c.leave(&Identity{uid: noID, gid: noID, regroup: true}, Whole); err != nil {
		return errors.Join(ErrLost, err)
	}
	delete(c.threads, tid)
	c.lost.Store(int32(len(c.threads)))
	return nil
}
