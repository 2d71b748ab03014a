package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxSeen bounds the pieces that are known to have been read. Beyond it all are forgotten, and one that several files
	// have may be read twice.
	maxSeen = 1 << 18
	// verifyBuffer is how much of an object is read at once.
	verifyBuffer = 256 << 10
)

// VerifyOptions say how a snapshot is verified.
type VerifyOptions struct {
	Parallel int // objects at once; at least 1
	// Before, if not nil, is called before up to n bytes are read, and returns how many may be. An error ends it.
	Before func(ctx context.Context, n int) (int, error)
	// Done, if not nil, is called when so many bytes of an object were read, and are right.
	Done func(bytes int64)
	// Hurt is called for each object of the tree that lacks something, by one of its names, with a [DamagedError]. Calls
	// are concurrent.
	Hurt func(path string, err error)
}

// verifier is a verification under way.
type verifier struct {
	s *Snapshot
	o VerifyOptions

	packs []uint64 // a bit for each number: it is one of a pack that something is in

	mu   sync.Mutex
	seen map[object.Sum]*checked
	bad  map[int64]error // of packs; nil while it is not known
}

// checked is an object that was read, or is being read.
type checked struct {
	done chan struct{}
	err  error
}

// Verify reads all that a snapshot needs from its store, each object once, and compares it with its sum. What is not as
// it was stored is no error: see VerifyOptions.Hurt. Memory: a bit for each part and pack, [maxSeen] sums, and what is
// read at once.
func (s *Snapshot) Verify(ctx context.Context, o VerifyOptions) error {
	v := &verifier{s: s, o: o, packs: make([]uint64, (s.objects+63)/64), seen: make(map[object.Sum]*checked)}
	if v.o.Parallel < 1 {
		v.o.Parallel = 1
	}
	if err := v.tree(ctx, v.content); err != nil {
		return err
	}
	bad, err := v.readPacks(ctx)
	if err != nil || len(bad) == 0 {
		return err
	}
	v.bad = bad
	return v.tree(ctx, v.packed)
}

// tree has do called for each entry, at Parallel at once.
func (v *verifier) tree(ctx context.Context, do func(ctx context.Context, path string, e *Entry) error) error {
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
func (v *verifier) hurt(path string, err error) error {
	if errors.Is(err, ErrDamaged) {
		v.o.Hurt(path, err)
		return nil
	}
	return err
}

// dir visits a directory, and what is below it. It keeps no lines while it is below: a tree may be deep.
func (v *verifier) dir(ctx context.Context, path string, e *Entry, at *place, visit func(string, *Entry) error) error {
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
func (v *verifier) next(ctx context.Context, d *dir, i int, off int64) (e *Entry, at place, next int64, err error) {
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
func (v *verifier) content(ctx context.Context, _ string, e *Entry) error {
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
func (v *verifier) packed(ctx context.Context, _ string, e *Entry) error {
	return v.pieces(ctx, e, func(p *Piece) error {
		if p.Pack == nil {
			return nil
		}
		return v.bad[*p.Pack]
	})
}

// pieces calls do for each piece of a file.
func (v *verifier) pieces(ctx context.Context, e *Entry, do func(*Piece) error) error {
	for i := range e.Content.Pieces {
		if err := do(&e.Content.Pieces[i]); err != nil {
			return err
		}
	}
	for i := range e.Content.Lists {
		l := &e.Content.Lists[i]
		b, err := v.s.piece(ctx, &l.Piece)
		if err != nil {
			return err
		}
		all, _, err := decodeList(b, l.Data)
		if err != nil {
			return damaged(object.ContentKey(object.Sum(l.Sum)), err)
		}
		for j := range all {
			if err := do(&all[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPacks reads the packs that something is in.
func (v *verifier) readPacks(ctx context.Context) (bad map[int64]error, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	bad = make(map[int64]error)
	numbers := make(chan int64)
	var all sync.WaitGroup
	for range v.o.Parallel {
		all.Go(func() {
			for n := range numbers {
				sum, err := v.s.numbered(ctx, n)
				if err == nil {
					err = v.compare(ctx, sum)
				}
				if err == nil {
					continue
				}
				if !errors.Is(err, ErrDamaged) {
					cancel(err)
					continue
				}
				v.mu.Lock()
				bad[n] = err
				v.mu.Unlock()
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

// object reads an object, if it was not read before.
func (v *verifier) object(ctx context.Context, sum object.Sum) error {
	v.mu.Lock()
	c, ok := v.seen[sum]
	if !ok {
		if len(v.seen) >= maxSeen {
			clear(v.seen) // those that are being read have their place from their caller
		}
		c = &checked{done: make(chan struct{})}
		v.seen[sum] = c
	}
	v.mu.Unlock()
	if !ok {
		c.err = v.compare(ctx, sum)
		close(c.done)
		return c.err
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// compare reads an object whole, and compares it with its sum.
func (v *verifier) compare(ctx context.Context, sum object.Sum) error {
	key := object.ContentKey(sum)
	r, _, err := v.s.get.store.Get(ctx, key, 0, -1)
	if err != nil {
		return lost(key, err)
	}
	defer r.Close() //nolint:errcheck // nothing is written
	h, size := sha256.New(), int64(0)
	for buf := make([]byte, verifyBuffer); ; {
		part := buf
		if v.o.Before != nil {
			n, err := v.o.Before(ctx, len(buf))
			if err != nil {
				return err
			}
			part = buf[:n]
		}
		n, err := r.Read(part)
		h.Write(part[:n])
		if size += int64(n); size > maxPack {
			return damaged(key, fmt.Errorf("it has more than %d bytes", maxPack))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return lost(key, err)
		}
	}
	if object.Sum(h.Sum(nil)) != sum {
		return damaged(key, errors.New("its bytes do not have the SHA-256 that names it"))
	}
	if v.o.Done != nil {
		v.o.Done(size)
	}
	return nil
}
