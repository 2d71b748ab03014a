package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Found is what a directory says of an entry.
type Found struct {
	ID           uint64
	Server, Mark string
	Label        string // the file's name when it was opened; hostile
	Handle       vfs.Handle
	Size         uint64 // of the file
	Mtime        time.Time
	Granules     int   // of the file
	There        int   // of these
	Bad          int   // of those that are there, by Verify
	Bytes        int64 // on the disk
	Pinned       bool
	Err          error // it is not whole; what is above may be zero
}

// Look reads the figures of the store in path, whoever has it open: as they were when its owner last wrote
// them. inUse says that a process has it open.
func Look(path string) (s Stats, inUse bool, err error) {
	lock, err := claim(path, nil)
	switch {
	case errors.Is(err, ErrInUse):
		inUse = true
	case err != nil:
		return s, false, err
	default:
		if err := lock.Close(); err != nil { // at once: whoever begins now wants it
			return s, false, err
		}
	}
	var c Counters
	if b, err := readFile(filepath.Join(path, statsName), maxSmall); err == nil {
		_ = c.parse(b) // else all are zero
	}
	all, err := list(path, false)
	if err != nil {
		return s, inUse, err
	}
	s.Counts = c.counts()
	s.State, s.Entries = "on", len(all)
	for _, f := range all {
		s.Bytes += int64(f.blocks) * block
	}
	return s, inUse, nil
}

// There returns an error if path is no store that this user may use.
func There(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return &DirError{path, noCache}
	}
	if err := trusted(path); err != nil {
		return err
	}
	return checkHead(path, nil)
}

// Entries calls each with all entries of the store in path, whoever has it open, until that returns an error. If verify
// is set, it reads all that is there, and compares it with its checksums.
func Entries(path string, verify bool, each func(*Found) error) error {
	if err := There(path); err != nil {
		return err
	}
	all, err := list(path, false)
	if err != nil {
		return err
	}
	pins := newIndex(0)
	for _, name := range [...]string{indexName, oldName} {
		if x, err := readIndex(filepath.Join(path, name)); err == nil {
			pins = x
			break
		}
	}
	for _, f := range all {
		e := &Found{ID: f.id, Bytes: int64(f.blocks) * block}
		if r := pins.get(f.id); r != nil {
			e.Pinned = r.flags&pinned != 0
		}
		err := e.look(fileIn(path, f.id), verify)
		if errors.Is(err, fs.ErrNotExist) {
			continue // culled meanwhile
		}
		e.Err = err
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// look reads an entry's file.
func (e *Found) look(name string, verify bool) (err error) {
	f, err := openFile(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h, t, err := readEntry(f)
	if err != nil {
		return err
	}
	e.Server, e.Mark, e.Label, e.Handle = h.key.Server, h.key.Mark, h.label, h.key.Handle
	e.Size, e.Mtime, e.Granules = h.version.Size, h.version.Mtime, h.granules()
	p := make([]byte, h.granule)
	for g := range e.Granules {
		if !t.has(g) {
			continue
		}
		e.There++
		if !verify || h.flags&unchecked != 0 {
			continue
		}
		at := uint64(g) * uint64(h.granule)
		p := p[:min(uint64(h.granule), h.version.Size-at)]
		if _, err := f.ReadAt(p, int64(h.pages())*block+int64(at)); err != nil || h.sum(g, p) != t.sums[g] {
			e.Bad++
		}
	}
	return nil
}

// Flush removes entries, or all if none is named. It returns how many are gone. Those in use stay. Entries on the disk that the
// index lacks go like others. Other files stay, whatever they are.
func (s *Store) Flush(ids ...uint64) (n int, err error) {
	if _, err = s.adopt(); err != nil {
		return 0, err
	}
	return s.removeAll(ids), nil
}

// removeAll is Flush of entries that are in the index.
func (s *Store) removeAll(ids []uint64) int {
	s.mu.Lock()
	if len(ids) == 0 {
		for id := range s.index.at {
			ids = append(ids, id)
		}
	}
	var graves []grave
	for _, id := range ids {
		if s.index.get(id) != nil && s.open[id] == nil {
			graves = append(graves, s.remove(id))
		}
	}
	s.mu.Unlock()
	for _, g := range graves {
		s.bury(g)
	}
	return len(graves)
}

// adopt takes entries into the index that it lacks though they are on the disk, and returns them. Nobody counts what they take,
// or would ever cull them. Root may have put them there, or a file system that lost a removal.
func (s *Store) adopt() (ids []uint64, err error) {
	all, err := list(s.dir, false)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range all {
		if s.index.get(f.id) != nil {
			continue
		}
		if _, err := os.Lstat(s.file(f.id)); err != nil {
			continue // it was removed since it was listed
		}
		s.index.resize(s.index.use(f.id), f.blocks)
		ids = append(ids, f.id)
	}
	return ids, nil
}

// ErrPinned is what Pin says if pinned entries would take more than their share of Options.Size.
var ErrPinned = errors.New("pinned entries would take more than half of the cache's size")

// Pin says whether an entry is culled. The error Is fs.ErrNotExist if there is none.
func (s *Store) Pin(id uint64, pin bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.index.get(id)
	switch {
	case r == nil:
		return fs.ErrNotExist
	case pin && r.flags&pinned == 0 && s.most > 0 && s.index.pinned+int64(r.blocks) > s.pinMost():
		return ErrPinned
	}
	s.index.pin(r, pin)
	return nil
}

// Cull removes the oldest entries until there is as much room as run, and Size, ask for, and before those that the index
// lacks (see Flush). It returns how many are gone.
func (s *Store) Cull() (n int, err error) {
	ids, err := s.adopt()
	if err != nil {
		return 0, err
	}
	if len(ids) > 0 {
		n = s.removeAll(ids)
	}
	before := s.Count.Culled.Load()
	s.makeRoom()
	return n + int(s.Count.Culled.Load()-before), nil
}
