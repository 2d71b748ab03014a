package writeback

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open file. Its node's mutex guards what changes.
type file struct {
	n      *node
	view   *FS // that opened it
	inner  vfs.File
	near   vfs.Near // nil if the file below is not one
	access vfs.Share
	max    uint64 // the largest size of a file
	ctx    context.Context
	cancel context.CancelFunc // ends what is in flight

	users users
	err   error // the first, for good
}

// users counts the calls in progress of a file, for which Close waits. Once Close has begun it has
// the bit closing, too. A call costs two additions, and takes no lock:
//
//   - A call adds itself, and then looks at the bit. Close sets the bit, and then looks at the
//     number. So either the call sees the bit and does nothing, or Close sees the call and waits
//     for it.
//   - The last call to leave with the bit set takes the node's mutex and wakes Close. Close looks
//     at the number under that mutex, and waiting is all that gives the mutex up. So Close never
//     sleeps through the wake-up.
type users struct{ n atomic.Int64 }

// closing is far from any number of calls, and makes the sum negative.
const closing = math.MinInt64

// enter reports whether a call may go on. It is one of the users in any case.
func (u *users) enter() bool { return u.n.Add(1) > 0 }

// leave reports whether Close is to be told that the last call has gone.
func (u *users) leave() bool { return u.n.Add(-1) == closing }

// shut lets no further call enter; it is false if that has been done before.
func (u *users) shut() bool { return u.n.Or(closing) >= 0 }

// gone reports whether none is left. It is asked after shut.
func (u *users) gone() bool { return u.n.Load() == closing }

// open makes a file, and its node if it is the first one there.
func (v *FS) open(ctx context.Context, inner vfs.File, opened *vfs.Opened, access vfs.Share, limits *vfs.Info) vfs.File {
	f := &file{n: v.s.enter(opened.H, limits), view: v, inner: inner, access: access, max: limits.MaxFileSize}
	f.near, _ = vfs.As[vfs.Near](inner)
	if f.max == 0 {
		f.max = math.MaxInt64
	}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.n.mu.Lock()
	f.n.files[f] = struct{}{}
	if f.err = f.n.over; f.err != nil {
		f.cancel()
	}
	f.n.mu.Unlock()
	if below, ok := vfs.As[vfs.HoleSeeker](inner); ok {
		return &holeFile{file: f, below: below}
	}
	return f
}

func (s *shared) enter(h vfs.Handle, limits *vfs.Info) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[h]
	if n == nil {
		n = &node{
			s:     s,
			h:     h,
			wsize: transferSize(limits.WritePref, limits.WriteMax, s.opt.MaxDirty/(maxShare+1)),
			files: make(map[*file]struct{}),
			over:  s.over,
			turn:  make(chan struct{}, 1),
		}
		n.cond = sync.NewCond(&n.mu)
		s.nodes[h] = n
	}
	n.opens++
	return n
}

func (s *shared) leave(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.opens--; n.opens > 0 {
		return
	}
	delete(s.nodes, n.h)
	if at := n.stableAt.Load(); at > 0 {
		s.closed.add(n.h, at)
	}
}

// Near implements vfs.Near.
func (f *file) Near() bool { return f.near != nil && f.near.Near() }

// begin admits a call that needs access; end ends it.
func (f *file) begin(access vfs.Share) (err error) {
	switch {
	case !f.users.enter():
		err = vfs.ErrInval
	case f.access&access != access:
		err = vfs.ErrAccess
	case access == vfs.ShareWrite:
		err = f.failed()
	}
	if err != nil {
		f.end()
	}
	return err
}

func (f *file) end() {
	if f.users.leave() {
		f.n.mu.Lock()
		defer f.n.mu.Unlock()
		f.n.cond.Broadcast()
	}
}

// within returns the context of a call that may wait for others. It ends with ctx, and when Close
// gives f up: Close waits for the call.
func (f *file) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(f.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// failed returns the first error.
func (f *file) failed() error {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	return f.err
}

// Commit makes all that was written before stable, whatever the range, and
// fails with the file's first error.
func (f *file) Commit(ctx context.Context, _, _ uint64, w *vfs.Written) error {
	if err := f.begin(0); err != nil {
		return err
	}
	defer f.end()
	// With nothing dirty no call is made that would notice that ctx has ended.
	err := ctx.Err()
	if err == nil {
		within, done := f.within(ctx)
		err = f.n.commit(within)
		done()
	}
	if first := f.failed(); first != nil {
		return first
	}
	if err != nil {
		return err
	}
	*w = vfs.Written{Committed: vfs.FileSync, Verf: f.n.s.opt.Verifier}
	return nil
}

// Truncate sends what is dirty, and cuts it at size.
func (f *file) Truncate(ctx context.Context, size uint64) (wcc vfs.WCC, err error) {
	if err := f.begin(vfs.ShareWrite); err != nil {
		return wcc, err
	}
	defer f.end()
	ctx, done := f.within(ctx)
	defer done()
	err = f.n.fence(ctx, 0, math.MaxUint64, func() (uint64, uint64, error) {
		if wcc, err = f.inner.Truncate(ctx, size); err != nil {
			return 0, 0, err
		}
		return size, math.MaxUint64, nil
	})
	return wcc, err
}

// Close commits and closes, and fails with the file's first error. If ctx ends
// before everything is stable, what is not is given up, and the error says so.
func (f *file) Close(ctx context.Context) error {
	n := f.n
	if !f.users.shut() {
		return vfs.ErrInval
	}
	n.mu.Lock()
	err := n.await(ctx, f.users.gone) // calls in progress may still write
	mine := n.owns(f)
	if !mine {
		err = nil // whether or not ctx has ended
		if f.access&vfs.ShareWrite != 0 {
			// Its bytes may have been made stable through another file, by one of several
			// COMMITs. The server may tell but one of them that it could not store them.
			err = n.awaitCommits(ctx, n.seq)
		}
	}
	n.mu.Unlock()
	if mine && err == nil {
		err = n.commit(ctx)
	}
	err = f.giveUp(ctx, err)
	n.s.leave(n)
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), closeLifetime)
		defer cancel()
	}
	if below := f.inner.Close(ctx); err == nil {
		err = below
	}
	return err
}

// giveUp takes f off its node when the last call has ended. Pieces that are not stable by then are
// lost, for the reason err. It returns the file's first error, or one that tells of the loss.
func (f *file) giveUp(ctx context.Context, err error) error {
	n := f.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		_ = n.await(ctx, f.users.gone) // if ctx ends first, what goes on behind is ended
	}
	f.cancel()
	n.cond.Broadcast()
	for !f.users.gone() {
		n.cond.Wait()
	}
	for n.flies(f) {
		n.cond.Wait()
	}
	lost := n.giveUp(func(p *piece) bool { return p.file == f })
	delete(n.files, f)
	n.changed()
	if f.err != nil {
		return f.err
	}
	if lost > 0 && err == nil {
		err = vfs.ErrIO
	}
	if err != nil {
		return fmt.Errorf("closing with %d bytes that may not be stable: %w", lost, err)
	}
	return nil
}

// holeFile is a file that knows its holes. Dirty bytes are no holes, but the file below does not
// know of them. So everything is committed before each search.
type holeFile struct {
	*file
	below vfs.HoleSeeker
}

var (
	_ vfs.File       = (*file)(nil)
	_ vfs.Near       = (*file)(nil)
	_ vfs.HoleSeeker = (*holeFile)(nil)
)

// NextData commits, and asks below.
func (h *holeFile) NextData(ctx context.Context, off uint64) (uint64, error) {
	return h.seek(ctx, off, h.below.NextData)
}

// NextHole commits, and asks below.
func (h *holeFile) NextHole(ctx context.Context, off uint64) (uint64, error) {
	return h.seek(ctx, off, h.below.NextHole)
}

func (h *holeFile) seek(ctx context.Context, off uint64, below func(context.Context, uint64) (uint64, error)) (uint64, error) {
	if err := h.begin(0); err != nil {
		return 0, err
	}
	defer h.end()
	ctx, done := h.within(ctx)
	defer done()
	if err := h.n.commit(ctx); err != nil {
		return 0, err
	}
	if err := h.failed(); err != nil {
		return 0, err // what was lost would be a hole
	}
	return below(ctx, off)
}
