package writeback

import "sync/atomic"

// Stats are counters of an FS and all its views. All but Dirty only
// grow. Bytes are counted as they are sent: again if they are sent again.
type Stats struct {
	Dirty int64 // memory, in bytes, of what is not yet known to be stable

	BytesWritten    uint64 // sent by WRITEs that were answered, those that pass through not counted
	Resent          uint64 // bytes to be sent again because the server's verifier changed
	Retries         uint64 // WRITEs and COMMITs made again after a failure that may pass
	Commits         uint64 // COMMITs that were answered
	VerifierChanges uint64 // seen by files with dirty bytes, each for itself
	BytesLost       uint64 // accepted, and given up: an error has told so
}

// counters are what Stats is made from.
type counters struct {
	written, resent, retries, commits, changes, lost atomic.Uint64
}

// Stats returns the counters since New. It may be called at any time.
func (f *FS) Stats() Stats {
	s := f.s
	return Stats{
		Dirty:           s.dirty.Load(),
		BytesWritten:    s.count.written.Load(),
		Resent:          s.count.resent.Load(),
		Retries:         s.count.retries.Load(),
		Commits:         s.count.commits.Load(),
		VerifierChanges: s.count.changes.Load(),
		BytesLost:       s.count.lost.Load(),
	}
}
