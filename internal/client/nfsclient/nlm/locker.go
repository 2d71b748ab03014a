package nlm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// request is what the methods have in common.
func (f *FS) request(h *vfs.Handle, l *vfs.Lock) (k *key, span byterange.Span, auth oncrpc.Auth, err error) {
	span, ok := byterange.Of(l.Off, l.Len, l.Exclusive)
	switch {
	case h.IsZero() || h.Len() > vfs.MaxHandleV3:
		return nil, span, auth, vfs.ErrBadHandle
	case !ok:
		return nil, span, auth, vfs.ErrFBig
	}
	if auth, err = f.s.o.Auth(f.caller); err != nil {
		return nil, span, auth, fmt.Errorf("nfs: credential: %w", err)
	}
	return &key{*h, l.Owner}, span, auth, nil
}

// Lock implements vfs.Locker. After a restart of the server it waits for the end of the grace. Beside
// the contract's errors there are an [UnavailableError], a [FullError] and a [LostError]. The last tells
// of a lock that the owner had: l was not taken then, and the owner has nothing in its range. What was cut off by ctx is settled:
// see the package's documentation.
func (f *FS) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	k, span, auth, err := f.request(&h, l)
	if err != nil {
		return err
	}
	err = f.afterGrace(ctx, func() error {
		return f.s.run(ctx, k, f.uid(), func(o *op) { o.lock(auth, span) })
	})
	switch {
	case errors.Is(err, vfs.ErrLocked):
		f.s.n.denied.Add(1)
	case errors.Is(err, errFailed):
		return f.explain(ctx, h, l.Exclusive)
	}
	return err
}

// Unlock implements vfs.Locker. When ctx ends after it has begun it goes on by itself. With a
// [LostError] what was left is unlocked.
func (f *FS) Unlock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	k, span, auth, err := f.request(&h, l)
	if err != nil {
		return err
	}
	span.Exclusive = false
	err = f.s.run(ctx, k, f.uid(), func(o *op) { o.unlock(auth, span) })
	if errors.Is(err, errFailed) {
		return f.explain(ctx, h, false)
	}
	return err
}

// TestLock implements vfs.Locker. The owner of another host's lock is named by its svid and oh.
func (f *FS) TestLock(ctx context.Context, h vfs.Handle, l *vfs.Lock) (by vfs.Lock, free bool, err error) {
	k, span, auth, err := f.request(&h, l)
	if err != nil {
		return by, false, err
	}
	if err := ctx.Err(); err != nil {
		return by, false, err
	}
	e, err := f.s.enter(k, f.uid())
	if err != nil {
		return by, false, err
	}
	defer f.s.leave(e)
	var who holder
	err = f.afterGrace(ctx, func() error {
		who, err = f.s.test(ctx, &h, e.owner, auth, span)
		return err
	})
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return who.lock, false, nil
	case errors.Is(err, errFailed):
		err = f.explain(ctx, h, l.Exclusive)
	}
	return by, err == nil, err
}

// ReleaseLocks implements vfs.Locker, for owners of this client.
func (f *FS) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var mu sync.Mutex
	var first error
	var keys []key
	for _, k := range f.s.holders() {
		if whom(&k.owner) {
			keys = append(keys, k)
		}
	}
	each(keys, func(k key) {
		if err := f.Unlock(ctx, k.h, &vfs.Lock{Owner: k.owner}); err != nil && !errors.Is(err, vfs.ErrStale) {
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = err
			}
		}
	})
	return first
}

// afterGrace asks again while the server has a grace.
func (f *FS) afterGrace(ctx context.Context, ask func() error) error {
	until := time.Now().Add(graceWait)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := ask()
		if !errors.Is(err, errGrace) || time.Now().After(until) {
			return err
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("%w; %w", err, ctx.Err())
		}
	}
}

// explain finds the reason for NLM4_FAILED: an object that is no file, or a right that is lacking.
func (f *FS) explain(ctx context.Context, h vfs.Handle, exclusive bool) error {
	attr, err := f.FS.GetAttr(ctx, h, vfs.MaskType)
	switch {
	case err != nil:
		return err
	case attr.Type == vfs.TypeDir:
		return vfs.ErrIsDir
	case attr.Type != vfs.TypeReg:
		return vfs.ErrInval
	}
	want := vfs.AccessRead
	if exclusive {
		want = vfs.AccessModify
	}
	if got, _, err := f.FS.Access(ctx, h, want); err == nil && got&want == 0 {
		return vfs.ErrAccess
	}
	return fmt.Errorf("%w: %w", vfs.ErrIO, errFailed)
}

// close ends all operations, and unlocks what is held.
func (s *shared) close() error {
	s.mu.Lock()
	over := s.closed
	s.closed = true
	s.mu.Unlock()
	if over {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var mu sync.Mutex
	left := 0
	each(s.holders(), func(k key) {
		if err := s.drop(ctx, k); err != nil {
			mu.Lock()
			defer mu.Unlock()
			left++
		}
	})
	s.stop()
	s.wg.Wait()
	var err error
	if rpc := s.link.rpc.Swap(nil); rpc != nil {
		err = rpc.Close()
	}
	if left > 0 {
		err = errors.Join(fmt.Errorf("closed with locks on %d files that the server may still hold: %w", left, vfs.ErrIO), err)
	}
	return err
}

// drop unlocks all of an entry.
func (s *shared) drop(ctx context.Context, k key) error {
	s.mu.Lock()
	e := s.entries[k]
	s.mu.Unlock()
	if e == nil {
		return nil
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if len(e.set) == 0 {
		return nil
	}
	if err := s.unlock(ctx, e, e.auth, byterange.Span{Last: byterange.Max}); err != nil && !errors.Is(err, vfs.ErrStale) {
		return err
	}
	s.hold(e, nil, e.auth, e.epoch)
	return nil
}
