package vfs

import (
	"context"
	"os"
)

// Unwrapper is implemented by what wraps another FS or File: Unwrap returns the
// wrapped one.
type Unwrapper interface{ Unwrap() any }

// maxWrap bounds how many wrappers As looks through. A stack has five; a
// wrapper that wraps itself shall not hang anyone.
const maxWrap = 32

// As finds the optional power T in v or in what v wraps. Use it instead of a
// type assertion, which a wrapper would hide the power from.
func As[T any](v any) (T, bool) {
	for range maxWrap {
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

// HostFiler is a File that rests on a descriptor of this host, which may be
// read past nfsbox: LOCALIO, passthrough.
type HostFiler interface {
	// HostFile returns the descriptor and a function that gives it back. Until
	// then it stays open; the caller does not close it.
	HostFile() (f *os.File, release func(), ok bool)
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

// ManyAttrer is an FS that is asked for the attributes of many objects at less
// cost than for those of each: one whose server is far away.
type ManyAttrer interface {
	// GetAttrs is GetAttr of every handle in hs: attrs[i] and errs[i] are what it
	// would have returned for hs[i]. The three slices have one length; nothing of
	// them is kept.
	GetAttrs(ctx context.Context, hs []Handle, want Mask, attrs []Attr, errs []error)
}

// GetAttrs asks fs for the attributes of many objects: all at once, if it or what
// it wraps is a [ManyAttrer], else one after the other.
func GetAttrs(ctx context.Context, fs FS, hs []Handle, want Mask, attrs []Attr, errs []error) {
	if m, ok := As[ManyAttrer](fs); ok {
		m.GetAttrs(ctx, hs, want, attrs, errs)
		return
	}
	for i, h := range hs {
		attrs[i], errs[i] = fs.GetAttr(ctx, h, want)
	}
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
