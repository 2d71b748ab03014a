package store

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math/bits"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Entry is one version of one file, in use. All methods may be called concurrently.
type Entry struct {
	s     *Store
	id    uint64
	shift int   // of the granule's size
	data  int64 // where the file's bytes begin
	h     *header
	pin   bool // by Options.Pin
	once  sync.Once

	f        atomic.Pointer[os.File]
	dead     atomic.Bool // another version has taken its place, or it is no good
	doubtful atomic.Bool // see Doubt
	good     []uint64    // granules that were checked, or written by this process; by atomic operations
	there    atomic.Int64

	mu       sync.Mutex
	table    table // its bits are also read by atomic operations
	unsaved  map[int]bool
	unsynced int64 // bytes written since the table was

	refs int   // guarded by Store.mu, as pin is
	owed int64 // blocks that the disk gets back at the last Release; guarded by Store.mu
}

// Open returns the entry of a file in that version, with what is there of it. An entry of another version is
// removed. label is the file's name or path, for people and for Options.Pin; the entry keeps the first that it gets. The
// caller must Release the entry. It is nil if the file is not to be cached.
func (s *Store) Open(key *Key, version *Version, label string) *Entry {
	want := &header{key: *key, version: *version, granule: s.o.Granule, label: cut(label)}
	if s.broken.Load() || !want.fits() || version.Size == 0 {
		return nil
	}
	id, pin := key.id(), s.o.pins(label)
	for range 4 { // a file that changes so quickly is not cached
		s.mu.Lock()
		if s.over {
			s.mu.Unlock()
			return nil
		}
		e := s.open[id]
		if e == nil {
			e = &Entry{s: s, id: id}
			s.open[id] = e
		}
		e.refs++
		e.pin = e.pin || pin
		if s.index.get(id) != nil {
			if r := s.index.use(id); e.pin {
				s.index.pin(r, true)
			}
		}
		s.mu.Unlock()
		e.once.Do(func() { e.load(want) })
		if !e.dead.Load() && !e.doubtful.Load() && e.h.key == *key && e.h.version.Equal(version) {
			e.name(want.label)
			return e
		}
		s.Count.Stale.Add(1)
		s.discard(e)
		e.Release()
	}
	return nil
}

// cut bounds a label: the end of a path says more than its beginning.
func cut(s string) string { return s[max(0, len(s)-maxName):] }

// pins reports whether a pattern says that a file with that name or path stays.
func (o *Options) pins(label string) bool {
	return label != "" && slices.ContainsFunc(o.Pin, func(pattern string) bool {
		name := label
		if !strings.Contains(pattern, "/") {
			name = path.Base(label)
		}
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// name gives the entry a label if it has none.
func (e *Entry) name(label string) {
	if label == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.h.label == "" {
		e.h.label = label
		e.unsaved[0] = true
	}
}

// load takes over what is on the disk, if it is of the version that is wanted.
func (e *Entry) load(want *header) {
	f, err := os.OpenFile(e.s.file(e.id), os.O_RDWR, 0)
	if err == nil {
		h, t, err := readEntry(f)
		if err == nil && h.key == want.key && h.version.Equal(&want.version) && (h.flags&unchecked != 0) == e.s.o.NoChecksum {
			e.begin(h, t)
			e.f.Store(f)
			e.s.count(e, f)
			return
		}
		if err != nil {
			e.s.Count.Damaged.Add(1)
		} else {
			e.s.Count.Stale.Add(1)
		}
		_ = f.Close() // nothing was written
		e.s.mu.Lock()
		g := e.s.remove(e.id)
		e.s.mu.Unlock()
		e.s.bury(g)
	} else if errors.Is(err, fs.ErrNotExist) {
		e.s.mu.Lock()
		e.s.index.remove(e.id) // a crash has lost the file
		e.s.mu.Unlock()
	} else {
		e.s.fail(err)
	}
	var salt [8]byte
	e.s.o.Rand(salt[:])
	want.salt = binary.BigEndian.Uint64(salt[:])
	if e.s.o.NoChecksum {
		want.flags |= unchecked
	}
	e.begin(want, newTable(want.granules()))
	e.unsaved[0] = true
}

// count has what an entry's file takes counted, if the index lacks it: somebody may have put it there.
func (s *Store) count(e *Entry, f *os.File) {
	info, err := f.Stat()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.index.get(e.id) == nil && s.open[e.id] == e {
		s.index.resize(s.index.use(e.id), blocksOf(info)+1)
	}
}

func (e *Entry) begin(h *header, t table) {
	e.h, e.table = h, t
	e.shift = bits.TrailingZeros(uint(h.granule))
	e.data = int64(h.pages()) * block
	e.good = make([]uint64, len(t.bits))
	e.unsaved = make(map[int]bool)
	n := 0
	for _, w := range t.bits {
		n += bits.OnesCount64(w)
	}
	e.there.Store(int64(n))
}

// readEntry reads the header and the table of an entry's file.
func readEntry(f *os.File) (*header, table, error) {
	page := make([]byte, block)
	if _, err := f.ReadAt(page, 0); err != nil {
		return nil, table{}, err
	}
	h, err := parseHeader(page)
	if err != nil {
		return nil, table{}, err
	}
	t := newTable(h.granules())
	for n := range h.pages() {
		if n > 0 {
			if _, err := f.ReadAt(page, int64(n)*block); err != nil {
				return nil, table{}, err
			}
		}
		if err := t.takePage(page, n, h.salt); err != nil {
			return nil, table{}, err
		}
	}
	return h, t, nil
}

// Granule is the unit of Has and Fill, in bytes.
func (e *Entry) Granule() int { return e.h.granule }

// Complete reports whether all of the file is there.
func (e *Entry) Complete() bool {
	return e.there.Load() == int64(len(e.table.sums)) && !e.dead.Load()
}

// Alive reports whether the entry is still the one of its file.
func (e *Entry) Alive() bool { return !e.dead.Load() }

// Doubt says that what was filled may be older than the entry's version: a change may have followed so
// quickly that the times are the same. Those who have the entry may go on. Nobody gets it by Open, and
// it is removed at the last Release.
func (e *Entry) Doubt() { e.doubtful.Store(true) }

// Fill keeps p, which is all of granule g, unless there is no room. p is not kept.
func (e *Entry) Fill(g int, p []byte) bool {
	if len(p) != e.length(g) || e.dead.Load() || e.Has(g) || !e.s.admit(e, len(p)) {
		return false
	}
	f := e.f.Load()
	if f == nil {
		return false
	}
	start := time.Now()
	n, err := e.s.o.Disk.WriteAt(f, p, e.data+int64(g)<<e.shift)
	e.s.took(n, start)
	if err != nil {
		if !e.dead.Load() && !errors.Is(err, os.ErrClosed) {
			e.s.fail(err)
		}
		return false
	}
	sum := e.h.sum(g, p)
	e.mu.Lock()
	if !e.table.has(g) {
		e.table.sums[g] = sum
		atomic.OrUint64(&e.table.bits[g>>6], 1<<(g&63))
		e.mark(g)
		e.there.Add(1)
		e.unsaved[g/perPage] = true
	}
	e.unsynced += int64(len(p))
	flush := e.unsynced >= flushBytes
	e.mu.Unlock()
	e.s.Count.BytesFilled.Add(uint64(len(p)))
	if flush && !e.doubtful.Load() {
		e.flush()
	}
	return true
}

// flush writes the table. What it says is there has been written, or is found out by its checksum.
func (e *Entry) flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.f.Load()
	if f == nil || len(e.unsaved) == 0 || e.dead.Load() || e.doubtful.Load() || e.s.broken.Load() {
		return
	}
	if e.h.flags&unchecked != 0 {
		if err := e.s.o.Disk.Datasync(f); err != nil {
			e.s.fail(err)
			return
		}
	}
	page := make([]byte, block)
	for n := range e.unsaved {
		clear(page)
		if n == 0 {
			e.h.put(page)
		}
		e.table.putPage(page, n, e.h.salt)
		if _, err := e.s.o.Disk.WriteAt(f, page, int64(n)*block); err != nil {
			e.s.fail(err)
			return
		}
		delete(e.unsaved, n)
	}
	e.unsynced = 0
}

// Release ends one use.
func (e *Entry) Release() {
	s := e.s
	e.flush()
	var g grave
	s.mu.Lock()
	e.refs--
	if e.refs > 0 || s.over {
		s.mu.Unlock()
		return
	}
	if e.doubtful.Load() {
		g = s.drop(e)
	}
	if s.open[e.id] == e {
		delete(s.open, e.id)
	}
	g.blocks, e.owed = e.owed, 0
	f := e.f.Load()
	s.mu.Unlock()
	if f != nil {
		_ = f.Close() // what it has is a copy
	}
	s.bury(g)
}

// discard removes an entry that is no good. Those who use it miss from then on.
func (s *Store) discard(e *Entry) {
	s.mu.Lock()
	g := s.drop(e)
	s.mu.Unlock()
	s.bury(g)
}

// grave is a file that was taken out of the store, and what it takes.
type grave struct {
	name   string
	blocks int64 // count as trash
}

// drop is discard, up to the file's removal. What it takes comes free at the last Release. s.mu is held.
func (s *Store) drop(e *Entry) grave {
	e.dead.Store(true)
	if s.open[e.id] != e {
		return grave{}
	}
	delete(s.open, e.id)
	g := s.remove(e.id)
	e.owed, g.blocks = g.blocks, 0
	return g
}

// remove takes id out of the index, and its file out of the way: to remove a large one takes long, to
// rename it does not. s.mu is held.
func (s *Store) remove(id uint64) grave {
	g := grave{blocks: int64(s.index.remove(id))}
	s.trash += g.blocks
	s.serial++
	to := filepath.Join(s.dir, trashDir, strconv.FormatUint(s.serial, 10))
	if s.o.Disk.Rename(s.file(id), to) == nil { // else there was no file
		g.name = to
		s.gone[id>>56] = true
	}
	return g
}

// bury removes the file of g.
func (s *Store) bury(g grave) {
	if g.name != "" {
		if err := s.o.Disk.Remove(g.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.fail(err)
		}
	}
	if g.blocks != 0 {
		s.mu.Lock()
		s.trash -= g.blocks
		s.mu.Unlock()
	}
}
