package vfs

import (
	"context"
	"os"
)

// Unwrapper is implemented by what wraps another FS or File: Unwrap returns the
// wrapped one.
type Unwrapper interface{ Unwrap() any }

// Holder is implemented by a wrapper that does not have every power for which it
// has methods, or which what it wraps has: one that it merely passes on, and one
// that would lead around what it does.
type Holder interface {
	// Holds reports whether the stack from here down has a power. power is a nil
	// pointer to its interface: (*Syncer)(nil). Of one that it does not know it is
	// true. It makes no call, and says the same of all views.
	Holds(power any) bool
}

// maxWrap bounds how many wrappers As looks through. A stack has five; a
// wrapper that wraps itself shall not hang anyone.
const maxWrap = 32

// As finds the optional power T in v or in what v wraps. What it finds is true of
// all that stands above: a [Holder] on the way that denies the power ends the
// search. Use it instead of a type assertion, which a wrapper would hide the power
// from, and which takes a wrapper's methods for its powers.
func As[T any](v any) (T, bool) {
	for range maxWrap {
		if h, ok := v.(Holder); ok && !h.Holds((*T)(nil)) {
			break
		}
		if t, ok := v.(T); ok {
			return t, true
		}
		u, ok := v.(Unwrapper)
		if !ok {
			break
		}
		v = u.Unwrap()
	}
	var zero T
	return zero, false
}

// Has reports whether As finds T.
func Has[T any](v any) bool {
	_, ok := As[T](v)
	return ok
}

// HoleSeeker is a File that knows where its holes are (lseek(2), SEEK_DATA and
// SEEK_HOLE; RFC 7862, SEEK). Only the bytes of one file are concerned; a hole
// reads as zeros.
type HoleSeeker interface {
	// NextData returns the start of the first data at or behind off. If there
	// is none before the end of the file, err is io.EOF.
	NextData(ctx context.Context, off uint64) (uint64, error)
	// NextHole returns the start of the first hole at or behind off; the end of
	// the file counts as one.
	NextHole(ctx context.Context, off uint64) (uint64, error)
}

// Appender is a File that knows where it ends while nobody else appends to it.
type Appender interface {
	// Append writes p at the end of the file, wherever that is by then: of all that
	// is appended through one FS, by whatever File and view, nothing is written over
	// anything else. What another host appends meanwhile may be. It is stable as
	// WriteAt has it, and w is filled as by [WriteFull]. Of p, n bytes were written
	// from off on: all of them unless err says why not.
	Append(ctx context.Context, p []byte, how Stability, w *Written) (off uint64, n int, err error)
}

// Dropper is a File whose bytes the host keeps at hand, and which can be told to
// forget them (posix_fadvise(2), POSIX_FADV_DONTNEED).
type Dropper interface {
	// Drop forgets the bytes of [off, off+n), or, if n is 0, those from off on, so
	// that they are read next from where they are stored. What is not stable is
	// kept: commit first. It is a wish: what somebody else uses just now may stay.
	Drop(ctx context.Context, off, n uint64) error
}

// HostFiler is a File that rests on a descriptor of this host, which may be
// read past nfsbox: LOCALIO, passthrough.
type HostFiler interface {
	// HostFile returns the descriptor and a function that gives it back. Until
	// then it stays open; the caller does not close it.
	HostFile() (f *os.File, release func(), ok bool)
}

// HostOpener is an FS whose files are files of this host, and which opens one for
// another process of the host, to be read and written without any FS: LOCALIO.
// What is handed out cannot be taken back. The rights are those of the view; what
// more the other process could make of a descriptor, by what it is itself, is
// for HostOpen to say and for the FS to prevent.
type HostOpener interface {
	// OpenHost opens the regular file h anew: the description is the caller's
	// alone, and the caller closes it. Anything but a regular file is ErrInval
	// (a directory ErrIsDir). What the view's caller may not do is the error
	// that ReadAt or WriteAt would have been; what it may do through this FS
	// and not by a descriptor is [ErrNotSupp]. a are the attributes of what was
	// opened.
	OpenHost(ctx context.Context, h Handle, how *HostOpen) (f *os.File, a Attr, err error)
}

// HostOpen says how to open a file for another process.
type HostOpen struct {
	Access Share // ShareRead, ShareWrite or both
	// Sealed wants a descriptor by which no process can change anything, whatever its
	// user: not the file's times or mode, and not its bytes by opening it again
	// through /proc. It excludes ShareWrite.
	Sealed bool
	// Peer is the user of the other process, as the kernel says: UID, GID and Groups.
	// An FS that cannot act for its callers hands out unsealed only to a process of its
	// own user.
	Peer Caller
	// Trusted hands out descriptors also to processes that could do more by them
	// than the view's caller may.
	Trusted bool
}

// Near is a File that may have its bytes at hand, in the page cache of this host: to
// read ahead of it, or to divide a read, costs more than it could save.
type Near interface {
	// Near reports whether it is so now. It is asked before each read, and costs
	// next to nothing.
	Near() bool
}

// Change says what has happened to a watched object.
type Change uint8

// The changes. More than one may come at once, and each more often than it
// happened; the one that is told looks for itself.
const (
	// ChangeGone: a name of it was removed, or given to another object.
	ChangeGone Change = 1 << iota
	// ChangeRights: its mode, owner, group or access control list is another, or
	// the rules by which callers are judged.
	ChangeRights
)

// Watcher is an FS that tells of changes to an object that end what others were
// granted on it: the one road for the revocation of LOCALIO's descriptors, for
// the recall of delegations, and for caches.
type Watcher interface {
	// Watch has changed called from now on, until stop is called. Of a change
	// made through this FS, by any view, it is called before the change is
	// answered to the caller that made it, so that nobody who knows of the change meets
	// what it ended; of others, as soon as the FS hears of them, if it does.
	//
	// changed must not block, nor call the FS; it may be called by several
	// goroutines at once, and once more while stop is called, but not after stop
	// has returned. An FS that can watch no more is [ErrBusy].
	Watch(h Handle, changed func(Change)) (stop func(), err error)
}

// Putter is an FS that makes a file together with its bytes, at less cost than to
// make it under a name of its own, write it and rename it.
type Putter interface {
	// Put makes a regular file called name in dir, of exactly that mode, that holds
	// data. Nobody meets the name before it stands for all of them; if an error is
	// returned it has not come to be, nor has anything else. An object that has the name
	// keeps it: ErrExist. ErrNotSupp says that files in dir cannot be made so.
	//
	// An error of making it stable, where an FS over another promises that, leaves it
	// there, as it does what was created.
	//
	// What is stable of it when Put returns is what is of a file that was created,
	// written Unstable and renamed: with [Syncer], nothing, and without a Commit to
	// come.
	Put(ctx context.Context, dir Handle, name string, mode uint32, data []byte) (Handle, Attr, error)
}

// Syncer is an FS whose changes of names and attributes are not stable when they
// return, because the caller may have better means to group them. Sync makes
// them so: of a directory, what was created, renamed and removed in it before
// the call; of anything else, its attributes (and, of a file, all its data).
// Concurrent calls share the work. A rename between two directories needs both.
//
// An FS without this power makes every such change stable before it answers, as
// NFS servers do.
type Syncer interface {
	Sync(ctx context.Context, h Handle) error
}

// Forgetter is an FS that keeps something in memory for every directory that was
// listed or looked into, for as long as handles may lead through it.
type Forgetter interface {
	// Forget says that the caller is done with what is in dir: handles that were
	// found in it, or made in it, may be [ErrStale] from then on. The handle of dir
	// itself stays what it was. Of what is forgotten and used again nothing is lost
	// but the handles from before.
	Forget(dir Handle)
}

// Closer is an FS that holds resources: connections, descriptors, a map on
// disk. Close is called once, on any view, when no call is in flight; the FS
// and all its views are then of no further use.
type Closer interface {
	Close() error
}

// CloseFS closes fs if it, or what it wraps, is a [Closer].
func CloseFS(fs FS) error {
	if c, ok := As[Closer](fs); ok {
		return c.Close()
	}
	return nil
}
