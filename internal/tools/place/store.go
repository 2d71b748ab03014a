package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/internal/server/object/s3"
	"github.com/nfsbox/nfsbox/vfs"
)

// ErrNoStore marks the error of a place at which there is no store, and where one could be made.
var ErrNoStore = layout.ErrNoStore

// noStoreError is an ErrNoStore, and an ErrUnreachable.
type noStoreError struct{ arg, why string }

func (e *noStoreError) Error() string { return "there is no store at " + e.arg + ": " + e.why }

func (e *noStoreError) Is(target error) bool { return target == ErrNoStore || target == ErrUnreachable }

// Why there is no store.
const (
	noMarker    = "there is no " + layout.MarkerName + " in it"
	noDirectory = "there is no such directory; see that its disk is mounted"
	noExport    = "there is no such directory at the server"
	noObjects   = "there is nothing; see that bucket, prefix and endpoint are right"
)

// StoreOptions say how to open a store. The zero value reads one that is there.
type StoreOptions struct {
	// Write opens the store for changes, and makes it where there is none: of an empty directory, or of a name
	// in a directory that is there.
	Write bool
	// Existing makes no store. It has a meaning with Write alone.
	Existing bool
	// Alone keeps those out that read a store in a directory of this host, and fails with [object.ErrBusy] while there are any. It is
	// for a process that removes what they may be reading. In other stores leases keep them apart.
	Alone bool
	// Reading has what is read of a store that several hosts use kept until it is closed; nil: it is not.
	Reading *Reading
	// Dial is further options for stores of servers.
	Dial []nfsbox.Option
	// Silent is that of Options, for stores in buckets.
	Silent func(bucket.Silence)
}

// makes reports whether a store is made where there is none.
func (o *StoreOptions) makes() bool { return o.Write && !o.Existing }

// Store is an open store of objects. The caller closes it.
type Store struct {
	object.Store
	Text  string   // the argument, for messages
	Fresh bool     // opening it has made it
	Dir   vfs.Attr // of the directory that it lies in; without a file id: it lies in a bucket, or that is not known
	held  *held    // nil: there is no lease

	leases object.Store // where that is put; nil: in Store itself
}

// forLeases is the store to put a lease into.
func (s *Store) forLeases() object.Store {
	if s.leases != nil {
		return s.leases
	}
	return s.Store
}

// Close implements object.Store.
func (s *Store) Close() error {
	if s.held != nil {
		s.held.end()
	}
	var err error
	if s.leases != nil {
		err = s.leases.Close()
	}
	return errors.Join(err, s.Store.Close())
}

// OpenStore opens the store that arg names: a directory of this host, or of a server (nfs://), or a part of a bucket (s3://).
// Without StoreOptions.Write it makes and changes nothing but a lease for StoreOptions.Reading, and is let in beside a writer. Errors are ErrUsage if
// something else is there, or arg names no store, ErrUnreachable if there is none, or it could not be asked, and [object.ErrBusy] if
// another process has it. They say what to do, and show no credentials.
func OpenStore(ctx context.Context, arg string, o StoreOptions) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	arg = Meant(arg)
	s, err := openStore(ctx, arg, o)
	if err != nil || o.Reading == nil || !IsURL(arg) {
		return s, err
	}
	if s.held, err = o.Reading.take(ctx, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func openStore(ctx context.Context, arg string, o StoreOptions) (*Store, error) {
	switch scheme, _, _ := strings.Cut(arg, "://"); {
	case arg == "":
		return nil, fmt.Errorf("an empty argument is %w: give the directory of a store", ErrUsage)
	case !IsURL(arg) && o.Reading != nil && !o.Write:
		return o.Reading.open(ctx, func() (*Store, error) { return openStoreDir(ctx, arg, o) })
	case !IsURL(arg):
		return openStoreDir(ctx, arg, o)
	case scheme == "nfs":
		return openStoreServer(ctx, arg, o)
	case scheme == "s3":
		return openStoreS3(ctx, arg, o)
	default:
		return nil, fmt.Errorf("a store at %s:// is %w that this version knows: give a directory, nfs:// or s3://", scheme, ErrUsage)
	}
}

// CheckStore refuses an s3:// URL that is none, or that has credentials in it, without repeating it: so that no message, log or
// record has them. arg may be a snapshot in such a store. Any other argument is nil.
func CheckStore(arg string) error {
	if !strings.HasPrefix(arg, "s3://") {
		return nil
	}
	var err error
	if store, _, _, ok := DivideText(arg); ok {
		_, err = s3.ParseURL(store)
	} else {
		_, _, err = bucket.ParseURL(arg)
	}
	if err != nil {
		return usageError{err}
	}
	return nil
}

// openStoreS3 opens a store in a bucket.
func openStoreS3(ctx context.Context, arg string, o StoreOptions) (*Store, error) {
	at, err := s3.ParseURL(arg)
	if err != nil {
		return nil, usageError{err}
	}
	at.Write, at.Silent = o.Write, o.Silent
	s, err := s3.Open(ctx, at)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, fmt.Errorf("%s: %w", arg, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("the store %s %w: %w", arg, ErrUnreachable, err)
	case s.Fresh() && !o.makes():
		return nil, errors.Join(&noStoreError{arg, noObjects}, s.Close())
	}
	return &Store{Store: s, Text: arg, Fresh: s.Fresh()}, nil
}

// InUse reports whether err is that of a store which another process has. It says which, as far as that is known.
func InUse(err error) bool {
	_, held := errors.AsType[*layout.HeldError](err)
	return held
}

// storeError is the error of a directory that could not be opened as a store, with what to do.
func storeError(arg string, err error) error {
	advice := ""
	if held, ok := errors.AsType[*layout.HeldError](err); ok {
		return fmt.Errorf("the store %s is in use: %w", arg, held)
	}
	switch {
	case errors.Is(err, layout.ErrNoStore):
		return &noStoreError{arg, noMarker}
	case errors.Is(err, layout.ErrUnfit), errors.Is(err, object.ErrForeign):
		return usageError{fmt.Errorf("%s: %w; give the directory of a store, or an empty one", arg, err)}
	case errors.Is(err, object.ErrBusy): // it can be reached, but not now
		return fmt.Errorf("the store %s: %w", arg, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, vfs.ErrROFS):
		advice = "; its file system, or the export, is read-only: make it rw"
	case errors.Is(err, fs.ErrPermission):
		advice = "; run this as a user who may use it"
	}
	return fmt.Errorf("the store %s %w: %w%s", arg, ErrUnreachable, err, advice)
}
