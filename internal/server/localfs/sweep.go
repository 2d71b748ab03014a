//go:build linux

package localfs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// What happens to descriptors that nobody uses.
const (
	// sweepEvery is how often the cache is looked through, while anything is in it. All
	// ages here are counted in such looks, which cost a call that uses a descriptor nothing.
	sweepEvery = time.Second
	// idleWriter is after how many looks a clean descriptor that can write is closed: a
	// program that was uploaded can be executed then, and local programs hear that the
	// file was closed (IN_CLOSE_WRITE). It is what Linux nfsd takes.
	idleWriter = 2
	// idleOther is the same for all other descriptors. It frees the blocks of files that
	// local programs have removed and nobody has looked at since.
	idleOther = 5
	// idleDirty is after how many a dirty one is synced, for clients that have left
	// without a COMMIT.
	idleDirty = 5
	// maxAged is how many are synced after one look. The others are at the next.
	maxAged = 64
)

// sweeper closes descriptors that nobody uses any more. While there are some, a timer
// runs; there is a goroutine only while it looks.
type sweeper struct {
	h        *host
	on       atomic.Bool // the timer runs, or it looks
	cleaning atomic.Bool // what is dirty and idle is being synced

	mu      sync.Mutex
	timer   *time.Timer     // nil: never begun
	ctx     context.Context // of all that it waits for
	stop    context.CancelFunc
	closed  bool
	running sync.WaitGroup
}

// wake makes sure that what was put into the cache just now is looked at.
func (s *sweeper) wake() {
	if s.on.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.on.Swap(true) {
		return
	}
	if s.timer == nil {
		s.ctx, s.stop = context.WithCancel(context.Background())
		s.timer = time.AfterFunc(sweepEvery, s.tick)
		return
	}
	s.timer.Reset(sweepEvery)
}

// tick is what the timer does.
func (s *sweeper) tick() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	// A call puts something into the cache before it asks whether anybody looks.
	s.on.Store(false)
	if !s.closed && s.more() && !s.on.Swap(true) {
		s.timer.Reset(sweepEvery)
	}
}

// more reports whether there is something to look at.
func (s *sweeper) more() bool {
	return !s.h.fds.empty() || s.h.mapped != nil && s.h.mapped.waits()
}

// close ends the looking, and waits until it has ended.
func (s *sweeper) close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
		s.stop()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// look closes what was idle for long enough, and has synced what would be if it were
// clean. To close a file may wait until its blocks are free: that takes a place, if
// one is to be had before the end.
func (s *sweeper) look() {
	v := &FS{host: s.h, who: s.h.creds.identityOf(nil)}
	c := s.h.fds
	aged := false
	for i := range c.shards {
		closable, rested, dirty := c.shards[i].age()
		aged = aged || dirty
		if len(closable)+len(rested) == 0 {
			continue
		}
		entered := v.enter(s.ctx, classMeta) == nil
		for _, d := range closable {
			c.idled.Add(1)
			c.shut(d)
		}
		for _, d := range rested {
			v.reap(d)
			c.unpin(d)
		}
		if entered {
			v.end(classMeta)
		}
	}
	if m := s.h.mapped; m != nil && m.waits() && v.enter(s.ctx, classMeta) == nil {
		m.sweepOn()
		v.end(classMeta)
	}
	if aged && !s.cleaning.Swap(true) {
		s.running.Go(func() {
			defer s.cleaning.Store(false)
			s.clean(v)
		})
	}
}

// reap forgets d, which nobody has used for a while, if a local program has removed it,
// and wants its blocks back.
func (v *FS) reap(d *desc) {
	var st stat
	if st.statFD(d.fd) == nil && st.Nlink == 0 {
		_ = v.gone(d.key.h) // it is nobody's error
	}
}

// clean syncs what is dirty and was idle for long enough. An error changes the write
// verifier, as that of any sync.
func (s *sweeper) clean(v *FS) {
	for range maxAged {
		d := v.fds.dirt.pinAged()
		if d == nil {
			return
		}
		v.counts.cleaned.Add(1)
		err := v.syncDesc(s.ctx, d, false)
		v.release(d)
		if err != nil {
			return // the gate is full, or the disk has failed: both may be over at the next look
		}
	}
}

// age makes the descriptors of the shard a look older. It lets go of those in closable,
// which have been idle for long enough, and pins those in rested, which are idle. dirty
// says that one is to be synced.
func (s *fdShard) age() (closable, rested []*desc, dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.ring) - 1; i >= 0; i-- {
		d := s.ring[i]
		if d.pins.Load() != 0 || d.used.Swap(false) {
			d.idle.Store(0)
			continue
		}
		looks, most := d.idle.Add(1), int32(idleOther)
		if d.key.use == useWrite {
			most = idleWriter
		}
		dirt := d.dirty.Load()
		dirty = dirty || dirt && looks >= idleDirty
		// A call that pins has the lock of the shard, but for those that clean: see take.
		if looks >= most && !dirt {
			if d.pins.CompareAndSwap(0, deadBit) {
				s.remove(d)
				closable = append(closable, d)
			}
		} else if d.pins.CompareAndSwap(0, 1) {
			rested = append(rested, d)
		}
	}
	return closable, rested, dirty
}

// empty reports whether nothing is in the cache.
func (c *fdCache) empty() bool {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n := len(s.ring)
		s.mu.Unlock()
		if n > 0 {
			return false
		}
	}
	return true
}

// pinAged is pinOldest for those that were idle for so long that they are to be synced.
func (l *dirt) pinAged() *desc {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := l.oldest; d != nil; d = d.newer {
		if d.idle.Load() >= idleDirty && d.pinAgain() {
			l.toBack(d)
			return d
		}
	}
	return nil
}

// cleanOldest makes something that can be closed of what is dirty, for a call that needs a
// descriptor and has a place, in which it waits for the disk. If the file is being synced
// already, it waits for that, and so perhaps for a place in the lane for syncs, where
// nobody waits for anything but the disk.
func (h *host) cleanOldest() bool {
	d := h.fds.dirt.pinOldest()
	if d == nil {
		return false
	}
	defer h.fds.unpin(d)
	h.counts.cleaned.Add(1)
	return h.flights.join(context.Background(), d.key.h, false, func(full bool) error {
		h.counts.syncs.Add(1)
		return h.syncNow(d, full)
	}) == nil
}
