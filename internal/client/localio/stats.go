package localio

import (
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// Stats say how files are read and written, and how often.
type Stats struct {
	State  string // "local"; "remote"; "off", once closed
	Why    string // why files are not local; in state local, why the most recent remote file is not
	Socket string // the server's, in state local
	Files  int    // open descriptors

	Opens        uint64 // descriptors that the server has handed out
	Reads        uint64 // by descriptors
	Writes       uint64
	Commits      uint64
	BytesRead    uint64
	BytesWritten uint64
	Fallbacks    uint64 // reads, writes and commits over the network
	Revoked      uint64 // descriptors that the server has revoked
	Handshakes   uint64 // sessions that were begun
	Verifiers    uint64 // changes of the verifier, of an object or of all
}

// counters are the source of Stats. They lack what open descriptors have done.
type counters struct {
	opens, commits, fallbacks, revoked, handshakes, verifiers atomic.Uint64
	reads, writes, bytesRead, bytesWritten                    uint64 // shared.mu
}

// add adds the counters of g. shared.mu is held.
func (c *counters) add(g *grant) {
	if g.key.access == vfs.ShareRead {
		c.reads += g.ops.Load()
		c.bytesRead += g.bytes.Load()
	} else {
		c.writes += g.ops.Load()
		c.bytesWritten += g.bytes.Load()
	}
}

// Stats returns the counters since New. It may be called at any time.
func (f *FS) Stats() Stats {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{
		State: "remote", Why: s.why, Files: len(s.open),
		Opens: s.count.opens.Load(), Commits: s.count.commits.Load(), Fallbacks: s.count.fallbacks.Load(),
		Revoked: s.count.revoked.Load(), Handshakes: s.count.handshakes.Load(), Verifiers: s.count.verifiers.Load(),
	}
	if l := s.link.Load(); s.over {
		st.State, st.Why = "off", "closed"
	} else if l != nil {
		st.State, st.Why, st.Socket = "local", s.some, l.socket
	}
	c := counters{reads: s.count.reads, writes: s.count.writes, bytesRead: s.count.bytesRead, bytesWritten: s.count.bytesWritten}
	for g := range s.open {
		c.add(g)
	}
	st.Reads, st.Writes, st.BytesRead, st.BytesWritten = c.reads, c.writes, c.bytesRead, c.bytesWritten
	return st
}
