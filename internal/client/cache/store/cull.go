package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// admit makes room for n bytes of e, and its file if it has none. It is false if there is no room.
func (s *Store) admit(e *Entry, n int) bool {
	need := int64((n + block - 1) / block)
	if s.broken.Load() || s.full.Load() || !s.spare(need, e.f.Load() == nil) {
		s.Count.Refused.Add(1)
		return false
	}
	ok, err := s.reserve(e, need)
	if err != nil {
		s.fail(err)
	}
	if !ok {
		s.Count.Refused.Add(1)
	}
	return ok
}

// maxRounds bounds how often reserve culls for one piece. At the bound the piece is not kept.
const maxRounds = 8

// reserve counts need blocks for e. Where Size would be exceeded, the oldest entries go first.
func (s *Store) reserve(e *Entry, need int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range maxRounds {
		all := need
		if e.f.Load() == nil {
			all += int64(e.h.pages()) + 1
		}
		if s.over || e.dead.Load() {
			return false, nil
		}
		if s.fits(all) {
			if err := s.create(e); err != nil {
				return false, err
			}
			r := s.index.use(e.id)
			if e.pin {
				s.index.pin(r, true)
			}
			s.index.resize(r, r.blocks+uint32(all))
			if s.fresh += all; s.fresh >= cullBytes/block {
				s.fresh = 0
				s.wake()
			}
			return true, nil
		}
		if s.o.NoCull {
			return false, nil
		}
		graves := s.victims(all)
		s.mu.Unlock()
		for _, g := range graves {
			s.bury(g)
		}
		s.mu.Lock()
		if len(graves) == 0 {
			return false, nil
		}
	}
	return false, nil
}

// fits reports whether so many blocks more are within the bounds. s.mu is held.
func (s *Store) fits(blocks int64) bool {
	return len(s.index.at) < maxEntries && (s.most == 0 || s.index.blocks+s.trash+blocks <= s.most)
}

// create makes the file of e, if it has none. s.mu is held.
func (s *Store) create(e *Entry) error {
	if e.f.Load() != nil {
		return nil
	}
	name := s.file(e.id)
	f, err := s.o.Disk.Create(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = mkdir(s.o.Disk, filepath.Dir(name)); err == nil {
			f, err = s.o.Disk.Create(name)
		}
	}
	if err != nil {
		return err
	}
	e.f.Store(f)
	return nil
}

// pinMost is how many blocks pinned entries may take: those beyond are culled as others are.
func (s *Store) pinMost() int64 { return s.most * pinShare16 / 16 }

// stays reports whether an entry is not to be culled. s.mu is held.
func (s *Store) stays(r *record) bool {
	return r.flags&pinned != 0 && (s.most == 0 || s.index.pinned <= s.pinMost())
}

// victims takes out the oldest entries that are not in use, until need blocks are free, but no more than
// cullBatch. s.mu is held.
func (s *Store) victims(need int64) (graves []grave) {
	x := s.index
	free := int64(0)
	for i, n := x.oldest, len(x.at); i >= 0 && n > 0 && free < need && len(graves) < cullBatch; n-- {
		r := &x.records[i]
		id, next := r.id, r.next
		switch {
		case s.open[id] != nil || s.stays(r):
			x.use(id)
		default:
			g := s.remove(id)
			free += g.blocks
			graves = append(graves, g)
			s.Count.Culled.Add(1)
		}
		i = next
	}
	return graves
}

// spare reports whether the disk has so many blocks, and a file, above what stop leaves to others.
func (s *Store) spare(blocks int64, file bool) bool {
	sp, err := s.o.Space(s.dir)
	if err != nil {
		s.fail(err)
		return false
	}
	l := s.o.Limits
	left := sp.FreeBytes - min(sp.FreeBytes, uint64(blocks)*block)
	switch {
	case under(left, sp.Bytes, l.Bstop):
		s.stop(fmt.Sprintf("less than %d%% of the disk of %s is free (bstop)", l.Bstop, s.dir))
	case file && under(sp.FreeFiles, sp.Files, l.Fstop):
		s.stop(fmt.Sprintf("the disk of %s has room for less than %d%% of its files (fstop)", s.dir, l.Fstop))
	default:
		return true
	}
	return false
}

func (s *Store) stop(why string) {
	s.full.Store(true)
	s.tell("cache: " + why + "; nothing more is kept until there is room")
	s.wake()
}

// under reports whether part is less than percent of all. Where all is 0 there is no bound.
func under(part, all uint64, percent int) bool {
	return all > 0 && float64(part) < float64(all)/100*float64(percent)
}

// cull runs until Close. It looks at the disk whenever something was written, and now and then.
func (s *Store) cull() {
	for {
		timer := time.NewTimer(cullPause)
		select {
		case <-s.end:
			timer.Stop()
			return
		case <-s.kick:
			timer.Stop()
		case <-timer.C:
		}
		if !s.broken.Load() {
			s.makeRoom()
			if err := s.saveStats(); err != nil {
				s.fail(err)
			}
		}
		s.report()
	}
}

// makeRoom culls if the disk is below cull, until it is at run.
func (s *Store) makeRoom() {
	culling := false
	for {
		sp, err := s.o.Space(s.dir)
		if err != nil {
			s.fail(err)
			return
		}
		l := s.o.Limits
		low := under(sp.FreeBytes, sp.Bytes, l.Bcull) || under(sp.FreeFiles, sp.Files, l.Fcull) || s.beyond(spare16)
		high := !under(sp.FreeBytes, sp.Bytes, l.Brun) && !under(sp.FreeFiles, sp.Files, l.Frun) && !s.beyond(2*spare16)
		culling = !s.o.NoCull && !high && (culling || low)
		if !culling || s.cullSome(under(sp.FreeBytes, sp.Bytes, l.Brun) || under(sp.FreeFiles, sp.Files, l.Frun)) == 0 {
			s.full.Store(under(sp.FreeBytes, sp.Bytes, l.Bstop) || under(sp.FreeFiles, sp.Files, l.Fstop))
			return
		}
		select {
		case <-s.end:
			return
		default:
		}
	}
}

// beyond reports whether less than n sixteenths of Size are left.
func (s *Store) beyond(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most > 0 && s.index.blocks > s.most-s.most*n/16
}

// cullSome removes a few of the oldest entries: for the disk, or else as many as are beyond what Size leaves free.
func (s *Store) cullSome(disk bool) int {
	s.mu.Lock()
	need := int64(cullBytes / block)
	if !disk {
		need = min(need, s.index.blocks-(s.most-s.most*2*spare16/16))
	}
	graves := s.victims(need)
	s.mu.Unlock()
	for _, g := range graves {
		s.bury(g)
	}
	return len(graves)
}
