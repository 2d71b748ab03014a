package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// maxSeen bounds the objects of which a Verifier remembers that it has read them, but for packs. Beyond it all are forgotten,
	// and one that several files have may be read twice.
	maxSeen = 1 << 18
	// verifyBuffer is how much of an object is read at once.
	verifyBuffer = 256 << 10
)

// VerifyOptions say how a store is read back.
type VerifyOptions struct {
	Parallel int // objects at once, of [Verifier.Verify]; at least 1
	// Before, if not nil, is called before up to n bytes are read, and returns how many may be. An error ends it.
	Before func(ctx context.Context, n int) (int, error)
	// Done, if not nil, is called when so many bytes of an object were read, and are right.
	Done func(bytes int64)
	// Hurt is called by [Verifier.Verify] for each object of the tree that lacks something, by one of its names, with a
	// [DamagedError]. Calls are concurrent.
	Hurt func(path string, err error)
}

// Verifier reads objects of a store back, each once, and compares them with their sums. It is safe for concurrent use.
//
// Memory: a sum and its verdict for each pack and for [maxSeen] other objects, and what is read at once.
type Verifier struct {
	store object.Store
	o     VerifyOptions

	mu    sync.Mutex
	seen  map[object.Sum]*checked
	packs map[object.Sum]*checked // these are few, and each is large: none is forgotten
}

// checked is an object that was read, or is being read.
type checked struct {
	done chan struct{}
	err  error
}

// NewVerifier returns a Verifier that has read nothing.
func NewVerifier(store object.Store, o VerifyOptions) *Verifier {
	o.Parallel = max(1, o.Parallel)
	return &Verifier{store: store, o: o, seen: make(map[object.Sum]*checked), packs: make(map[object.Sum]*checked)}
}

// object reads an object, if it was not read before.
func (v *Verifier) object(ctx context.Context, sum object.Sum) error {
	return v.once(ctx, &v.seen, sum)
}

// pack reads a pack, if it was not read before.
func (v *Verifier) pack(ctx context.Context, sum object.Sum) error { return v.once(ctx, &v.packs, sum) }

func (v *Verifier) once(ctx context.Context, known *map[object.Sum]*checked, sum object.Sum) error {
	for {
		v.mu.Lock()
		c, ok := (*known)[sum]
		if !ok {
			if len(v.seen) >= maxSeen {
				clear(v.seen) // those that are being read have their place from their caller
			}
			c = &checked{done: make(chan struct{})}
			(*known)[sum] = c
		}
		v.mu.Unlock()
		if !ok {
			c.err = v.compare(ctx, sum)
			if c.err != nil && !errors.Is(c.err, ErrDamaged) {
				v.forget(sum) // it says nothing of the object
			}
			close(c.done)
			return c.err
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		// The context of the one that read may have ended: that is no answer for others.
		if !errors.Is(c.err, context.Canceled) || ctx.Err() != nil {
			return c.err
		}
	}
}

// forget has an object read again when it is asked for: it was stored anew.
func (v *Verifier) forget(sum object.Sum) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.seen, sum)
	delete(v.packs, sum)
}

// compare reads an object whole, and compares it with its sum.
func (v *Verifier) compare(ctx context.Context, sum object.Sum) error {
	n, err := readBack(ctx, v.store, sum, v.o.Before)
	if err == nil && v.o.Done != nil {
		v.o.Done(n)
	}
	return err
}

// readBack reads the object of a sum whole. size is how many bytes it has. If it is missing, or they have another sum, the error is a
// [DamagedError]. before is that of VerifyOptions.
func readBack(ctx context.Context, store object.Store, sum object.Sum, before func(ctx context.Context, n int) (int, error)) (size int64, err error) {
	key := object.ContentKey(sum)
	r, _, err := store.Get(ctx, key, 0, -1)
	if err != nil {
		return 0, lost(key, err)
	}
	defer r.Close() //nolint:errcheck // nothing is written
	h := sha256.New()
	for buf := make([]byte, verifyBuffer); ; {
		part := buf
		if before != nil {
			n, err := before(ctx, len(buf))
			if err != nil {
				return size, err
			}
			part = buf[:n]
		}
		n, err := r.Read(part)
		h.Write(part[:n])
		if size += int64(n); size > maxPack {
			return size, damaged(key, fmt.Errorf("it has more than %d bytes", maxPack))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return size, lost(key, err)
		}
	}
	if object.Sum(h.Sum(nil)) != sum {
		return size, damaged(key, fmt.Errorf("%w than the one that names it", ErrSum))
	}
	return size, nil
}
