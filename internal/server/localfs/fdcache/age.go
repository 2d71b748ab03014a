//go:build linux

package fdcache

// age makes the descriptors of the shard a look older. It lets go of those in closable,
// which have been idle for long enough, and pins those in rested, which are idle. dirty
// says that one is to be synced.
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

// age makes everything in the cache a look older. It hands shut and rested of a shard,
// unless both are empty, to do: those in the first were idle for long enough, and are for
// shutIdle; those in the other are idle, and pinned. dirty says that pinAged finds one.
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

// shutIdle closes what age has let go of.
func (c *Cache) ShutIdle(d *Desc) {
	c.idled.Add(1)
	c.shut(d)
}

// empty reports whether nothing is in the cache.
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
