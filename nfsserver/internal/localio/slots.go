package localio

import (
	"slices"

	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

// slot is a word of the page and the file that has it.
type slot struct {
	state      slotState
	generation uint32 // of the file: the word's value while it is valid; never 0
	stop       func() // ends the watch of the file; nil: none yet, or ended
}

// slotState is the state of a slot's file.
type slotState uint8

const (
	stateFree    slotState = iota
	stateOpening           // being opened; the client does not know of it
	stateLost              // revoked before the client knew of it
	stateOpen              // with the client, or on its way
	stateRevoked           // the client was told, or is about to be
	stateEnding            // its watch is being ended
)

// end ends a slot's watch, when its session has ended.
func (sl *slot) end(n *counters) {
	if sl.state == stateOpen || sl.state == stateRevoked {
		n.files.Add(-1)
	}
	if sl.stop != nil {
		sl.stop()
	}
}

// reserve takes a slot for a file that is about to be opened. Its word is valid from now
// on. ok is false if there is no slot.
func (c *client) reserve() (i, generation uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.free)
	if c.gone || n == 0 && len(c.slots) == c.s.o.MaxFiles || !c.s.held.take(c.peer.UID) {
		return 0, 0, false
	}
	if n > 0 {
		i, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.slots = append(c.slots, slot{})
		i = uint32(len(c.slots)) - 1
	}
	sl := &c.slots[i]
	if sl.generation++; sl.generation == 0 {
		sl.generation++
	}
	sl.state = stateOpening
	c.page.Store(int(i)+1, sl.generation)
	return i + 1, sl.generation, true
}

// find returns the slot of that number, counted from 1, or nil if it is not of that
// generation any more. c.mu is held.
func (c *client) find(number, generation uint32) *slot {
	if number == 0 || uint64(number) > uint64(len(c.slots)) {
		return nil
	}
	if sl := &c.slots[number-1]; sl.generation == generation {
		return sl
	}
	return nil
}

// watched notes how the watch of a slot is ended. If the session has ended
// meanwhile, it is ended at once.
func (c *client) watched(number, generation uint32, stop func()) {
	c.mu.Lock()
	sl := c.find(number, generation)
	if sl != nil {
		sl.stop = stop
	}
	c.mu.Unlock()
	if sl == nil {
		stop()
	}
}

// revoke takes a file back. The call that changes the file calls it, and waits only for a
// lock. When it returns, the client's next look at the page shows the revocation; another
// goroutine sends the message.
func (c *client) revoke(number, generation uint32, _ vfs.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sl := c.find(number, generation)
	if sl == nil || sl.state != stateOpening && sl.state != stateOpen {
		return
	}
	c.page.Store(int(number), 0)
	c.s.n.revoked.Add(1)
	if sl.state == stateOpening {
		sl.state = stateLost
		return
	}
	sl.state = stateRevoked
	c.revoked = append(c.revoked, localio.SessionFile{Slot: number, Generation: generation})
	c.wake()
}

// release frees a slot that is in one of those states, and ends its watch. A slot in
// another state is left as it is: a client may close a file that is long gone.
func (c *client) release(number, generation uint32, states ...slotState) {
	c.mu.Lock()
	sl := c.find(number, generation)
	if sl == nil || !slices.Contains(states, sl.state) {
		c.mu.Unlock()
		return
	}
	if sl.state == stateOpen || sl.state == stateRevoked {
		c.s.n.files.Add(-1)
	}
	stop := sl.stop
	sl.state, sl.stop = stateEnding, nil
	c.page.Store(int(number), 0)
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return
	}
	c.slots[number-1].state = stateFree
	c.free = append(c.free, number-1)
	c.s.held.give(c.peer.UID, 1)
}
