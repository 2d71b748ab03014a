package index

import "sync"

// cacheBlocks is how many blocks are kept in memory, 4 MiB of them. A block is kept until another
// one takes its place.
const cacheBlocks = 256

// cache has blocks that were read. Look-ups of neighbours find them there.
type cache struct {
	slots [cacheBlocks]struct {
		sync.Mutex
		segment *segment // nil: the slot is empty
		no      uint64
		bytes   []byte
		block   block
	}
}

// with calls use with a block, which stays valid only until use returns. Others that want the same
// block wait meanwhile.
func (c *cache) with(s *segment, no uint64, use func(block)) error {
	slot := &c.slots[(no*0x9E3779B97F4A7C15+s.from)>>56%cacheBlocks]
	slot.Lock()
	defer slot.Unlock()
	if slot.segment != s || slot.no != no {
		if slot.bytes == nil {
			slot.bytes = make([]byte, blockSize)
		}
		slot.segment = nil
		if err := s.read(slot.bytes, no); err != nil {
			return err
		}
		b, err := unseal(slot.bytes, no)
		if err != nil {
			return &damage{s, err}
		}
		slot.segment, slot.no, slot.block = s, no, b
	}
	use(slot.block)
	return nil
}

// clear forgets all blocks. No look-up may be under way.
func (c *cache) clear() {
	for i := range c.slots {
		c.slots[i].segment = nil
	}
}
