package writeback

import (
	"slices"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/vfs"
)

// state is how far a piece has come.
type state uint8

const (
	queued   state = iota // to be sent
	inFlight              // on its way; its bytes and range do not change
	written               // sent unstable, kept for the case that it is lost
	gone                  // stable, given up, or overwritten
)

// piece is a range of dirty bytes. The node's mutex guards it.
type piece struct {
	off   uint64
	buf   *bufpool.Buffer // buf.B are the bytes
	file  *file           // through which it is sent
	state state
	born  uint64 // the write that it came with; a later one has a larger number
	sent  uint64 // when its WRITE was sent, counted like born
	done  uint64 // when it was written, likewise
	verf  vfs.Verifier
	lost  int // how often the server forgot it
}

func (p *piece) end() uint64 { return p.off + uint64(len(p.buf.B)) }

// span is a range of bytes, [from, to).
type span struct{ from, to uint64 }

// copied is a buffer with a copy of b.
func (s *shared) copied(b []byte) *bufpool.Buffer {
	buf := s.opt.Pool.Get(len(b))
	copy(buf.B, b)
	return buf
}

// newPiece makes a piece of buf, and is an owner of buf from then on. n.mu is held.
func (n *node) newPiece(f *file, buf *bufpool.Buffer, off, born uint64) *piece {
	n.s.charge(n, cap(buf.B))
	return &piece{off: off, buf: buf, file: f, born: born}
}

// append adds b to p, whose buffer doubles if it must. n.mu is held.
func (n *node) append(p *piece, b []byte) {
	size := len(p.buf.B) + len(b)
	if size > cap(p.buf.B) {
		bigger := n.s.opt.Pool.Get(size)
		n.s.charge(n, cap(bigger.B)-cap(p.buf.B))
		bigger.B = append(bigger.B[:0], p.buf.B...)
		p.buf.Release()
		p.buf = bigger
	}
	p.buf.B = append(p.buf.B, b...)
}

// discard frees p, which is no longer among n.pieces. n.mu is held.
func (n *node) discard(p *piece) {
	p.state = gone
	n.s.charge(n, -cap(p.buf.B))
	p.buf.Release()
	n.tails = slices.DeleteFunc(n.tails, func(t *piece) bool { return t == p })
}

// first is the index of the first piece that ends behind off.
func (n *node) first(off uint64) int {
	i, _ := slices.BinarySearchFunc(n.pieces, off, func(p *piece, off uint64) int {
		if p.end() <= off {
			return -1
		}
		return 1
	})
	return i
}

// overlapping lists the pieces that have bytes in [from, to).
func (n *node) overlapping(from, to uint64) []*piece {
	i := n.first(from)
	j := i
	for j < len(n.pieces) && n.pieces[j].off < to {
		j++
	}
	return n.pieces[i:j]
}

// insert adds p at its place. Its range is free.
func (n *node) insert(p *piece) {
	n.pieces = slices.Insert(n.pieces, n.first(p.off), p)
}

// drop takes p out.
func (n *node) drop(p *piece) {
	i := n.first(p.off)
	n.pieces = slices.Delete(n.pieces, i, i+1)
	n.discard(p)
}

// remove drops the pieces for which drop holds.
func (n *node) remove(drop func(*piece) bool) {
	n.pieces = slices.DeleteFunc(n.pieces, func(p *piece) bool {
		if !drop(p) {
			return false
		}
		n.discard(p)
		return true
	})
}

// giveUp drops the pieces for which drop holds, and counts their bytes as lost. The caller has
// left an error with their files, or is about to.
func (n *node) giveUp(drop func(*piece) bool) (lost int) {
	n.remove(func(p *piece) bool {
		if !drop(p) {
			return false
		}
		lost += len(p.buf.B)
		return true
	})
	n.s.count.lost.Add(uint64(lost))
	return lost
}

// cut takes [from, to) away from all pieces. No piece there is in flight.
// n.mu is held.
func (n *node) cut(from, to uint64) {
	i := n.first(from)
	for i < len(n.pieces) && n.pieces[i].off < to {
		p := n.pieces[i]
		if p.off < from && p.end() > to {
			n.split(i, to)
		}
		switch {
		case p.off < from:
			p.buf.B = p.buf.B[:from-p.off]
			i++
		case p.end() > to:
			k := to - p.off
			copy(p.buf.B, p.buf.B[k:])
			p.buf.B, p.off = p.buf.B[:uint64(len(p.buf.B))-k], to
			i++
		default:
			n.pieces = slices.Delete(n.pieces, i, i+1)
			n.discard(p)
		}
	}
}

// split makes what the piece at index i holds behind off a piece of its own, in
// addition.
func (n *node) split(i int, off uint64) {
	p := n.pieces[i]
	right := n.newPiece(p.file, n.s.copied(p.buf.B[off-p.off:]), off, p.born)
	right.state, right.sent, right.done, right.verf, right.lost = p.state, p.sent, p.done, p.verf, p.lost
	n.pieces = slices.Insert(n.pieces, i+1, right)
	if right.state == queued {
		n.ready = append(n.ready, right)
	}
}
