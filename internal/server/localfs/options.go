package localfs

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/server/iogate"
)

// Mode says what handles are made of.
type Mode uint8

const (
	// HandlesAuto takes the kernel's handles where they work, else the map.
	HandlesAuto Mode = iota
	// HandlesKernel takes the kernel's handles (open_by_handle_at(2)); New
	// fails where the file system or the process' rights do not allow them.
	HandlesKernel
	// HandlesMap numbers the objects and keeps a map of what they are called,
	// in Options.StateDir.
	HandlesMap
)

// String is the mode's name, as the configuration has it.
func (m Mode) String() string {
	switch m {
	case HandlesAuto:
		return "auto"
	case HandlesKernel:
		return "kernel"
	case HandlesMap:
		return "map"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Locks are what orders changes of one object, so that attributes before and after one
// are of it alone. The zero Locks are ready for use, and must not be copied.
type Locks struct {
	stripes [lockStripes]sync.Mutex
	// lent says that a file was handed out to be written by another process, which knows
	// no lock.
	lent atomic.Bool
}

// Options configure New. The zero Options serve a tree for reading and writing
// with the kernel's handles.
type Options struct {
	Handles Mode

	// StateDir is the directory in which the map of handles lives; it must not
	// lie within the tree that is served, and one process at a time uses it.
	// Needed where the map is used, unless Volatile. A map of another directory is
	// replaced, which Report is told: all old handles are stale then.
	StateDir string

	// Volatile lets the map live in memory alone: handles then die with the
	// FS. For local copies, which outlive no restart anyway.
	Volatile bool

	// ReadOnly refuses every change with vfs.ErrROFS.
	ReadOnly bool

	// CrossMounts makes what is mounted below the root part of the tree, each
	// mount with an fsid of its own. What has no handles of the kernel, where
	// those are used, stays hidden, and so does every mount point without this
	// option: not listed, not found, and reported.
	CrossMounts bool

	// LocalWriters says that programs of this host change the tree too.
	// Attributes from before an operation (vfs.WCC.Before) are then left out,
	// since they could pass for those of the operation alone, and, without Locks, no
	// operation waits for another on the same object.
	//
	// Without it they are given though programs of this host may change the tree, as by
	// Linux nfsd. They are true for all that is changed through FS that share their
	// Locks. What a local program changes in the same instant as an operation, between
	// the two looks at the object, passes for that operation's, and a client keeps what
	// it has cached until the next change (RFC 1813, section 2.6, calls this weak).
	LocalWriters bool

	// Locks orders what is changed through this FS, and through all others that have the
	// same: those of one process, in which one file system may be served in several
	// places. nil: locks of its own.
	Locks *Locks

	// MaxOpen bounds the descriptors that are kept open, DefaultMaxOpen if 0,
	// and in any case half of what the process may open (RLIMIT_NOFILE).
	// At the bound one that was not used of late is closed; if
	// all are in use at once, calls get vfs.ErrBusy. A file that a local program
	// deletes keeps its space for some seconds, while a descriptor of it is open
	// here.
	MaxOpen int

	// Gate bounds how many calls may hold a thread, each in the lane of its
	// class. A call that it turns away is vfs.ErrBusy. nil lets all pass.
	Gate *iogate.Lanes

	// Rand fills its argument with randomness, of which the write verifier and
	// the map's identity are made; crypto/rand if nil.
	Rand func([]byte)

	// Report, if not nil, is told what an operator should know and no caller
	// does: a hidden mount point, a failed sync. It must not block or call back.
	Report func(error)

	// Sys are the calls that change the disk; the operating system's if nil.
	Sys Sys

	// noHandles is for tests: the map knows objects by their birth.
	noHandles bool
}

func (o *Options) fill() {
	if o.MaxOpen <= 0 {
		o.MaxOpen = DefaultMaxOpen
	}
	if o.Rand == nil {
		o.Rand = func(p []byte) { _, _ = rand.Read(p) } // crypto/rand.Read never fails: it ends the program instead
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
}
