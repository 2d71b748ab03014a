package rpcfault

import (
	"cmp"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// lane is one direction of a link.
type lane struct {
	link *link
	to   net.Conn

	late    sync.WaitGroup // waiting messages; only the lane's pump adds
	waiting atomic.Int32   // their number

	mu sync.Mutex // held while a message is written, so that none is cut by another
}

// parcel is a message with its faults applied.
type parcel struct {
	bytes  []byte
	copies int
	cut    *firing // the connection ends within the message
	at     int     // after this many bytes of it
	wait   time.Duration
	behind int // how many replies must come before this one
}

// send passes a message on, as the faults will have it.
func (d *lane) send(m *Message, faults []firing) {
	p := d.pack(m, faults)
	if p.wait == 0 && p.behind == 0 {
		d.ship(&p)
		return
	}
	if d.waiting.Add(1) > maxLate {
		d.waiting.Add(-1)
		d.ship(&p)
		return
	}
	var w *parked
	if p.behind > 0 {
		w = d.link.park(p.behind)
	}
	d.late.Add(1)
	go func() {
		defer d.late.Done()
		defer d.waiting.Add(-1)
		if d.rest(&p, w) {
			d.ship(&p)
		}
	}()
}

// rest waits as long as the parcel has to; false: the link was closed meanwhile.
func (d *lane) rest(p *parcel, w *parked) bool {
	t := time.NewTimer(p.wait)
	defer t.Stop()
	var free chan struct{} // nil, which is never closed, if nothing is to come before
	if w != nil {
		free = w.free
	}
	select {
	case <-t.C:
	case <-free:
	case <-d.link.done:
		return false
	}
	return true
}

// pack applies the faults to a message, except for those that it did not live
// to see.
func (d *lane) pack(m *Message, faults []firing) parcel {
	p := parcel{copies: 1}
	size, empty := 0, 0
	for i := range faults {
		f := &faults[i]
		switch f.Kind {
		case EditCall, EditReply:
			f.Edit(m, f.rand)
		case Fragment, FragmentCall:
			size, empty = max(f.Count, 1), min(f.Empty, maxEmpty)
		case DelayCall, DelayReply:
			p.wait += f.Wait + time.Duration(f.rand.IntN(max(int(f.Jitter), 1)))
		case Reorder:
			p.wait += cmp.Or(f.Wait, DefaultReorderWait)
			p.behind = max(p.behind, f.Count, 1)
		case DuplicateCall, DuplicateReply:
			p.copies += max(f.Count, 1)
		case CutInCall, CutInReply:
			p.cut = f
			continue // it is counted when it is done
		}
		d.link.p.injected(f.Kind)
	}
	p.bytes = appendRecord(make([]byte, 0, len(m.Record)+markBytes), m.Record, size, empty, m.Claim)
	if p.cut != nil {
		if p.at = min(p.cut.At, len(p.bytes)); p.at < 0 {
			p.at = p.cut.rand.IntN(len(p.bytes))
		}
	}
	return p
}

// ship writes a parcel. An error ends the link.
func (d *lane) ship(p *parcel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.cut != nil {
		d.link.p.injected(p.cut.Kind)
		_, _ = d.to.Write(p.bytes[:p.at]) // the connection ends here in any case
		d.link.close(p.cut.Reset)
		return
	}
	for range p.copies {
		if _, err := d.to.Write(p.bytes); err != nil {
			d.link.close(false)
			return
		}
	}
	if d == &d.link.toClient {
		d.link.overtaken()
	}
}

func (d *lane) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, ok := d.to.(interface{ CloseWrite() error }); ok && c.CloseWrite() == nil {
		return
	}
	d.link.close(false)
}
