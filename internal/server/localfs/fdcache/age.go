//go:build linux

package fdcache

// age counts one more look of the sweeper at each descriptor of the shard. It takes those
// out that have been idle for long enough (closable), and pins the other idle ones
// (rested). dirty says that one is to be synced.
func (s *shard) age() (closable, rested []*Desc, dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.ring) - 1; i >= 0; i-- {
		d := s.ring[i]
		if d.pins.Load() != 0 || d.used.Swap(false) {
			d.idle.Store(0)
			continue
		}
		looks, most := d.idle.Add(1), int32(IdleOther)
		if d.Use == Write {
			most = IdleWriter
		}
		dirt := d.Dirty.Load()
		dirty = dirty || dirt && looks >= IdleDirty
		// As in take: only a call that cleans pins without the shard's lock.
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

// Age counts one more look of the sweeper at each descriptor. For each shard it calls do
// with two lists, unless both are empty: do closes those in closable (ShutIdle), and unpins
// those in rested. dirty says that PinAged would find one.
func (c *Cache) Age(do func(closable, rested []*Desc)) (dirty bool) {
	for i := range c.shards {
		closable, rested, aged := c.shards[i].age()
		dirty = dirty || aged
		if len(closable)+len(rested) > 0 {
			do(closable, rested)
		}
	}
	return dirty
}

// ShutIdle closes what Age has let go of.
func (c *Cache) ShutIdle(d *Desc) {
	c.idled.Add(1)
	c.shut(d)
}

// Empty reports whether nothing is in the cache.
func (c *Cache) Empty() bool {
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
