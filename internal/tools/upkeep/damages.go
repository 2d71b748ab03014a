package upkeep

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
)

const (
	// maxDamages bounds the damaged objects that are told with what they hurt. Further ones are counted.
	maxDamages = 4096
	// maxRanges bounds the damaged ranges of an object that are told apart. With more, all that uses the object is hurt.
	maxRanges = 1 << 12
)

// damages are the objects that are damaged. It is safe for concurrent use until they are told.
type damages struct {
	mu   sync.Mutex
	of   map[string]*damage
	more uint64 // beyond maxDamages, perhaps some of them more than once
	at   string // the snapshot that is gone through
}

// damage is a damaged object, and which of its bytes are concerned.
type damage struct {
	Damage
	all    bool  // all bytes
	length int64 // bytes behind that are missing; -1: none are
	ranges map[[2]int64]struct{}
	last   uint64 // the name that was hurt last, and in which snapshot
	in     string
}

func newDamages() *damages { return &damages{of: make(map[string]*damage)} }

// get is the damage of an object, a new one if it has none; nil if there are too many.
func (d *damages) get(key string, problem Problem, err error) *damage {
	if x := d.of[key]; x != nil {
		return x
	}
	if len(d.of) >= maxDamages {
		d.more++
		return nil
	}
	x := &damage{Damage: Damage{Object: key, Problem: problem, Message: object.About(key, err).Error()}, length: -1, ranges: make(map[[2]int64]struct{})}
	d.of[key] = x
	return x
}

// found notes that an object is damaged, all of it.
func (d *damages) found(key string, problem Problem, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.get(key, problem, err); x != nil {
		x.all = true
	}
}

// short notes that an object has not the length that is needed.
func (d *damages) short(info *object.Info, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.get(info.Key, Size, err); x != nil && x.length < 0 {
		x.length = info.Size
	}
}

// part notes that a range of an object is damaged; of nil none that is needed, as far as is known.
func (d *damages) part(key string, problem Problem, err error, r *ref) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.get(key, problem, err)
	if x == nil || r == nil {
		return
	}
	if x.ranges[[2]int64{int64(r.at), int64(r.n)}] = struct{}{}; len(x.ranges) > maxRanges {
		x.all = true
	}
}

// known reports whether all of an object is damaged.
func (d *damages) known(sum object.Sum) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.of[object.ContentKey(sum)]
	return x != nil && x.all
}

// read counts what was read.
func (d *damages) read(n int64, sum *CheckSummary) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum.ReadObjects++
	sum.ReadBytes += uint64(n)
}

// hits reports whether a use is hurt.
func (x *damage) hits(u *snapshot.Use) bool {
	if x.all {
		return true
	}
	if x.length >= 0 && (u.Whole || u.At+u.Len > x.length) {
		return true
	}
	_, ok := x.ranges[[2]int64{u.At, u.Len}]
	return ok
}

// hurt adds what is hurt, once.
func (x *damage) hurt(in string, at *snapshot.Site, sum *CheckSummary) {
	if x.in == in && x.last == at.Names {
		return
	}
	x.in, x.last = in, at.Names
	path := at.Path()
	if at.Dir {
		path += "/"
	}
	x.add(in, path, sum)
}

func (x *damage) add(in, path string, sum *CheckSummary) {
	sum.HurtNames++
	if len(x.Hurts) >= MaxHurts {
		x.More++
		return
	}
	h := Hurt{Snapshot: in, Path: path}
	if !utf8.ValidString(path) {
		h.PathBytes = []byte(path)
	}
	x.Hurts = append(x.Hurts, h)
}

// hurtAll notes that all of a snapshot is hurt.
func (c *check) hurtAll(x *damage, in string) {
	c.hurt[in] = struct{}{}
	if x != nil { // else there are too many
		x.add(in, "/", c.sum)
	}
}

// tell finds out what the damages hurt, and reports them.
func (c *check) tell(ctx context.Context) error {
	if len(c.bad.of) == 0 {
		return nil
	}
	bySum := make(map[object.Sum]*damage, len(c.bad.of))
	for key, x := range c.bad.of {
		if sum, ok := object.ContentSum(key); ok {
			bySum[sum] = x
		}
	}
	for i := range c.roots {
		if x := c.bad.of[c.roots[i].Key()]; x != nil && x.all {
			c.hurtAll(x, c.roots[i].Text())
		}
	}
	hit := func(x *damage, at *snapshot.Site) {
		x.hurt(c.bad.at, at, c.sum)
		c.hurt[c.bad.at] = struct{}{}
	}
	err := c.each(ctx, false, snapshot.UsesOptions{
		All: true,
		Use: func(u *snapshot.Use, at *snapshot.Site) error {
			if u.Kind == snapshot.UseNumber {
				return nil
			}
			if x := bySum[u.Sum]; x != nil && x.hits(u) {
				hit(x, at)
			}
			return nil
		},
		Damaged: func(at *snapshot.Site, err error) error {
			key, _ := snapshot.OfObject(err)
			if x := c.bad.of[key]; x != nil {
				hit(x, at)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	c.sum.Damaged = uint64(len(c.bad.of)) + c.bad.more
	c.sum.HurtSnapshots = uint64(len(c.hurt))
	all := slices.SortedFunc(maps.Values(c.bad.of), func(a, b *damage) int { return cmp.Compare(a.Object, b.Object) })
	for _, x := range all {
		if c.o.Found != nil {
			c.o.Found(x.Damage)
		}
	}
	return nil
}
