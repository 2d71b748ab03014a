package vfs

import (
	"context"
	"os"
)

// Unwrapper is implemented by wrappers of an FS or File. Unwrap returns the wrapped
// one.
type Unwrapper interface{ Unwrap() any }

// Holder is implemented by a wrapper that lacks some power although it has its
// methods, or although the wrapped file system has it. The first is a power that it
// only passes on; the second one that would bypass what the wrapper does.
type Holder interface {
	// Holds reports whether the stack from here down has a power. power is a nil
	// pointer to its interface: (*Syncer)(nil). It is true for a power that the
	// wrapper does not know. It makes no call, and is the same for all views.
	Holds(power any) bool
}

// maxWrap bounds how many wrappers As looks through, so that a wrapper of itself
// causes no endless loop. A stack has five.
const maxWrap = 32

// As finds the optional power T in v or in what v wraps. A [Holder] on the way that
// denies the power ends the search, so what As finds is true of the whole stack. Use
// it instead of a type assertion: that misses powers below a wrapper, and takes a
// wrapper's methods for its powers.
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

// Passer is a wrapper that adds nothing to questions about names and attributes.
type Passer interface {
	// Asked returns the FS that answers Root, GetAttr, Access, Lookup, Readlink and ReadDir as the
	// wrapper would, for the same caller. It is what is wrapped, or what that passes them to.
	Asked() FS
}

// Asked returns where questions about names and attributes that are put to fs end. A wrapper puts
// them there itself: each layer between copies handles and attributes once more, which is up to a
// tenth of what a GETATTR costs the client.
func Asked(fs FS) FS {
	if p, ok := fs.(Passer); ok {
		return p.Asked()
	}
	return fs
}

// Keeper is a wrapper that answers questions about names and attributes from what it has kept, or stands above one that may.
type Keeper interface {
	// Anew returns an FS for the same caller that answers as this one, but asks past what is kept.
	Anew() FS
}

// Anew returns an FS for the same caller that answers as fs, from nothing that was kept. It is for those that decide
// by an answer what becomes of bytes.
func Anew(fs FS) FS {
	if k, ok := fs.(Keeper); ok {
		return k.Anew()
	}
	return Asked(fs)
}

// Walker is an FS that looks up several names in one call, for less than a Lookup of each.
type Walker interface {
	// Walk looks up the first of names in dir, the next one in what that is, and so on, as
	// Lookup does for the same caller. It stops before a name for which that does not do,
	// whatever the reason: it is not there, it is a symbolic link, it is ".." or no name, or
	// what should hold it may not be searched, or is no directory. at is the last that was
	// found, with the attributes that Lookup gives; n is how many were, and may be 0. Lookup
	// of the next name says why.
	Walk(ctx context.Context, dir Handle, names []string) (n int, at Resolved)
}

// HoleSeeker is a File that knows where its holes are (lseek(2), SEEK_DATA and
// SEEK_HOLE; RFC 7862, SEEK). A hole reads as zeros. [ErrNotSupp] says that the disk below does
// not tell of this file: all of it may be data.
type HoleSeeker interface {
	// NextData returns the start of the first data at or behind off. If there
	// is none before the end of the file, err is io.EOF.
	NextData(ctx context.Context, off uint64) (uint64, error)
	// NextHole returns the start of the first hole at or behind off; the end of
	// the file counts as one.
	NextHole(ctx context.Context, off uint64) (uint64, error)
}

// Appender is a File that can append in one step.
type Appender interface {
	// Append writes p at the end of the file. Appends through one FS, by any of its
	// Files and views, never overwrite each other. What another host appends at the
	// same time may be overwritten. how is that of WriteAt, and w is filled as by
	// [WriteFull]. n bytes of p were written from off on: all of them unless err says
	// why not.
	Append(ctx context.Context, p []byte, how Stability, w *Written) (off uint64, n int, err error)
}

// Dropper is a File whose bytes the host caches, and which can be told to drop them
// (posix_fadvise(2), POSIX_FADV_DONTNEED).
type Dropper interface {
	// Drop removes the bytes of [off, off+n), or, if n is 0, those from off on, from
	// the cache, so that the next read takes them from the disk or the server. What
	// is not stable is kept: commit first. It is a hint: bytes in use may stay.
	Drop(ctx context.Context, off, n uint64) error
}

// HostFiler is a File that rests on a descriptor of this host. Code may use the
// descriptor without the File: LOCALIO, passthrough.
type HostFiler interface {
	// HostFile returns the descriptor and a function that gives it back. The
	// descriptor stays open until then; the caller must not close it.
	HostFile() (f *os.File, release func(), ok bool)
}

// HostOpener is an FS whose files are files of this host. It opens one for another
// process of the host, which then reads and writes it without any FS: LOCALIO. A
// descriptor cannot be taken back. The rights are those of the view. By its own rights
// the other process might do more with the descriptor: HostOpen says what the FS must
// prevent.
type HostOpener interface {
	// OpenHost opens the regular file h anew: the open file description is the
	// caller's alone, and the caller closes it. Anything but a regular file is
	// ErrInval (a directory ErrIsDir). What the view's caller may not do is the
	// error that ReadAt or WriteAt would return. What it may do through this FS but
	// not by a descriptor is [ErrNotSupp]. a are the attributes of what was opened.
	OpenHost(ctx context.Context, h Handle, how *HostOpen) (f *os.File, a Attr, err error)
}

// HostOpen says how to open a file for another process.
type HostOpen struct {
	Access Share // ShareRead, ShareWrite or both
	// Sealed asks for a descriptor by which no process can change anything, whatever
	// its user: neither the file's times or mode, nor its bytes by opening it again
	// through /proc. It excludes ShareWrite.
	Sealed bool
	// Peer is the user of the other process, as the kernel says: UID, GID and Groups.
	// An FS that cannot act for its callers hands out unsealed descriptors only to
	// processes of its own user.
	Peer Caller
	// Trusted allows descriptors also for processes that could do more by them than
	// the view's caller may.
	Trusted bool
}

// Near is a File whose bytes may be in the page cache of this host. Then reading ahead,
// dividing a read, or many reads at once cost more than they could save.
type Near interface {
	// Near reports whether that is so now. It must be cheap: it is asked before each
	// read.
	Near() bool
}

// Change says what has happened to a watched object.
type Change uint8

// The changes. One call may report several, and a change may be reported more often
// than it happened: a watcher looks at the object itself.
const (
	// ChangeGone: a name of it was removed, or given to another object.
	ChangeGone Change = 1 << iota
	// ChangeRights: its mode, owner, group or access control list may have changed,
	// or the rules by which callers are judged.
	ChangeRights
)

// Watcher is an FS that tells of changes to an object that end what others were
// granted on it. LOCALIO takes its descriptors back by it.
//
// It tells after the change was made, and of lost names and of rights alone: not of
// new data, and not of what a directory holds. A delegation has to be recalled before
// the change, and a cache has to know of data and names: neither can stand on it.
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

// Putter is an FS that creates a file together with its bytes. That costs less than
// to create it under a temporary name, write it and rename it.
type Putter interface {
	// Put creates a regular file called name in dir, of exactly that mode, that holds
	// data. The name appears only with all the data. If the name exists, that is
	// ErrExist, and its object stays. ErrNotSupp says that Put does not work in dir.
	//
	// If Put fails, nothing was created.
	//
	// As much is stable when Put returns as of a file that was created, written
	// Unstable and renamed: with [Syncer], nothing. There is no Commit for it, and a Sync
	// of the file may miss that the disk failed before. It is for callers that were not
	// asked to make the file stable.
	Put(ctx context.Context, dir Handle, name string, mode uint32, data []byte) (Handle, Attr, error)
}

// Maker is an FS in which files and symbolic links appear whole, with their attributes, as those of an object store do. Nothing in
// it is written to, renamed or linked, so that there are no temporaries either. Whoever copies to it asks for this power first.
type Maker interface {
	// Make begins a regular file that is to be called name in dir. What has the name then stays until Making.Publish, and is
	// replaced by it, unless it is a directory: that is ErrIsDir. Of a mode, owner, group and mtime are kept, as
	// far as they are valid; Size is how many bytes are about to be written. mark, if not "", is that of an earlier Make
	// which was kept: if it is of the same file, what was written then need not be sent again. Otherwise what it left is removed.
	Make(ctx context.Context, dir Handle, name string, a *Attr, mark string) (Making, error)

	// Unmake removes what a Make has left that was kept, by its mark. It is no error if nothing is there.
	Unmake(ctx context.Context, mark string) error

	// MakeLink makes a symbolic link, with the attributes of a as Make has them. It replaces what has the name,
	// unless that is a directory: that is ErrIsDir.
	MakeLink(ctx context.Context, dir Handle, name, target string, a *Attr) (Handle, Attr, error)
}

// Making is a file that has no name yet. It is written as any [File], each byte once; bytes that nobody writes are zeros. Reads give what was written, as
// far as it is in memory still, and are ErrNotSupp of the rest. Close ends it, and leaves nothing behind, if it was not published.
type Making interface {
	File

	// Mark is by what a later Make goes on with this file, also after this process was killed; "": there is none.
	Mark() string
	// Keep has Close leave what was written, for that. The caller has stored the mark.
	Keep()
	// Resumed is how many bytes an earlier Make has left. All are to be written again all the same: those that are
	// there already are compared, and not sent.
	Resumed() uint64

	// Publish gives the file its name, and makes it stable. Nothing is written after that. An error that Is ErrUnknownOutcome says
	// that it may have the name.
	Publish(ctx context.Context) (Handle, Attr, error)
}

// Syncer is an FS whose changes of names and attributes are not stable when they
// return, because the caller may have better means to group them. Sync makes
// them so: of a directory, what was created, renamed and removed in it before
// the call; of anything else, its attributes (and, of a file, all its data).
// Concurrent calls share the work. A rename between two directories needs both.
//
// An FS without this power makes every such change stable before it answers, as
// NFS servers do. On a host that has no means to make something stable, an FS with this
// power says so in its documentation.
type Syncer interface {
	Sync(ctx context.Context, h Handle) error
}

// Forgetter is an FS that keeps state in memory for every directory that was listed
// or searched, for as long as handles from it may be used.
type Forgetter interface {
	// Forget says that the caller is done with what is in dir: handles that were
	// found or created in it may be [ErrStale] from then on. The handle of dir itself
	// stays valid. The objects can be looked up again.
	Forget(dir Handle)
}

// Closer is an FS that holds resources: connections, descriptors, a map on
// disk. Close is called once, on any view, when no call is in flight. After it, the
// FS and all its views must not be used.
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
