package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// maxPackUses bounds the packs of which a root says how much of them is used: 65,536 have 2 TiB. Of more, those that waste least are left
// out, and no backup packs these anew.
const maxPackUses = 1 << 16

// maxShared bounds the ranges of objects with several names that are remembered, so that each counts once. Of further ones
// each name counts, and their pack looks better used than it is.
const maxShared = 1 << 16

// PackUse says how much of a pack a snapshot uses. In JSON it is a list of three numbers.
type PackUse struct {
	Number int64 // of the pack
	Len    int64 // bytes
	Used   int64 // of them, by files of the snapshot
}

// MarshalJSON implements json.Marshaler.
func (u PackUse) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]int64{u.Number, u.Len, u.Used})
}

// UnmarshalJSON implements json.Unmarshaler.
func (u *PackUse) UnmarshalJSON(b []byte) error {
	var n [3]int64
	err := json.Unmarshal(b, &n)
	u.Number, u.Len, u.Used = n[0], n[1], n[2]
	return err
}

// checkPackUses returns an error unless uses can be those of a snapshot with so many parts and packs.
func checkPackUses(uses []PackUse, objects int64) error {
	if len(uses) > maxPackUses {
		return fmt.Errorf("the use of %d packs", len(uses))
	}
	for _, u := range uses {
		if u.Number < 0 || u.Number >= objects || u.Len <= 0 || u.Len > maxPack || u.Used < 0 || u.Used > u.Len {
			return errors.New("a use of a pack that cannot be")
		}
	}
	return nil
}

// PackUses says how much of each pack the snapshot uses, in the order of their numbers. One that was made before this was noted says nothing.
func (s *Snapshot) PackUses() []PackUse { return s.uses }

// packUses counts what a snapshot uses of its packs. sink.mu guards it.
type packUses struct {
	of     map[int64]*PackUse
	shared map[[2]int64]struct{} // pack and offset of ranges that may be met again
}

func newPackUses() packUses {
	return packUses{of: make(map[int64]*PackUse), shared: make(map[[2]int64]struct{})}
}

// get is the use of a pack.
func (p *packUses) get(number int64) *PackUse {
	u := p.of[number]
	if u == nil {
		u = &PackUse{Number: number}
		p.of[number] = u
	}
	return u
}

// packed notes how long a pack is.
func (s *sink) packed(number, length int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses.get(number).Len = length
}

// use notes that a file is added that has c for its content. linked says that it has several names.
func (s *sink) use(c *Content, linked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range c.Pieces {
		p := &c.Pieces[i]
		if p.Pack == nil {
			continue
		}
		at := [2]int64{*p.Pack, p.At}
		if _, met := s.uses.shared[at]; met {
			continue
		}
		if linked && len(s.uses.shared) < maxShared {
			s.uses.shared[at] = struct{}{}
		}
		s.uses.get(at[0]).Used += p.stored()
	}
}

// used returns how much of each pack is used, and lets go of the packs that nothing is in: a snapshot that names a pack keeps it from
// being pruned.
func (s *sink) used(sums []object.Sum) []PackUse {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []PackUse
	for _, number := range slices.Sorted(maps.Keys(s.uses.of)) {
		u := *s.uses.of[number]
		if u.Used == 0 {
			sums[number] = object.Sum{}
			continue
		}
		if u.Used = min(u.Used, u.Len); u.Used > 0 {
			all = append(all, u)
		}
	}
	if len(all) > maxPackUses {
		slices.SortStableFunc(all, func(a, b PackUse) int { return cmp.Compare(b.Len-b.Used, a.Len-a.Used) })
		all = all[:maxPackUses]
		slices.SortFunc(all, func(a, b PackUse) int { return cmp.Compare(a.Number, b.Number) })
	}
	return all
}

// denseShare is how much of a pack has to be used for [Writer.Repack] to read it by blocks: one part of so many. So at most so many times
// what is copied is read. Of others each file is read by itself.
const denseShare = 4

// dense returns how long a pack is, and whether so much of it is used that it is to be read by blocks.
func (s *Snapshot) dense(number int64) (length int64, ok bool) {
	i, ok := slices.BinarySearchFunc(s.uses, number, func(u PackUse, number int64) int { return cmp.Compare(u.Number, number) })
	if !ok || s.uses[i].Used < s.uses[i].Len/denseShare {
		return 0, false
	}
	return s.uses[i].Len, true
}

// Repack copies what an entry of an earlier snapshot, in the same store, has in packs to a pack of this one. It is in the place of
// [Writer.Reuse]. The bytes are copied as they are stored, and compared with their sum: what is damaged is a [DamagedError]. Neighbours in a pack
// are read together.
func (w *Writer) Repack(ctx context.Context, s *Snapshot, e *Entry) error {
	pieces := slices.Clone(e.Content.Pieces)
	for i := range pieces {
		p := &pieces[i]
		if p.Pack == nil {
			continue
		}
		sum, err := s.numbered(ctx, *p.Pack)
		if err != nil {
			return err
		}
		var stored []byte
		if length, ok := s.dense(*p.Pack); ok {
			stored, err = s.get.near(ctx, object.ContentKey(sum), length, p)
		} else {
			stored, err = s.get.stored(ctx, object.ContentKey(sum), p)
		}
		if err != nil {
			return err
		}
		if *p, err = w.packs.append(ctx, stored, *p); err != nil {
			return err
		}
	}
	e.Content.Pieces = pieces
	return nil
}
