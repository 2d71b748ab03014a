package upkeep

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
)

// Check looks whether the snapshots and checkpoints of a store can be read: each root, all of each manifest, and by a listing whether each object is
// there that they need, of the right size. With o.ReadData objects are read as well. What is damaged is no error of Check: see
// CheckSummary.Damaged. err is why it could not be found out. A caller that does not keep prunes away meanwhile, by a lease, may be told that
// something is missing which no snapshot needs any more.
func Check(ctx context.Context, store object.Store, o CheckOptions) (sum CheckSummary, err error) {
	if math.IsNaN(o.ReadData) || o.ReadData < 0 || o.ReadData > 1 {
		return sum, fmt.Errorf("a part of %v to be read: give 0 to 1", o.ReadData)
	}
	c := &check{store: store, o: &o, sum: &sum, bad: newDamages(), hurt: make(map[string]struct{}), ranges: roundRefs}
	return sum, c.run(ctx)
}

// maxRoots bounds the snapshots that are checked, as they are listed before. It is what package snapshot bounds its lists by.
const maxRoots = 1 << 16

// check is a Check under way.
type check struct {
	store  object.Store
	o      *CheckOptions
	sum    *CheckSummary
	bad    *damages
	roots  []snapshot.Ref
	hurt   map[string]struct{} // snapshots
	ranges int                 // of a round of reading
}

func (c *check) run(ctx context.Context) (err error) {
	if err := c.list(ctx); err != nil {
		return err
	}
	if err := c.objects(ctx); err != nil {
		return err
	}
	if c.o.ReadData > 0 {
		if err := c.data(ctx); err != nil {
			return err
		}
	}
	return c.tell(ctx)
}

// list lists the roots. What can be none is damage, and so is a directory of roots that cannot be listed.
func (c *check) list(ctx context.Context) error {
	for r, err := range snapshot.EachRoot(ctx, c.store, "") {
		damage, junk := errors.AsType[*snapshot.DamagedError](err)
		switch {
		case junk:
			c.bad.found(damage.Key, problemOf(err), damage.Err)
			if _, hidden := errors.AsType[*object.HiddenError](err); hidden {
				c.hurtAll(c.bad.of[damage.Key], r.Text())
			}
		case err != nil:
			return err
		case len(c.roots) == maxRoots:
			return fmt.Errorf("the store has more than %d snapshots", maxRoots)
		default:
			c.roots = append(c.roots, r)
		}
	}
	return nil
}

// each goes through all snapshots. first has them counted, and what is damaged in them noted.
func (c *check) each(ctx context.Context, first bool, o snapshot.UsesOptions) error {
	for i := range c.roots {
		r := &c.roots[i]
		s, err := snapshot.Open(ctx, c.store, *r)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, object.ErrNotExist):
			continue // it was forgotten, or its backup is done
		case snapshot.IsOwn(err):
			if first {
				c.bad.found(r.Key(), rootProblem(err), err)
			}
			continue
		case err != nil:
			return err
		}
		own := o
		own.Damaged = func(at *snapshot.Site, err error) error {
			if o.Damaged != nil {
				return o.Damaged(at, err)
			}
			if key, why := snapshot.OfObject(err); first {
				c.bad.found(key, problemOf(err), why)
			}
			return nil
		}
		c.bad.at = r.Text()
		names, err := s.Uses(ctx, own)
		if err != nil {
			return err
		}
		if !first {
			continue
		}
		c.sum.Names += names
		c.o.Progress.Add(progress.Files, names)
		if r.Partial {
			c.sum.Partials++
		} else {
			c.sum.Snapshots++
		}
	}
	return nil
}

// rootProblem says what is wrong with a root that cannot be opened.
func rootProblem(err error) Problem {
	if errors.Is(err, snapshot.ErrDamaged) || errors.Is(err, snapshot.ErrVersion) {
		return Format
	}
	return Unreadable
}

// problemOf says what is wrong with the object that an error is about.
func problemOf(err error) Problem {
	switch _, err = snapshot.OfObject(err); {
	case errors.Is(err, object.ErrNotExist):
		return Missing
	case errors.Is(err, object.ErrRange):
		return Size
	case errors.Is(err, object.ErrCorrupted), errors.Is(err, snapshot.ErrSum):
		return Content
	case object.IsOwn(err) && !errors.Is(err, object.ErrForeign):
		return Unreadable
	}
	return Format
}

// objects compares what snapshots need with what the store lists.
func (c *check) objects(ctx context.Context) error {
	needs := newNeeds(roundObjects)
	all := &listing{store: c.store, around: func(key string, err error) { c.bad.found(key, problemOf(err), err) }}
	for first := true; first || needs.next(); first = false {
		err := c.each(ctx, first, snapshot.UsesOptions{All: first, Use: func(u *snapshot.Use, _ *snapshot.Site) error {
			if u.Kind == snapshot.UseNumber {
				needs.add(need{u.Sum, unneeded})
				return nil
			}
			size := u.Len
			if !u.Whole || size < 0 {
				size = -1 - max(0, u.At+u.Len)
			}
			needs.add(need{u.Sum, size})
			return nil
		}})
		if err != nil {
			return err
		}
		needs.sort()
		if err := all.join(ctx, needs, c.have, func(n *need) error { return c.lack(ctx, n) }); err != nil {
			return err
		}
	}
	return nil
}

// unneeded is the size of what has a number, and may be in no use.
const unneeded = -1

// have compares an object that is listed with what is needed of it.
func (c *check) have(info *object.Info, n *need) error {
	if n == nil {
		c.sum.Unused++
		c.sum.UnusedBytes += uint64(info.Size)
		return nil
	}
	c.sum.Objects++
	c.sum.Bytes += uint64(info.Size)
	switch {
	case n.size >= 0 && info.Size != n.size:
		c.bad.short(info, fmt.Errorf("it has %d bytes, not %d", info.Size, n.size))
	case n.size < 0 && info.Size < -1-n.size:
		c.bad.short(info, fmt.Errorf("it has %d bytes, and at least %d are needed", info.Size, -1-n.size))
	}
	return nil
}

// lack notes an object that is not listed, if it cannot be found either.
func (c *check) lack(ctx context.Context, n *need) error {
	key := object.ContentKey(n.sum)
	info, err := c.store.Stat(ctx, key)
	switch {
	case err == nil:
		return c.have(&info, n)
	case errors.Is(err, object.ErrNotExist), object.IsOwn(err) && ctx.Err() == nil:
		c.bad.found(key, problemOf(err), err)
		return nil
	}
	return err
}

// sampled returns which sums are in the sample: they are spread evenly, so a range of them is one by chance.
func (c *check) sampled() (func(*object.Sum) bool, error) {
	if c.o.ReadData == 1 {
		return func(*object.Sum) bool { return true }, nil
	}
	var b [8]byte
	if _, err := io.ReadFull(c.o.Rand, b[:]); err != nil {
		return nil, fmt.Errorf("chance: %w", err)
	}
	from, part := binary.BigEndian.Uint64(b[:]), uint64(c.o.ReadData*(1<<63))*2
	return func(sum *object.Sum) bool { return binary.BigEndian.Uint64(sum[:])-from < part }, nil
}
