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

// Age makes everything in the cache a look older. Of each shard it hands two lists to do,
// unless both are empty. Those in closable were idle for long enough, and are for ShutIdle.
// Those in rested are pinned, for the caller to unpin. dirty says that PinAged would find
// one.
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
