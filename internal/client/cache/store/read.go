package store

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// Has reports whether granule g is there. Its checksum may be wrong all the same.
func (e *Entry) Has(g int) bool {
	return atomic.LoadUint64(&e.table.bits[g>>6])&(1<<(g&63)) != 0
}

// ReadAt copies bytes from off into p, as many as are there in a row, and returns how many: 0 if the first
// is not. off is less than the file's size.
func (e *Entry) ReadAt(p []byte, off uint64) int { return e.read(p, off, true) }

// ReadWarm is ReadAt of granules that were read before, or filled: the disk hardly has to be asked.
func (e *Entry) ReadWarm(p []byte, off uint64) int { return e.read(p, off, false) }

func (e *Entry) read(p []byte, off uint64, cold bool) int {
	f := e.f.Load()
	if f == nil || e.dead.Load() {
		return 0
	}
	end := min(off+uint64(len(p)), e.h.version.Size)
	to, in := off, off // up to where it is there, and in p
	fresh := false
	for g := int(off >> e.shift); to < end; g++ {
		from, next := to, min(end, uint64(g+1)<<e.shift)
		if atomic.LoadUint64(&e.good[g>>6])&(1<<(g&63)) == 0 {
			if !cold || !e.Has(g) || e.s.broken.Load() {
				break
			}
			whole := p[from-off : next-off]
			fresh = e.h.flags&unchecked != 0
			switch {
			case fresh:
				e.mark(g)
			case len(whole) < e.length(g):
				if !e.check(f, g, nil) {
					return e.pull(f, p, off, in, to, false)
				}
			default: // what is compared is what the reader gets
				if in = off + uint64(e.pull(f, p, off, in, to, false)); in < to || !e.check(f, g, whole) {
					return int(in - off)
				}
				in = next
			}
		}
		to = next
	}
	return e.pull(f, p, off, in, to, fresh)
}

// pull reads [in, to) into p, which begins at off and has what is before. It returns how much of p is read then. timed says that
// some of it is read for the first time.
func (e *Entry) pull(f *os.File, p []byte, off, in, to uint64, timed bool) int {
	if in == to {
		return int(in - off)
	}
	var start time.Time
	if timed {
		start = time.Now()
	}
	want := p[in-off : to-off]
	n, err := e.s.o.Disk.ReadAt(f, want, e.data+int64(in))
	if timed {
		e.s.took(n, start)
	}
	if n == len(want) {
		return int(to - off)
	}
	e.short(int(in>>e.shift), int((to-1)>>e.shift), err)
	return int(in - off)
}

// check compares granule g with its checksum, once. One that is wrong is taken out. p is where it is read into, all of it; nil:
// it is read for this alone.
func (e *Entry) check(f *os.File, g int, p []byte) bool {
	if p == nil {
		buf := e.s.buffer()
		defer e.s.checks.Put(buf)
		p = (*buf)[:e.length(g)]
	}
	start := time.Now()
	n, err := e.s.o.Disk.ReadAt(f, p, e.data+int64(g)<<e.shift)
	e.s.took(n, start)
	e.mu.Lock()
	sum := e.table.sums[g]
	e.mu.Unlock()
	if n != len(p) || e.h.sum(g, p) != sum {
		e.short(g, g, err)
		return false
	}
	e.mark(g)
	return true
}

func (s *Store) buffer() *[]byte {
	if b, ok := s.checks.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, MaxGranule)
	return &b
}

// length is how many bytes of the file are in granule g.
func (e *Entry) length(g int) int {
	return int(min(uint64(e.h.granule), e.h.version.Size-uint64(g)<<e.shift))
}

func (e *Entry) mark(g int) { atomic.OrUint64(&e.good[g>>6], 1<<(g&63)) }

// short takes granules out that could not be read, or are not what was written. err is why, if the disk says so.
func (e *Entry) short(from, to int, err error) {
	if e.dead.Load() || errors.Is(err, os.ErrClosed) {
		return
	}
	e.lose(from, to)
	if err != nil && !errors.Is(err, io.EOF) {
		e.s.fail(err)
	}
}

// lose takes granules out, of which the disk has not what was written.
func (e *Entry) lose(from, to int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for g := from; g <= to; g++ {
		if !e.table.has(g) {
			continue
		}
		atomic.AndUint64(&e.table.bits[g>>6], ^uint64(1<<(g&63)))
		atomic.AndUint64(&e.good[g>>6], ^uint64(1<<(g&63)))
		e.there.Add(-1)
		e.unsaved[g/perPage] = true
		e.s.Count.BadChecksums.Add(1)
	}
}
