package store

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// ErrInUse is what Open says of a directory that another process, or another Store of this one, has.
var ErrInUse = errors.New("in use by another process")

// Space is what a disk has.
type Space struct {
	Bytes, FreeBytes uint64 // in all, and for the caller
	Files, FreeFiles uint64 // 0 in all: the disk has no bound
}

// Options say where a Store is, and what it may take.
type Options struct {
	Dir        string // exists, is the caller's, and nobody else may write to it
	Tag        string // stores with different tags are apart
	Size       int64  // most that the entries take, in bytes; 0: what Limits leave
	Granule    int    // bytes, a power of two; 0: DefaultGranule
	NoChecksum bool   // data is synced instead
	NoCull     bool   // nothing is removed to make room
	Limits     Limits // zero: DefaultLimits

	// Pin are patterns (path.Match) of names: what is opened by one is pinned. One without a slash is for the last
	// part of a name.
	Pin []string
	// StatsFile is where the figures are written as JSON, now and then and at Close; "": nowhere.
	StatsFile string

	// Note is told, in a sentence, of what the user should know: the disk is full or broken. Each is
	// told once. It may be called by any goroutine that uses the store. nil: nobody is told.
	Note func(string)
	// Rand draws the numbers that checksums begin with; nil is crypto/rand.
	Rand func([]byte)
	// Space asks the disk of a directory; nil asks the system.
	Space func(dir string) (Space, error)
	// Disk makes the changes; nil is the system's.
	Disk Disk
}

// Store is an open directory. All methods may be called concurrently.
type Store struct {
	o      Options
	dir    string
	most   int64 // blocks; 0: no bound
	lock   *os.File
	checks sync.Pool // of *[]byte, a granule long
	kick   chan struct{}
	end    chan struct{}
	work   sync.WaitGroup

	// Count is also used by what is built on the store.
	Count Counters

	broken atomic.Bool // nothing is read or written any more
	full   atomic.Bool // nothing is written for now

	cold func(n int, took time.Duration) // see Watch; nil: nobody is told

	mu     sync.Mutex
	index  *index
	open   map[uint64]*Entry // that are in use
	trash  int64             // blocks of entries that are removed and not yet gone
	gone   [256]bool         // directories of entries from which some were removed in this run
	serial uint64            // of names in trash
	told   map[string]bool
	why    string // why it is broken or full
	fresh  int64  // blocks written since free space was looked at
	over   bool   // closed
}

// Open opens the store below o.Dir, and makes it if it is not there. An error says what is wrong with the
// directory, and what to do.
func Open(o Options) (*Store, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	s := &Store{o: o, dir: o.path(), kick: make(chan struct{}, 1), end: make(chan struct{}), open: make(map[uint64]*Entry), told: make(map[string]bool)}
	if o.Size > 0 {
		s.most = max(1, o.Size/block)
	}
	if err := own(o.Dir); err != nil {
		return nil, err
	}
	lock, err := claim(s.dir, o.Disk)
	if err != nil {
		return nil, err
	}
	s.lock = lock
	if err := s.load(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.work.Go(s.cull)
	return s, nil
}

func (o *Options) fill() error {
	o.Granule = cmp.Or(o.Granule, DefaultGranule)
	if !goodGranule(o.Granule) {
		return fmt.Errorf("cache: a granule of %d bytes; a power of two from %d to %d is wanted", o.Granule, MinGranule, MaxGranule)
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits
	}
	if o.Rand == nil {
		o.Rand = func(p []byte) { _, _ = rand.Read(p) } // never fails
	}
	if o.Space == nil {
		o.Space = spaceOf
	}
	if o.Disk == nil {
		o.Disk = System{}
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	return nil
}

// path is the store's own directory.
func (o *Options) path() string { return Path(o.Dir, o.Tag) }

// Path is the directory of the store of a tag below dir.
func Path(dir, tag string) string {
	if tag != "" {
		tag = "-" + tag
	}
	return filepath.Join(dir, Name+tag)
}

// id is a hash of the key: the entry's name. The header has the whole key, so that two of one hash only
// displace each other.
func (k *Key) id() uint64 {
	b := appendText(nil, string(k.Handle.Bytes()))
	b = binary.BigEndian.AppendUint64(b, k.FSID[0])
	b = binary.BigEndian.AppendUint64(b, k.FSID[1])
	b = append(b, k.Server...)
	b = append(b, 0)
	b = append(b, k.Mark...)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

// Watch has cold called with how long the disk took for n bytes: when they were written, and when they were first read after
// an entry was opened. It is called before the first Open.
func (s *Store) Watch(cold func(n int, took time.Duration)) { s.cold = cold }

func (s *Store) took(n int, start time.Time) {
	if s.cold != nil && n > 0 {
		s.cold(n, time.Since(start))
	}
}

// file is where entry id is.
func (s *Store) file(id uint64) string { return fileIn(s.dir, id) }

func fileIn(dir string, id uint64) string {
	return filepath.Join(dir, dataDir, fmt.Sprintf("%02x", id>>56), fmt.Sprintf("%014x", id&(1<<56-1)))
}

// tell notes what, once, and takes it for the reason of the store's state.
func (s *Store) tell(what string) {
	s.mu.Lock()
	s.why = what
	s.mu.Unlock()
	s.Note(what)
}

// Note tells the user what, once.
func (s *Store) Note(what string) {
	s.mu.Lock()
	told := s.told[what]
	s.told[what] = true
	s.mu.Unlock()
	if !told {
		s.o.Note(what)
	}
}

// fail takes note of an error of the disk. From then on the store is empty to its users. A full disk is
// left alone for a while.
func (s *Store) fail(err error) {
	if isFull(err) {
		s.full.Store(true)
		s.tell("cache: the disk of " + s.dir + " is full; files are read past it until there is room")
		s.wake()
		return
	}
	s.broken.Store(true)
	s.tell("cache: " + err.Error() + "; files are read past it")
}

// wake has the culling goroutine look.
func (s *Store) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// Close writes what is not yet on the disk, and gives the directory up. Entries that are still in use
// miss everything from then on.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return nil
	}
	s.over = true
	all := make([]*Entry, 0, len(s.open))
	for _, e := range s.open {
		all = append(all, e)
	}
	s.mu.Unlock()
	close(s.end)
	s.work.Wait()
	for _, e := range all {
		s.shut(e)
	}
	var err error
	if !s.broken.Load() {
		err = errors.Join(s.saveStats(), s.syncRemoved(), s.saveIndex())
	}
	s.report()
	return errors.Join(err, s.lock.Close())
}

// syncRemoved makes it stable that entries were removed: the index must not lack what would be back after a crash, as that
// would take room that nobody counts.
func (s *Store) syncRemoved() error {
	for i, gone := range s.gone {
		if !gone {
			continue
		}
		if err := s.o.Disk.SyncDir(filepath.Join(s.dir, dataDir, hex2(i))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// shut ends the use of e when the store is closed.
func (s *Store) shut(e *Entry) {
	e.flush()
	if e.doubtful.Load() {
		s.discard(e)
	}
	e.dead.Store(true)
	if f := e.f.Load(); f != nil {
		_ = f.Close() // what it has is a copy
	}
}
