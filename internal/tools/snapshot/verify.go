package snapshot

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// verification is a [Verifier.Verify] under way.
type verification struct {
	*Verifier
	s *Snapshot

	packs []uint64        // a bit for each number: it is one of a pack that something is in
	bad   map[int64]error // of packs; nil while it is not known
}

// Verify reads all that a snapshot needs from its store, and compares it with its sum, but for what v has read already and found
// right. What is not as it was stored is no error: see VerifyOptions.Hurt. It takes a bit for each part and pack besides.
func (v *Verifier) Verify(ctx context.Context, s *Snapshot) error {
	r := &verification{Verifier: v, s: s, packs: make([]uint64, (s.objects+63)/64)}
	if err := r.tree(ctx, r.content); err != nil {
		return err
	}
	bad, err := r.readPacks(ctx)
	if err != nil || len(bad) == 0 {
		return err
	}
	r.bad = bad
	return r.tree(ctx, r.packed)
}

// tree has do called for each entry, at Parallel at once.
func (v *verification) tree(ctx context.Context, do func(ctx context.Context, path string, e *Entry) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type item struct {
		path string
		e    *Entry
	}
	items := make(chan item)
	var all sync.WaitGroup
	for range v.o.Parallel {
		all.Go(func() {
			for i := range items {
				if err := v.hurt(i.path, do(ctx, i.path, i.e)); err != nil {
					cancel(err)
				}
			}
		})
	}
	at := rootPlace()
	err := v.dir(ctx, "", v.s.root, &at, func(path string, e *Entry) error {
		select {
		case items <- item{path, e}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(items)
	all.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// hurt reports what is damaged, and returns any other error.
func (v *verification) hurt(path string, err error) error {
	if errors.Is(err, ErrDamaged) {
		v.o.Hurt(path, err)
		return nil
	}
	return err
}

// dir visits a directory, and what is below it. It keeps no lines while it is below: a tree may be deep.
func (v *verification) dir(ctx context.Context, path string, e *Entry, at *place, visit func(string, *Entry) error) error {
	if err := visit(path, e); err != nil {
		return err
	}
	d, err := v.s.dir(ctx, e, *at)
	if err != nil {
		return v.hurt(path, err)
	}
	for i := range d.list {
		for off := int64(0); off >= 0; {
			var child *Entry
			var where place
			if child, where, off, err = v.next(ctx, d, i, off); err != nil {
				if err = v.hurt(path, err); err != nil {
					return err
				}
				break
			}
			if child == nil {
				break
			}
			below := child.Name
			if path != "" {
				below = path + "/" + child.Name
			}
			if child.Attr.Type == vfs.TypeDir {
				err = v.dir(ctx, below, child, &where, visit)
			} else {
				err = visit(below, child)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// next is the entry at off of a chunk, and where the one behind it is; nil at its end.
func (v *verification) next(ctx context.Context, d *dir, i int, off int64) (e *Entry, at place, next int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, at, 0, context.Cause(ctx)
	}
	b, base, key, err := v.s.chunk(ctx, &d.list[i])
	if err != nil || off >= int64(len(b)) {
		return nil, at, 0, err
	}
	row, err := lineAt(b, off)
	if err != nil {
		return nil, at, 0, damaged(key, err)
	}
	if e, err = decodeEntry(row, false); err != nil {
		return nil, at, 0, damaged(key, err)
	}
	return e, below(&d.at, &d.head, e.Name, d.list[i].part, base+off), off + int64(len(row)) + 1, nil
}

// content reads what is an object of its own, and marks packs.
func (v *verification) content(ctx context.Context, _ string, e *Entry) error {
	for _, p := range []*Piece{e.Content.Sparse, e.Extra.Far} {
		if p == nil {
			continue
		}
		if err := v.object(ctx, object.Sum(p.Sum)); err != nil {
			return err
		}
	}
	return v.pieces(ctx, e, func(p *Piece) error {
		if p.Pack == nil {
			return v.object(ctx, object.Sum(p.Sum))
		}
		if _, err := v.s.numbered(ctx, *p.Pack); err != nil {
			return err
		}
		atomic.OrUint64(&v.packs[*p.Pack/64], 1<<(*p.Pack%64))
		return nil
	})
}

// packed finds what is in a pack that is damaged.
func (v *verification) packed(ctx context.Context, _ string, e *Entry) error {
	return v.pieces(ctx, e, func(p *Piece) error {
		if p.Pack == nil {
			return nil
		}
		return v.bad[*p.Pack]
	})
}

// pieces calls do for each piece of a file.
func (v *verification) pieces(ctx context.Context, e *Entry, do func(*Piece) error) error {
	return v.s.get.pieces(ctx, e, do)
}

// readPacks reads the packs that something is in.
func (v *verification) readPacks(ctx context.Context) (bad map[int64]error, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	bad = make(map[int64]error)
	numbers := make(chan int64)
	var all sync.WaitGroup
	for range v.o.Parallel {
		all.Go(func() {
			for n := range numbers {
				sum, err := v.s.numbered(ctx, n)
				if err == nil {
					err = v.pack(ctx, sum)
				}
				if err == nil {
					continue
				}
				if !errors.Is(err, ErrDamaged) {
					cancel(err)
					continue
				}
				mu.Lock()
				bad[n] = err
				mu.Unlock()
			}
		})
	}
	for i, word := range v.packs {
		for ; word != 0 && ctx.Err() == nil; word &= word - 1 {
			select {
			case numbers <- int64(i)*64 + int64(bits.TrailingZeros64(word)):
			case <-ctx.Done():
			}
		}
	}
	close(numbers)
	all.Wait()
	return bad, context.Cause(ctx)
}
