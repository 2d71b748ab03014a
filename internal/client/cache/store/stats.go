package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Counters count over all runs.
type Counters struct {
	Hits         atomic.Uint64 // reads that were answered from here
	Misses       atomic.Uint64 // reads that went to the server
	BytesHit     atomic.Uint64
	BytesFilled  atomic.Uint64 // written
	Stale        atomic.Uint64 // entries of which the server had another version
	Damaged      atomic.Uint64 // entries whose header or table was not whole
	BadChecksums atomic.Uint64 // granules that were not what was written
	Culled       atomic.Uint64 // entries that were removed to make room
	Refused      atomic.Uint64 // pieces for which there was no room
	Bypassed     atomic.Uint64 // of the misses, reads of what may be there, as the server is quicker
}

func (c *Counters) all() []*atomic.Uint64 {
	return []*atomic.Uint64{
		&c.Hits, &c.Misses, &c.BytesHit, &c.BytesFilled, &c.Stale, &c.Damaged, &c.BadChecksums, &c.Culled, &c.Refused, &c.Bypassed,
	}
}

// Counts are what Counters have counted, by the names that JSON has for them.
type Counts struct {
	Hits         uint64 `json:"hits"`
	Misses       uint64 `json:"misses"`
	BytesHit     uint64 `json:"bytes_hit"`
	BytesFilled  uint64 `json:"bytes_filled"`
	Stale        uint64 `json:"stale"`
	Damaged      uint64 `json:"damaged"`
	BadChecksums uint64 `json:"bad_checksums"`
	Culled       uint64 `json:"culled"`
	Refused      uint64 `json:"refused"`
	Bypassed     uint64 `json:"bypassed"`
}

// Stats are a Store's figures: see [Counters] for those that count.
type Stats struct {
	State   string `json:"state"`         // "on", "full" or "broken"
	Why     string `json:"why,omitempty"` // full or broken: why
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"` // that the entries take
	Size    int64  `json:"size"`  // that they may take; 0: no bound but the disk's
	Counts
}

func (c *Counters) counts() Counts {
	return Counts{
		Hits: c.Hits.Load(), Misses: c.Misses.Load(), BytesHit: c.BytesHit.Load(), BytesFilled: c.BytesFilled.Load(),
		Stale: c.Stale.Load(), Damaged: c.Damaged.Load(), BadChecksums: c.BadChecksums.Load(),
		Culled: c.Culled.Load(), Refused: c.Refused.Load(), Bypassed: c.Bypassed.Load(),
	}
}

// Stats returns the figures, which grow from run to run.
func (s *Store) Stats() Stats {
	out := Stats{Counts: s.Count.counts()}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.State, out.Entries, out.Bytes, out.Size = "on", len(s.index.at), s.index.blocks*block, s.o.Size
	switch {
	case s.broken.Load():
		out.State, out.Why = "broken", s.why
	case s.full.Load():
		out.State, out.Why = "full", s.why
	}
	return out
}

const (
	statsMagic   = "nfsbox-s"
	statsVersion = 1
)

func (c *Counters) append(b []byte) []byte {
	b = append(b, statsMagic...)
	b = binary.BigEndian.AppendUint32(b, statsVersion)
	for _, n := range c.all() {
		b = binary.BigEndian.AppendUint64(b, n.Load())
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parse reads what append has written. Of anything else nothing is taken.
func (c *Counters) parse(b []byte) error {
	all := c.all()
	if len(b) != 8+4+8*len(all)+4 || string(b[:8]) != statsMagic || binary.BigEndian.Uint32(b[8:]) != statsVersion ||
		binary.BigEndian.Uint32(b[len(b)-4:]) != crc32.Checksum(b[:len(b)-4], castagnoli) {
		return errDamaged
	}
	for i, n := range all {
		n.Store(binary.BigEndian.Uint64(b[12+8*i:]))
	}
	return nil
}

func (s *Store) saveStats() error {
	name := filepath.Join(s.dir, statsName)
	return replace(s.o.Disk, name, s.Count.append(nil), false)
}

// loadStats goes on with the counters of earlier runs. Where they are missing or damaged they begin anew.
func (s *Store) loadStats() {
	if b, err := readFile(filepath.Join(s.dir, statsName), maxSmall); err == nil {
		_ = s.Count.parse(b) // begins anew
	}
}

// report writes the figures to Options.StatsFile, for whoever watches them. What goes wrong there is told, and is
// nothing to the cache.
func (s *Store) report() {
	name := s.o.StatsFile
	if name == "" {
		return
	}
	b, err := json.Marshal(struct {
		Dir string `json:"dir"`
		Stats
	}{s.dir, s.Stats()})
	if err == nil {
		err = publish(name, append(b, '\n'))
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err // the path is of a temporary file
	}
	if err != nil {
		s.Note("cache: statsfile " + name + ": " + err.Error())
	}
}

// publish replaces a file, which all may read. Others may be able to write to its directory: the name that it has
// until it is whole can be guessed by nobody.
func publish(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".nfsbox-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
