package attrcache

import (
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Times bound how long attributes are believed. Zero: not at all.
type Times struct {
	FileMin, FileMax time.Duration // of everything but directories
	DirMin, DirMax   time.Duration
}

// DefaultTimes are those of nfs(5).
func DefaultTimes() Times {
	return Times{DefaultFileMin, DefaultFileMax, DefaultDirMin, DefaultDirMax}
}

// Names says which results of look-ups are kept (nfs(5), lookupcache).
type Names uint8

// What is kept.
const (
	NamesAll      Names = iota // names that are there, and that are not
	NamesPositive              // names that are there
	NamesNone
)

// Options say what is kept.
type Options struct {
	Times  Times
	Names  Names
	Caller vfs.Caller // of the view that New is given
	// Objects and MaxNames bound what is kept; 0: [DefaultObjects], [DefaultNames].
	Objects, MaxNames int
}

// FS is one caller's view. It has the powers of the FS below but for a few: see [FS.Holds].
type FS struct {
	inner vfs.FS // below
	asked vfs.FS // what answers questions there
	s     *shared
	who   string // the caller, as rights are kept
}

var (
	_ vfs.FS        = (*FS)(nil)
	_ vfs.Unwrapper = (*FS)(nil)
	_ vfs.Keeper    = (*FS)(nil)
)

// shared is what the views have in common. mu guards all but the first two.
type shared struct {
	o    Options
	base time.Time

	mu      sync.Mutex
	seq     uint64 // the last ticket
	epochs  uint64 // the last epoch
	objects lru[vfs.Handle, object]
	names   lru[nameKey, name]
	evicted uint64 // the last change of any object that is forgotten
	floors  floors
	root    vfs.Handle // zero: not known yet
	n       Stats
}

// Stats are counters. Objects and Names are present values, the others only grow.
type Stats struct {
	Objects, Names int
	Hits           uint64 // questions that were answered from what is kept
	Misses         uint64 // questions that went below
}

// Stats returns the counters, which all views have in common.
func (f *FS) Stats() Stats {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.n
	n.Objects, n.Names = len(s.objects.m), len(s.names.m)
	return n
}

// count notes whether a question was answered from what is kept. s.mu is held.
func (s *shared) count(known bool) {
	if known {
		s.n.Hits++
	} else {
		s.n.Misses++
	}
}

// New returns inner, the view of o.Caller, with what it answers kept.
func New(inner vfs.FS, o Options) *FS {
	if o.Objects <= 0 {
		o.Objects = DefaultObjects
	}
	if o.MaxNames <= 0 {
		o.MaxNames = DefaultNames
	}
	s := &shared{o: o, base: time.Now()}
	s.objects.init(o.Objects)
	s.objects.pinned = func(o *object) bool { return o.changing > 0 }
	s.objects.gone = func(o *object) { s.evicted = max(s.evicted, o.changed) }
	s.names.init(o.MaxNames)
	return over(inner, s, &s.o.Caller)
}

func over(inner vfs.FS, s *shared, c *vfs.Caller) *FS {
	return &FS{inner: inner, asked: vfs.Asked(inner), s: s, who: c.Key()}
}

// As returns the view of another caller. What is kept of rights is not shared.
func (f *FS) As(c *vfs.Caller) vfs.FS {
	inner := f.inner.As(c)
	if c == nil {
		c = &f.s.o.Caller
	}
	return over(inner, f.s, c)
}

// Unwrap returns the FS below.
func (f *FS) Unwrap() any { return f.inner }

// Anew implements vfs.Keeper.
func (f *FS) Anew() vfs.FS { return vfs.Anew(f.inner) }
