package files

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/vfs"
)

// Store is an object store in a directory of a file system. See the package's documentation.
type Store struct {
	o      Options
	fs     vfs.FS
	looks  vfs.FS     // answers about names and attributes, from nothing that was kept
	syncer vfs.Syncer // nil: what the FS answers is stable
	layout layout.Layout
	fresh  bool
	own    string        // begins the temporary names of this opening
	temps  atomic.Uint64 // that were made
	left   atomic.Uint64 // that could not be removed

	buffers sync.Pool // of *buffer
	folders folders
	making  chan struct{} // has one place: the call that has it makes directories

	mu     sync.RWMutex
	closed bool
	calls  sync.WaitGroup
}

// buffer holds a chunk of content, or a small object with its trailer.
type buffer [chunk + layout.TrailerSize]byte

// Open opens the store in the directory root of fsys, which stays the caller's and must outlive the
// store. Where there is none, it is made of an empty directory, unless o forbids: then the
// error Is [layout.ErrNoStore]. Several hosts may open, and make, one store at once.
func Open(ctx context.Context, fsys vfs.FS, root vfs.Handle, o Options) (*Store, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("object store: %w", err)
	}
	s := &Store{o: o, fs: fsys, looks: vfs.Anew(fsys), making: make(chan struct{}, 1)}
	s.syncer, _ = vfs.As[vfs.Syncer](fsys)
	s.buffers.New = func() any { return new(buffer) }
	s.folders.root = &folder{path: ".", h: root, gate: newGate(), lasting: true}
	var id [8]byte
	o.Rand(id[:])
	s.own = layout.TempMark + hex.EncodeToString(id[:]) + "-"
	err := s.openMarker(ctx)
	if errors.Is(err, layout.ErrNoStore) && !o.ReadOnly && !o.Existing {
		if err = s.makeMarker(ctx); err == nil {
			err = s.openMarker(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("object store: %w", err)
	}
	return s, nil
}

// Fresh reports whether this Open has made the store.
func (s *Store) Fresh() bool { return s.fresh }

// Left is how many temporary names could not be removed since Open. They wait for a Sweep.
func (s *Store) Left() uint64 { return s.left.Load() }

// openMarker reads the marker.
func (s *Store) openMarker(ctx context.Context) error {
	h, a, err := s.lookup(ctx, s.folders.root, layout.MarkerName)
	switch {
	case errors.Is(err, vfs.ErrNoEnt):
		return layout.ErrNoStore
	case err != nil:
		return err
	case a.Type != vfs.TypeReg:
		return foreign(layout.MarkerName, "a "+a.Type.String())
	}
	f, _, err := s.fs.Open(ctx, vfs.At{H: h, Label: layout.MarkerName}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return fail("open", err)
	}
	b := make([]byte, layout.MaxMarker)
	n, _, err := vfs.ReadFull(ctx, f, b, 0)
	if err = errors.Join(err, f.Close(context.WithoutCancel(ctx))); err != nil {
		return fail("read", err)
	}
	s.layout, err = layout.ParseMarker(b[:n])
	return err
}

// makeMarker makes a store of an empty directory. If two calls do so at once, one makes the
// marker, and both open it.
func (s *Store) makeMarker(ctx context.Context) error {
	var other error
	err := s.names(ctx, s.folders.root, func(name string) {
		if !layout.Bare(name) && other == nil {
			other = layout.NotBare(name)
		}
	})
	if err = errors.Join(err, other); err != nil {
		return err
	}
	t, err := s.newTemp(ctx, s.folders.root)
	if err != nil {
		return err
	}
	if err = t.write(ctx, layout.Layout{Fanout: s.o.Fanout}.Marker(), 0); err == nil {
		err = t.finish(ctx)
	}
	if err == nil {
		err = t.publish(ctx, layout.MarkerName, true)
	}
	t.discard(ctx)
	if errors.Is(err, object.ErrExist) {
		return nil
	}
	s.fresh = err == nil
	return err
}

// enter counts a call, until leave. It fails after Close.
func (s *Store) enter() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return object.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

func (s *Store) leave() { s.calls.Done() }

// enterChange is enter for a call that writes.
func (s *Store) enterChange(ctx context.Context) error {
	if s.o.ReadOnly {
		return fmt.Errorf("the store is open for reading: %w", vfs.ErrROFS)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.enter()
}

// Close implements [object.Store]. The file system stays open.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	return nil
}

func (s *Store) tempName() string { return s.own + strconv.FormatUint(s.temps.Add(1), 10) }
