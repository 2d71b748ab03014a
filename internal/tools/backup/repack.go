package backup

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// A pack stays in the store as long as one range of it is needed, so each file that goes leaves waste behind. No pack is changed, as older
// snapshots name its ranges. But a backup may copy a file that has not changed from a pack that is mostly waste to a new one, instead of
// referring to it: then that pack is needed by older snapshots alone, and a prune removes it once these are forgotten. See
// docs/decisions/0101.

const (
	// minRepack is how many bytes one backup may copy from packs to others, and repackShare the part of all that is in packs that it may
	// copy if that is more. Packs beyond that are left to the next backup: those that waste most come first.
	minRepack   = 256 << 20
	repackShare = 16
	// tinyPack is how short a pack is to be joined with others, which is done when they have tinyPack together: what
	// comes out is not tiny, and so is not joined again. Days on which little changes leave such packs.
	tinyPack = 4 << 20
)

// repack is the packing anew of one backup. It is safe for concurrent use.
type repack struct {
	packs map[int64]struct{} // of the base, by number
	left  atomic.Int64       // bytes that may be copied

	files, bytes atomic.Uint64
}

// planRepack chooses packs by what the base uses of them. most is how many bytes may be copied; 0: as the constants say.
func planRepack(uses []snapshot.PackUse, most int64) *repack {
	var chosen, tiny []snapshot.PackUse
	var all, together int64
	for _, u := range uses {
		all += u.Used
		switch {
		case u.Used < u.Len/2:
			chosen = append(chosen, u)
		case u.Len < tinyPack:
			tiny, together = append(tiny, u), together+u.Used
		}
	}
	slices.SortStableFunc(chosen, func(a, b snapshot.PackUse) int {
		return cmp.Compare(a.Used*b.Len, b.Used*a.Len) // the share that is used; lengths are at most 32 MiB
	})
	if together >= tinyPack {
		chosen = append(chosen, tiny...)
	}
	if most == 0 {
		most = max(minRepack, all/repackShare)
	}
	p := &repack{packs: make(map[int64]struct{})}
	p.left.Store(most)
	for _, u := range chosen {
		if most -= u.Used; most < 0 {
			break
		}
		p.packs[u.Number] = struct{}{}
	}
	return p
}

// take reports whether a file of the base is to be packed anew, and counts its bytes. The counts of a base are not trusted: the bound holds
// whatever it says.
func (p *repack) take(c *snapshot.Content) bool {
	if p == nil {
		return false
	}
	pack, n, ok := c.InPack()
	if _, chosen := p.packs[pack]; !ok || !chosen {
		return false
	}
	if p.left.Add(-n) < 0 {
		p.left.Add(n)
		return false
	}
	return true
}

// count counts a file that was packed anew.
func (p *repack) count(c *snapshot.Content) {
	_, n, _ := c.InPack()
	p.files.Add(1)
	p.bytes.Add(uint64(n))
}

// repacked copies the content of a file to a new pack. If that cannot be, as it is damaged, ok is false, and it has to be read.
func (r *run) repacked(ctx context.Context, d *delta.Dir, h vfs.Handle, e *snapshot.Entry, v *verdict) (ok bool, err error) {
	err = r.copyPacked(ctx, v)
	if errors.Is(err, snapshot.ErrDamaged) {
		r.was.tell(v.from, d.Path(e.Name), err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e.Content, e.Extra = v.old.Content, v.old.Extra
	if v.blind {
		if err := r.extra(ctx, h, e); err != nil {
			return false, source(err)
		}
	}
	r.repack.count(&e.Content)
	return true, nil
}

// copyPacked copies what v.old has in packs. With --verify what it has elsewhere is read back.
func (r *run) copyPacked(ctx context.Context, v *verdict) error {
	_, n, _ := v.old.Content.InPack()
	for n > 0 {
		part := r.o.Throttle.Part(int(n))
		if err := r.o.Throttle.Take(ctx, part); err != nil {
			return err
		}
		n -= int64(part)
	}
	if r.proof != nil {
		rest := *v.old
		rest.Content.Pieces = nil
		if err := r.w.Whole(ctx, &rest); err != nil {
			return err
		}
	}
	return r.w.Repack(r.store, v.from.s, v.old)
}
