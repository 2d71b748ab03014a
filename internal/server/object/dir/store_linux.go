package dir

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// Store is an object store in a local directory. See the package's documentation.
type Store struct {
	o       Options
	sys     Sys
	layout  layout.Layout
	lock    int  // the marker file, open and locked, or -1
	guard   int  // the root directory, locked by a reader or against readers, or -1
	signed  bool // this process has said that it has the store
	own     string
	temps   atomic.Uint64 // temporary names that were made
	named   atomic.Bool   // the file system cannot make files without a name
	failed  atomic.Pointer[error]
	buffers sync.Pool // of *buffer
	folders folders
	counts  counts

	mu     sync.RWMutex
	closed bool
	calls  sync.WaitGroup
}

// counts are the counters of Snapshot.
type counts struct {
	puts, putBytes, gets, deletes, syncs, shared, corrupted, left atomic.Uint64
	readers                                                       atomic.Int64
}

// buffer holds a chunk of content, or a small object with its trailer.
type buffer [chunk + layout.TrailerSize]byte

// Open opens the store in the directory path, which must exist. Only one process at a
// time has it open to write; another gets object.ErrBusy.
//
// Open first makes stable, with one syncfs(2), what a killed process has left unsynced.
// Otherwise calls would see objects that a crash could still undo.
func Open(path string, o Options) (*Store, error) {
	s, err := open(path, o)
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w", path, err)
	}
	return s, nil
}

func open(path string, o Options) (*Store, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	s := &Store{o: o, sys: o.Sys, lock: -1, guard: -1}
	s.buffers.New = func() any { return new(buffer) }
	s.folders.m = make(map[string]*folder)
	var id [8]byte
	o.Rand(id[:])
	s.own = layout.TempMark + hex.EncodeToString(id[:]) + "-"
	fd, err := openRoot(path)
	if err != nil {
		return nil, err
	}
	root, err := s.folders.add(".", fd, true)
	if err == nil {
		err = s.start(root)
	}
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// complete checks the options and fills in what they leave open.
func (o *Options) complete() error {
	switch {
	case o.Fanout < 0 || o.Fanout > layout.MaxFanout:
		return fmt.Errorf("a fan-out of %d: it is 1 to %d characters", o.Fanout, layout.MaxFanout)
	case o.MaxSize < 0:
		return fmt.Errorf("objects of at most %d bytes", o.MaxSize)
	case o.ReadOnly && (o.Create || o.Alone):
		return errors.New("a store cannot be made, or kept from readers, and be read-only")
	}
	o.Fanout = cmp.Or(o.Fanout, layout.DefaultFanout)
	o.MaxSize = cmp.Or(o.MaxSize, DefaultMaxSize)
	if o.Gate == nil {
		o.Gate = make(places, DefaultParallel)
	}
	if o.Holder == (layout.Holder{}) {
		o.Holder = layout.Self()
	}
	if o.Sys == nil {
		o.Sys = osSys{}
	}
	if o.Rand == nil {
		// It never fails: it ends the process instead.
		o.Rand = func(p []byte) { _, _ = rand.Read(p) }
	}
	return nil
}

// openRoot opens the root. The path to it may lead through symbolic links; below the root
// none is followed.
func openRoot(path string) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, fail("open", err)
}

// start reads or makes the marker, takes the lock, and makes stable what is there.
func (s *Store) start(root *folder) error {
	err := s.openMarker(root)
	if errors.Is(err, unix.ENOENT) && s.o.Create {
		if err = s.makeMarker(root); err == nil {
			err = s.openMarker(root)
		}
	}
	if errors.Is(err, unix.ENOENT) {
		return layout.ErrNoStore
	}
	if err == nil {
		err = s.apart(root)
	}
	if err != nil || s.o.ReadOnly || s.o.NoSync {
		return err
	}
	return fail("syncfs", s.sys.Syncfs(root.fd))
}

// openMarker opens, locks and reads the marker.
func (s *Store) openMarker(root *folder) error {
	flags := unix.O_RDWR
	if s.o.ReadOnly {
		flags = unix.O_RDONLY
	}
	fd, err := unix.Openat(root.fd, layout.MarkerName, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail("open", err)
	}
	s.lock = fd
	if !s.o.ReadOnly {
		err := again(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
		if errors.Is(err, unix.EWOULDBLOCK) {
			return s.held(root)
		}
		if err != nil {
			return fail("flock", err)
		}
	}
	b := make([]byte, layout.MaxMarker)
	n, err := readAt(fd, b, 0)
	if err != nil {
		return fail("read", err)
	}
	s.layout, err = layout.ParseMarker(b[:n])
	if err == nil && !s.o.ReadOnly {
		s.sign(root)
	}
	return err
}

// makeMarker makes a store of an empty directory. If two calls do so at once, one makes
// the marker, and both open it. The syncfs of Open makes its name stable.
func (s *Store) makeMarker(root *folder) error {
	err := s.eachName(root, func(name string) error {
		if layout.Bare(name) {
			return nil // also from a process that was killed, or was faster
		}
		return layout.NotBare(name)
	})
	if err != nil {
		return err
	}
	t, err := s.newTemp(root)
	if err != nil {
		return err
	}
	m := layout.Layout{Fanout: s.o.Fanout}.Marker()
	if err = s.writeAll(t.fd, m, 0); err == nil && !s.o.NoSync {
		err = fail("fdatasync", s.sys.Fdatasync(t.fd))
	}
	if err == nil {
		err = fail("link", s.sys.Linkat(t.fd, root.fd, layout.MarkerName))
	}
	if err = errors.Join(err, t.close(context.Background())); errors.Is(err, unix.EEXIST) {
		return nil
	}
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
func (s *Store) enterChange() error {
	if s.o.ReadOnly {
		return fmt.Errorf("the store is open for reading: %w", unix.EROFS)
	}
	if err := s.failure(); err != nil {
		return err
	}
	return s.enter()
}

// Close implements [object.Store]. It gives the lock back.
func (s *Store) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return nil
	}
	s.calls.Wait()
	return s.release()
}

// release closes what the store has open.
func (s *Store) release() error {
	s.unsign()
	err := s.folders.close()
	for _, fd := range []int{s.lock, s.guard} {
		if fd >= 0 {
			err = errors.Join(err, fail("close", unix.Close(fd)))
		}
	}
	return err
}

// Snapshot returns the counters.
func (s *Store) Snapshot() Snapshot {
	c := &s.counts
	return Snapshot{
		Puts: c.puts.Load(), PutBytes: c.putBytes.Load(), Gets: c.gets.Load(), Deletes: c.deletes.Load(),
		Syncs: c.syncs.Load(), Shared: c.shared.Load(), Corrupted: c.corrupted.Load(), Left: c.left.Load(),
		Folders: s.folders.len(), OpenReaders: int(c.readers.Load()), Failed: s.failed.Load() != nil,
	}
}

func (s *Store) tempName() string { return s.own + strconv.FormatUint(s.temps.Add(1), 10) }
