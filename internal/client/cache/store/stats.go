package store

import (
	"encoding/binary"
	"hash/crc32"
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
}

func (c *Counters) all() []*atomic.Uint64 {
	return []*atomic.Uint64{
		&c.Hits, &c.Misses, &c.BytesHit, &c.BytesFilled, &c.Stale, &c.Damaged, &c.BadChecksums, &c.Culled, &c.Refused,
	}
}

// Stats are a Store's figures.
type Stats struct {
	State   string // "on", "full" or "broken"
	Why     string // full or broken: why
	Entries int
	Bytes   int64 // that the entries take
	Size    int64 // that they may take; 0: no bound but the disk's

	Hits, Misses, BytesHit, BytesFilled, Stale, Damaged, BadChecksums, Culled, Refused uint64
}

func (c *Counters) stats() Stats {
	return Stats{
		Hits: c.Hits.Load(), Misses: c.Misses.Load(), BytesHit: c.BytesHit.Load(), BytesFilled: c.BytesFilled.Load(),
		Stale: c.Stale.Load(), Damaged: c.Damaged.Load(), BadChecksums: c.BadChecksums.Load(),
		Culled: c.Culled.Load(), Refused: c.Refused.Load(),
	}
}

// Stats returns the figures, which grow from run to run.
func (s *Store) Stats() Stats {
	out := s.Count.stats()
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
	if err := os.WriteFile(name+".new", s.Count.append(nil), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// loadStats goes on with the counters of earlier runs. Where they are missing or damaged they begin anew.
func (s *Store) loadStats() {
	if b, err := readFile(filepath.Join(s.dir, statsName), maxSmall); err == nil {
		_ = s.Count.parse(b) // begins anew
	}
}
