package v3

import (
	"hash/maphash"
	"slices"
)

// memory remembers the names that a listing has delivered. It has a hash of each of the first maxExact
// names, in the order of delivery. For more names it has landmarks: a ladder of names at even
// distances, and the last ones.
type memory struct {
	seed   maphash.Seed
	seeded bool
	n      int // names

	chunks [][]uint64 // of chunkNames each; nil when there are too many names

	ladder []uint64 // of every stride'th name, starting with the first
	stride int      // a power of two
	ring   []uint64 // of name i at i modulo maxRing; nil as long as there are chunks
}

// hash is a name's hash. Its key is secret, so that no server can make names collide.
func (m *memory) hash(name []byte) uint64 {
	if !m.seeded {
		m.seed, m.seeded = maphash.MakeSeed(), true
	}
	return maphash.Bytes(m.seed, name)
}

func (m *memory) add(hash uint64) {
	if m.ring == nil && m.n == maxExact {
		m.condense()
	}
	if m.ring == nil {
		if m.n%chunkNames == 0 {
			m.chunks = append(m.chunks, make([]uint64, 0, chunkNames))
		}
		last := &m.chunks[len(m.chunks)-1]
		*last = append(*last, hash)
		m.n++
		return
	}
	m.ring[m.n%maxRing] = hash
	if m.n&(m.stride-1) == 0 {
		m.climb(hash)
	}
	m.n++
}

// climb adds a step to the ladder. If the ladder is full, it removes every second step instead; the new
// one would be among those, since maxLadder is even.
func (m *memory) climb(hash uint64) {
	if len(m.ladder) < maxLadder {
		m.ladder = append(m.ladder, hash)
		return
	}
	for i := range maxLadder / 2 {
		m.ladder[i] = m.ladder[2*i]
	}
	m.ladder = append(m.ladder[:maxLadder/2], hash)
	m.stride *= 2
}

// condense replaces the hashes of all names by landmarks.
func (m *memory) condense() {
	m.stride = maxExact / maxLadder
	m.ladder = make([]uint64, 0, maxLadder)
	m.ring = make([]uint64, maxRing)
	for i := range m.n {
		if h := m.at(i); i%m.stride == 0 {
			m.ladder = append(m.ladder, h)
		}
	}
	for i := m.n - maxRing; i < m.n; i++ {
		m.ring[i%maxRing] = m.at(i)
	}
	m.chunks = nil
}

// at is the hash of the i'th name. The chunks must hold it.
func (m *memory) at(i int) uint64 { return m.chunks[i/chunkNames][i%chunkNames] }

// all returns the hashes of all names, ascending; false if only landmarks are known.
func (m *memory) all() ([]uint64, bool) {
	if m.ring != nil {
		return nil, false
	}
	all := slices.Concat(m.chunks...)
	slices.Sort(all)
	return all, true
}

// landmarks returns the hashes of some names, in the order of delivery. From tail on they are the last
// names delivered, without a gap.
func (m *memory) landmarks() (marks []uint64, tail int) {
	last := min(m.n, maxRing)
	rest := m.n - last
	if m.ring == nil {
		for i := 0; i < rest; i += rest/maxLadder + 1 {
			marks = append(marks, m.at(i))
		}
	} else {
		marks = slices.Clone(m.ladder[:min(len(m.ladder), (rest-1)/m.stride+1)])
	}
	tail = len(marks)
	for i := rest; i < m.n; i++ {
		if m.ring == nil {
			marks = append(marks, m.at(i))
		} else {
			marks = append(marks, m.ring[i%maxRing])
		}
	}
	return marks, tail
}

// loopGuard notices that a listing runs in circles of any size, in constant memory: it remembers one
// place, and replaces it by a later one after twice as many steps each time (R. P. Brent, "An improved
// Monte Carlo factorization algorithm", 1980).
type loopGuard struct {
	mark         uint64
	steps, limit uint64
}

// back reports whether cookie, a page's last, is the one remembered.
func (g *loopGuard) back(cookie uint64) bool {
	if cookie == g.mark {
		return true
	}
	if g.steps++; g.steps > g.limit {
		g.mark, g.steps, g.limit = cookie, 0, 2*g.limit+1
	}
	return false
}
