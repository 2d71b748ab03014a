package object

import (
	"context"
	"fmt"
	"io"
	"iter"
	"time"
)

// PageSize is the largest limit of List, and the meaning of a limit of zero. A larger
// limit is cut to it. It is that of S3.
const PageSize = 1000

// Store keeps objects by key. The package's documentation says what it promises.
//
// All methods may be called concurrently, and by any number of goroutines; the
// caller bounds how many. They give up when ctx ends. Keys are checked first
// ([CheckKey]), before anything is read or looked at. Every error is an *[Error].
type Store interface {
	// Put stores all that r returns as the object of key, or nothing. It replaces an
	// object of that key, unless o.IfAbsent. When Put returns nil the object is there,
	// whole, and survives a crash.
	//
	// Put reads r on the calling goroutine, and reads nothing after it has returned. It
	// does not close r. ctx does not interrupt a Read that blocks. An error of r is
	// returned, wrapped. After an error the key has what it had before, unless the
	// error Is [ErrUnknownOutcome].
	Put(ctx context.Context, key string, r io.Reader, o PutOptions) (Info, error)

	// Get opens n bytes of an object from off on; a negative n, or one beyond the
	// end, stands for all the rest. Nothing is left at off == size, and what is
	// beyond that is [ErrRange]. The object that was opened is read to its end,
	// even if it is replaced or deleted meanwhile.
	//
	// When an object is read whole, from 0 to io.EOF, its checksum is compared: if the
	// bytes are not those that were put, [ErrCorrupted] takes the place of io.EOF. A
	// part is not verified. ctx ends the reads as well. The caller closes the reader,
	// and uses it on one goroutine at a time.
	Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, Info, error)

	// Stat says what is known of an object without reading it.
	Stat(ctx context.Context, key string) (Info, error)

	// List returns the objects whose keys begin with prefix and are greater than
	// after, in the order of their bytes, limit at most; zero is [PageSize]. An
	// empty page is the end, and so is one with More false; the last key is the
	// next page's after. Info.Sum is not set: Stat has it.
	//
	// What exists from the first page to the last is listed once. What comes or
	// goes meanwhile may be listed or not. Where something else has the place of an
	// object, the page ends before it, with More, and the next one is a
	// [ForeignError]; where a directory of objects cannot be read, a [HiddenError].
	List(ctx context.Context, prefix, after string, limit int) (Page, error)

	// Delete removes an object. It is no error if there is none. When Delete
	// returns nil the object is gone, and no crash brings it back.
	Delete(ctx context.Context, key string) error

	// Close makes new calls fail and waits for those under way. Readers that Get has
	// returned stay valid; the caller closes them.
	Close() error
}

// PutOptions say what the content must be, and whether it may replace an object.
type PutOptions struct {
	// Size is how many bytes r must return, or -1 if that is not known. More or fewer
	// are [ErrMismatch]. Zero is no bytes.
	Size int64
	// Sum is the SHA-256 that the bytes must have, or nil. Another one is ErrMismatch.
	Sum *Sum
	// IfAbsent keeps an existing object: Put is then [ErrExist]. Of any number of
	// concurrent calls exactly one succeeds. After ErrExist r may have been read, in
	// part or whole.
	IfAbsent bool
}

// Info describes an object.
type Info struct {
	Key     string
	Size    int64     // bytes
	ModTime time.Time // when it was put, by the store's clock and in its resolution
	Sum     Sum       // of the content; not set in a Page
}

// Page is a part of a listing.
type Page struct {
	Objects []Info
	More    bool // there may be more behind the last of Objects
}

// All iterates over the objects whose keys begin with prefix, in the order of
// [Store.List], a page at a time. It ends with the first error.
func All(ctx context.Context, s Store, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for after := ""; ; {
			page, err := s.List(ctx, prefix, after, 0)
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, info := range page.Objects {
				if !yield(info, nil) {
					return
				}
				after = info.Key
			}
			if !page.More || len(page.Objects) == 0 {
				return
			}
		}
	}
}

// Check compares what a reader returned with what was announced. It is nil, or an error
// that Is [ErrMismatch]. It is for drivers.
func (o *PutOptions) Check(size int64, sum Sum) error {
	if o.Size >= 0 && size != o.Size {
		return fmt.Errorf("%w: %d bytes came, not %d", ErrMismatch, size, o.Size)
	}
	if o.Sum != nil && sum != *o.Sum {
		return fmt.Errorf("%w: its SHA-256 is %v, not %v", ErrMismatch, sum, *o.Sum)
	}
	return nil
}

// Range returns how many bytes a Get of n bytes from off on yields of an object of that
// size, or an error that Is [ErrRange]. It is for drivers.
func Range(size, off, n int64) (int64, error) {
	if off < 0 || off > size {
		return 0, fmt.Errorf("%w: byte %d of %d", ErrRange, off, size)
	}
	if n < 0 || n > size-off {
		n = size - off
	}
	return n, nil
}

// CheckList checks List's arguments and returns the limit in force. after may be
// any prefix, whether there is such an object or not. It is for drivers.
func CheckList(prefix, after string, limit int) (int, error) {
	if err := CheckPrefix(prefix); err != nil {
		return 0, err
	}
	if err := CheckPrefix(after); err != nil {
		return 0, fmt.Errorf("after %s: %w", quote(after), err)
	}
	if limit <= 0 || limit > PageSize {
		limit = PageSize
	}
	return limit, nil
}
