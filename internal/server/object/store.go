package object

import (
	"context"
	"io"
	"time"
)

// PageSize is the largest limit of List, and what a limit of zero stands for.
// More is cut down to it: it is what S3 gives at once.
const PageSize = 1000

// Store keeps objects by key. The package's documentation says what it promises.
//
// All methods may be called concurrently, and by any number of goroutines; the
// caller bounds how many. They give up when ctx ends. Keys are checked first
// ([CheckKey]), before anything is read or looked at. Every error is an *[Error].
type Store interface {
	// Put stores what r gives, to its end, as the object of key: all of it, or
	// nothing. It replaces an object of that key, unless o.IfAbsent. When Put
	// returns nil the object is there, whole, and stays whatever crashes.
	//
	// Put reads r on the calling goroutine and reads nothing more once it has
	// returned, but does not close it; how long it takes is up to r, and a Read
	// that blocks is not interrupted by ctx. An error of r's is returned, wrapped.
	// After any error the key has what it had before, with the exception of one
	// that Is [ErrUnknownOutcome].
	Put(ctx context.Context, key string, r io.Reader, o PutOptions) (Info, error)

	// Get opens n bytes of an object from off on; a negative n, or one beyond the
	// end, stands for all the rest. Nothing is left at off == size, and what is
	// beyond that is [ErrRange]. The object that was opened is read to its end,
	// even if it is replaced or deleted meanwhile.
	//
	// A caller that reads an object whole, from 0 to io.EOF, has its checksum compared: it
	// is [ErrCorrupted] in the place of io.EOF if the bytes were not those that
	// were put. Of a part nobody knows. ctx is that of the reads as well. The
	// caller closes the reader, and uses it on one goroutine at a time.
	Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, Info, error)

	// Stat says what is known of an object without reading it.
	Stat(ctx context.Context, key string) (Info, error)

	// List returns the objects whose keys begin with prefix and are greater than
	// after, in the order of their bytes, limit at most; zero is [PageSize]. An
	// empty page is the end, and so is one with More false; the last key is the
	// next page's after. Info.Sum is not set: Stat has it.
	//
	// What exists from the first page to the last is there once. What comes or
	// goes meanwhile may be there or not.
	List(ctx context.Context, prefix, after string, limit int) (Page, error)

	// Delete removes an object. It is no error if there is none. When Delete
	// returns nil the object is gone, and no crash brings it back.
	Delete(ctx context.Context, key string) error

	// Close lets no new call in and waits for those under way. Readers that Get
	// has handed out remain good, and are the caller's to close.
	Close() error
}

// PutOptions say what Put is to hold the content against.
type PutOptions struct {
	// Size is how many bytes r will give, and -1 if that is not known. If they
	// are more or fewer it is [ErrMismatch]. Zero is no bytes.
	Size int64
	// Sum is the SHA-256 that the bytes must have, or nil. With another one it
	// is ErrMismatch.
	Sum *Sum
	// IfAbsent leaves an object that is there alone: Put is [ErrExist] then. Of
	// any number of calls at once exactly one succeeds. r may have been read, in
	// part or whole.
	IfAbsent bool
}

// Info describes an object.
type Info struct {
	Key     string
	Size    int64     // bytes
	ModTime time.Time // when it was put, by the store's clock, as finely as that is kept
	Sum     Sum       // of the content; not set in a Page
}

// Page is a part of a listing.
type Page struct {
	Objects []Info
	More    bool // there may be more behind the last of Objects
}
