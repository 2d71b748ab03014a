package upkeep

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
)

// ref is a range of an object, as a snapshot has it: 64 bytes.
type ref struct {
	sum   object.Sum
	at    uint32
	n     int32    // stored; -1: all of the object, of which no more is known than its sum
	size  uint32   // unpacked
	bytes [16]byte // of the SHA-256 of the range as it is stored
}

const (
	// roundRefs bounds the ranges of a round: 32 MiB.
	roundRefs = 1 << 19
	// reads bounds the objects that are read at once. Each is in memory, up to maxRead, with a piece of it unpacked.
	reads = 3
	// maxRead bounds an object that is read, as snapshots have none that is longer: that of a pack.
	maxRead = 32 << 20
)

func newRefs(most int) *round[ref] {
	return &round[ref]{
		most: most,
		order: func(a, b *ref) int {
			return cmp.Or(bytes.Compare(a.sum[:], b.sum[:]), cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n), cmp.Compare(a.size, b.size),
				bytes.Compare(a.bytes[:], b.bytes[:]))
		},
		merge: func(into, of *ref) bool { return *into == *of },
	}
}

// data reads objects, and compares them with all that snapshots say of them.
func (c *check) data(ctx context.Context) error {
	in, err := c.sampled()
	if err != nil {
		return err
	}
	unpack, err := snapshot.NewUnpacker()
	if err != nil {
		return err
	}
	refs := newRefs(c.ranges)
	var last object.Sum // of the round before, some of whose ranges may have been too many
	for first := true; first || refs.next(); first = false {
		err := c.each(ctx, false, snapshot.UsesOptions{Use: func(u *snapshot.Use, _ *snapshot.Site) error {
			if u.Kind == snapshot.UseNumber || !in(&u.Sum) {
				return nil
			}
			r := ref{sum: u.Sum, at: uint32(u.At), n: int32(u.Len), size: uint32(max(0, u.Size))}
			copy(r.bytes[:], u.Range[:])
			refs.add(r)
			return nil
		}})
		if err != nil {
			return err
		}
		refs.sort()
		if err := c.read(ctx, unpack, refs.items, last); err != nil {
			return err
		}
		if n := len(refs.items); n > 0 {
			last = refs.items[n-1].sum
		}
	}
	return nil
}

// read reads the objects of sorted refs, a few at once. That of last was counted before.
func (c *check) read(ctx context.Context, unpack *snapshot.Unpacker, refs []ref, last object.Sum) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	turn := make(chan struct{}, reads)
	for len(refs) > 0 && ctx.Err() == nil {
		n := 1
		for n < len(refs) && refs[n].sum == refs[0].sum {
			n++
		}
		of := refs[:n]
		refs = refs[n:]
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			if err := c.object(ctx, unpack, of, of[0].sum != last); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// object reads an object, and compares it with its refs.
func (c *check) object(ctx context.Context, unpack *snapshot.Unpacker, refs []ref, counts bool) error {
	key := object.ContentKey(refs[0].sum)
	if c.bad.known(refs[0].sum) { // what is missing, or was found in the manifest
		return nil
	}
	b, err := c.whole(ctx, key)
	if counts {
		c.bad.read(int64(len(b)), c.sum)
		c.o.Progress.Add(progress.Bytes, uint64(len(b)))
	}
	corrupted := errors.Is(err, object.ErrCorrupted) || errors.Is(err, object.ErrNotExist)
	if err != nil && !corrupted && object.IsOwn(err) && ctx.Err() == nil {
		c.bad.found(key, Unreadable, err)
		return nil
	}
	if err != nil && !corrupted {
		return err
	}
	if err == nil && object.SumOf(b) == refs[0].sum {
		for i := range refs {
			r := &refs[i]
			if r.n < 0 { // a part, of which all was read before
				continue
			}
			if err := c.fits(unpack, key, b, r); err != nil { // the bytes are those that were put, and are not what was said
				c.bad.part(key, Format, err, r)
			}
		}
		return nil
	}
	if err == nil {
		err = errors.New("its bytes have another SHA-256 than its name")
	}
	c.bad.part(key, problemOf(fmt.Errorf("%w: %w", err, object.ErrCorrupted)), err, nil)
	for i := range refs {
		r := &refs[i]
		if r.n < 0 || c.fits(unpack, key, b, r) != nil {
			c.bad.part(key, Content, err, r)
		}
	}
	return nil
}

// whole reads an object. What was read is returned beside an error, too.
func (c *check) whole(ctx context.Context, key string) ([]byte, error) {
	r, info, err := c.store.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // nothing is written
	var b bytes.Buffer
	b.Grow(int(min(max(info.Size, 0), maxRead)) + bytes.MinRead)
	_, err = b.ReadFrom(io.LimitReader(r, maxRead+1))
	return b.Bytes(), err
}

// fits returns an error unless b, which is an object as it is, has what a snapshot says of a range of it.
func (c *check) fits(unpack *snapshot.Unpacker, key string, b []byte, r *ref) error {
	end := int64(r.at) + int64(r.n)
	if end > int64(len(b)) {
		return fmt.Errorf("it has %d bytes, and %d are needed", len(b), end)
	}
	part := b[r.at:end]
	if sum := object.SumOf(part); !bytes.Equal(sum[:len(r.bytes)], r.bytes[:]) {
		return fmt.Errorf("the %d bytes at %d have another SHA-256", r.n, r.at)
	}
	return unpack.Check(key, part, int64(r.size))
}
