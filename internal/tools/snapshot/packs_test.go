package snapshot

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// slow is a store that lets no Put go on before it is told to, and counts those that wait.
type slow struct {
	object.Store
	begun chan struct{}
	goOn  chan struct{}
}

func (s *slow) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	s.begun <- struct{}{}
	select {
	case <-s.goOn:
	case <-ctx.Done():
		return object.Info{}, ctx.Err()
	}
	return s.Store.Put(ctx, key, r, o)
}

// TestPacksInMemory wants no more than packsOpen packs in memory, however many fill them and however slow the
// store is; and those that wait to end with their context.
func TestPacksInMemory(t *testing.T) {
	store := &slow{object.NewMemory(object.MemoryOptions{}), make(chan struct{}, 100), make(chan struct{})}
	sink, err := newSink(store)
	if err != nil {
		t.Fatal(err)
	}
	p := newPacker(sink)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := noise(1, smallFile)
	for range maxPack / smallFile { // the first pack is full, and nothing is stored
		if _, err := p.add(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	const many = 3 * maxPack / smallFile
	var all sync.WaitGroup
	errs := make(chan error, many)
	for range many {
		all.Go(func() {
			_, err := p.add(ctx, b)
			errs <- err
		})
	}
	<-store.begun // one has filled a pack, and stores it
	if n := len(p.free); n > packsOpen-1 {
		t.Errorf("%d buffers are free while one is stored", n)
	}
	close(store.goOn)
	all.Wait()
	if err := p.flush(ctx); err != nil {
		t.Fatal(err)
	}
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := len(p.free); n != packsOpen {
		t.Errorf("%d buffers are free in the end, want %d", n, packsOpen)
	}

	<-p.free // as others have them that store
	<-p.free
	cancel()
	if _, err := p.add(ctx, b); !errors.Is(err, context.Canceled) {
		t.Errorf("without a buffer: %v", err)
	}
}
