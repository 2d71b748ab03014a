package vfs

import (
	"context"
	"iter"
	"time"
)

// FS is a file system as one [Caller] sees it.
//
// Every method may be called concurrently. Every method that takes a context
// gives up when it ends and returns an error that wraps the context's; what has
// reached the other side by then may still take effect (see [ErrUnknownOutcome]).
// A Handle that was never of this FS is [ErrBadHandle]; one whose object is gone
// is [ErrStale].
//
// Attributes that a method returns beside its result are what the peer happened
// to send: [Attr.Valid] may be zero. Callers that need them call GetAttr.
type FS interface {
	// As returns the view of another caller. nil is the caller that the file
	// system itself runs as. Views are cheap and need no closing.
	As(*Caller) FS

	// Root returns the handle and attributes of the top directory.
	Root(ctx context.Context) (Handle, Attr, error)

	// Info returns the limits and the space of the file system that holds h.
	// want says which parts of it (each may cost a round trip); Info.Valid says
	// which came.
	Info(ctx context.Context, h Handle, want InfoMask) (Info, error)

	// GetAttr returns the attributes in want and any others that are free.
	GetAttr(ctx context.Context, h Handle, want Mask) (Attr, error)

	// SetAttr changes the attributes that set names. If guard is not nil the
	// change is made only while the object's ctime equals it, else [ErrNotSync].
	// Size is set before times, so that both can be asked at once.
	SetAttr(ctx context.Context, h Handle, set *SetAttr, guard *time.Time) (WCC, error)

	// Access returns those of the asked rights that the caller has.
	Access(ctx context.Context, h Handle, want Access) (Access, Attr, error)

	// Lookup finds name in dir. ".." of the root is the root. dirAttr are the
	// directory's attributes, also beside ErrNoEnt where the peer sent them.
	Lookup(ctx context.Context, dir Handle, name string) (h Handle, attr, dirAttr Attr, err error)

	// Readlink returns the target of a symbolic link, byte for byte: it is
	// text, and nothing here follows it.
	Readlink(ctx context.Context, h Handle) (string, Attr, error)

	// Create makes an object named name in dir: a file, a directory, a link, a
	// node, as how says. See [CreateHow] for what happens if name exists.
	Create(ctx context.Context, dir Handle, name string, how *CreateHow) (Handle, Attr, WCC, error)

	// Link gives h, which is not a directory, the further name name in dir.
	Link(ctx context.Context, h, dir Handle, name string) (Attr, WCC, error)

	// Remove takes name out of dir: a directory, which must be empty, if isDir,
	// else anything but a directory. A File that is open stays readable.
	Remove(ctx context.Context, dir Handle, name string, isDir bool) (WCC, error)

	// Rename moves what is called fromName in fromDir to toName in toDir. An
	// existing target is replaced as rename(2) does, atomically. The two names
	// of one object are left as they are, without an error.
	Rename(ctx context.Context, fromDir Handle, fromName string, toDir Handle, toName string) (from, to WCC, err error)

	// Open opens a regular file, creating it first if how says so. The caller
	// must close it. Where the peer keeps no state of opens (NFSv3), an Open by
	// handle alone need not ask it. If the handle is stale, or names no file, the
	// first use then fails.
	Open(ctx context.Context, at At, how *OpenHow) (File, Opened, error)

	// ReadDir lists dir from a position on. The zero Pos starts at the beginning;
	// an Entry's Next goes on behind that entry, in this iteration, in another, or
	// after a restart. "." and ".." are not listed. want says which attributes the
	// entries should carry (0: names only; [MaskHandle] asks for handles). Those
	// that the peer leaves out are missing from Entry.Attr.Valid, and the caller
	// asks for them one by one. maxBytes (0: the peer's choice) bounds the size of
	// one page of the listing, not the listing.
	//
	// Entries that exist throughout are listed exactly once, whatever is
	// created and removed meanwhile. Memory does not grow with the directory.
	// An error ends the iteration. After [ErrBadCookie] the position is no longer
	// understood: a new listing must start from the zero Pos.
	ReadDir(ctx context.Context, dir Handle, from Pos, want Mask, maxBytes uint32) iter.Seq2[*Entry, error]
}

// File is an open regular file. Every method may be called concurrently.
type File interface {
	// ReadAt reads from off into p and reports how much came and whether the
	// end of the file has been reached. It may read less than p without
	// reaching the end, by the peer's limits: [ReadFull] goes on. n == 0 with
	// eof false and err nil happens only if p is empty. post, if not nil,
	// receives the attributes after the read, as far as they came.
	ReadAt(ctx context.Context, p []byte, off uint64, post *Attr) (n int, eof bool, err error)

	// WriteAt writes p at off, growing the file, at least as stably as how
	// asks, and fills w. It may write less than p, by the peer's limits, and
	// then n says how much; n == 0 with err nil happens only if p is empty.
	WriteAt(ctx context.Context, p []byte, off uint64, how Stability, w *Written) (n int, err error)

	// Commit makes what was written in [off, off+n) stable; n == 0 means to the
	// end of the file. w.Verf is to be compared with that of every write.
	Commit(ctx context.Context, off, n uint64, w *Written) error

	// Truncate sets the file's size; growing leaves a hole.
	Truncate(ctx context.Context, size uint64) (WCC, error)

	// Close ends the open. It commits nothing. A second Close is ErrInval.
	Close(ctx context.Context) error
}
