package rpcfault

import (
	"encoding/binary"

	"github.com/nfsbox/nfsbox/internal/testkit/sim"
)

// Message is a call or a reply in flight.
type Message struct {
	Head
	// Record is the message without its marks. An Edit may change it, and its
	// length.
	Record []byte
	// Claim is what the record's last mark says of its length; negative: the
	// truth.
	Claim int
}

// Edit changes a message. It has a random source of its own: the same seed makes the same change.
type Edit func(m *Message, r *sim.Rand)

// word returns the four bytes at off behind the head, or nil if they are not there.
func (m *Message) word(off int) []byte {
	if at := m.Body + off; off >= 0 && at+4 <= len(m.Record) {
		return m.Record[at : at+4]
	}
	return nil
}

// WrongXID gives the message another number.
func WrongXID(m *Message, r *sim.Rand) {
	if len(m.Record) >= 4 {
		x := binary.BigEndian.Uint32(m.Record)
		binary.BigEndian.PutUint32(m.Record, x+1+uint32(r.IntN(1<<30)))
	}
}

// FlipHead turns one bit of the head around.
func FlipHead(m *Message, r *sim.Rand) { flip(m.Record[:min(m.Body, len(m.Record))], r) }

// FlipBody turns one bit of the arguments or results around.
func FlipBody(m *Message, r *sim.Rand) { flip(m.Record[min(m.Body, len(m.Record)):], r) }

// FlipAny turns one bit of the message around.
func FlipAny(m *Message, r *sim.Rand) { flip(m.Record, r) }

func flip(b []byte, r *sim.Rand) {
	if len(b) > 0 {
		bit := r.IntN(8 * len(b))
		b[bit/8] ^= 1 << (bit % 8)
	}
}

// Truncate ends the record keep bytes behind the head, or anywhere if keep is
// negative. Its mark is true.
func Truncate(keep int) Edit {
	return func(m *Message, r *sim.Rand) {
		at := m.Body + keep
		if keep < 0 {
			at = r.IntN(max(len(m.Record), 1))
		}
		m.Record = m.Record[:min(at, len(m.Record))]
	}
}

// Extend appends n bytes of chance to the record. Its mark is true.
func Extend(n int) Edit {
	return func(m *Message, r *sim.Rand) {
		more := make([]byte, n)
		r.Fill(more)
		m.Record = append(m.Record, more...)
	}
}

// Overstate makes the record's mark say n bytes more than there are, so that
// what comes behind it is taken for a part of it. A negative n makes it less.
func Overstate(n int) Edit {
	return func(m *Message, _ *sim.Rand) { m.Claim = max(len(m.Record)+n, 0) }
}

// SetWord writes v at off behind the head: a length, a count, a status.
func SetWord(off int, v uint32) Edit {
	return func(m *Message, _ *sim.Rand) {
		if w := m.word(off); w != nil {
			binary.BigEndian.PutUint32(w, v)
		}
	}
}
