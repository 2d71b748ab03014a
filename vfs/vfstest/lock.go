package vfstest

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// lockTests are for an FS that is a vfs.Locker, and skipped for others.
var lockTests = []test{
	{"one-alone", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		e.lock(h, alone(ann, 0, 0))
		e.locked(h, alone(ben, 0, 0))
		e.locked(h, shared(ben, 3, 1))
		e.wantContent(h, "content") // locks advise
		e.unlock(h, ann, 0, 0)
		e.lock(h, alone(ben, 0, 0))
	}},
	{"many-share", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.lock(h, shared(ann, 0, 10))
		e.lock(h, shared(ben, 5, 10))
		e.locked(h, alone(ann, 0, 10))
		e.wantFree(h, alone(ann, 0, 5))
		e.unlock(h, ben, 0, 0)
		e.lock(h, alone(ann, 0, 10))
	}},
	{"ranges", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.lock(h, alone(ann, 10, 10))
		for _, l := range []*vfs.Lock{alone(ben, 0, 10), alone(ben, 20, 0)} {
			e.wantFree(h, l)
			e.lock(h, l)
		}
		for _, l := range []*vfs.Lock{alone(ben, 10, 1), alone(ben, 19, 1), alone(ben, 0, 0), shared(ben, 9, 2), shared(ben, 19, 2), shared(ben, 12, 2)} {
			e.locked(h, l)
			e.wantHolder(h, l, alone(ann, 10, 10))
		}
	}},
	{"own-are-no-hindrance", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.lock(h, alone(ann, 0, 10))
		e.wantFree(h, alone(ann, 0, 0))
		e.lock(h, alone(ann, 5, 10))
		e.lock(h, alone(ann, 0, 10))
		e.locked(h, alone(ben, 14, 1))
		e.wantFree(h, alone(ben, 15, 0))
	}},
	{"kinds-change", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.lock(h, alone(ann, 0, 30))
		e.lock(h, shared(ann, 10, 10)) // weaker, in the middle
		e.lock(h, shared(ben, 10, 10))
		e.locked(h, shared(ben, 9, 1))
		e.locked(h, shared(ben, 20, 1))
		e.locked(h, alone(ann, 15, 1)) // refused, and what was is still
		e.locked(h, alone(ben, 15, 1))
		e.unlock(h, ben, 10, 10)
		e.lock(h, alone(ann, 15, 1))
		e.locked(h, shared(ben, 15, 1))
		e.lock(h, shared(ben, 10, 5))
	}},
	{"split-and-merge", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.lock(h, alone(ann, 0, 30))
		e.unlock(h, ann, 10, 10)
		e.wantHolder(h, alone(ben, 0, 0), alone(ann, 0, 10))
		e.wantHolder(h, alone(ben, 10, 0), alone(ann, 20, 10))
		e.wantFree(h, alone(ben, 10, 10))
		e.lock(h, alone(ann, 10, 10))
		e.wantHolder(h, shared(ben, 15, 1), alone(ann, 0, 30))
		e.unlock(h, ann, 0, 29)
		e.wantHolder(h, shared(ben, 0, 0), alone(ann, 29, 1))
		e.unlock(h, ann, 0, 0)
		e.wantFree(h, alone(ben, 0, 0))
	}},
	{"unlock-nothing", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.unlock(h, ann, 0, 0)
		e.lock(h, alone(ann, 5, 1))
		e.unlock(h, ann, 7, 3)
		e.unlock(h, ben, 0, 0)
		e.locked(h, alone(ben, 5, 1))
	}},
	{"to-the-end", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		e.lock(h, alone(ann, 3, 0))
		e.write(h, "much more content", 0)
		for _, off := range []uint64{3, 7, 12, 1 << 40, math.MaxInt64} {
			e.locked(h, alone(ben, off, 1))
		}
		e.wantHolder(h, shared(ben, 0, 0), alone(ann, 3, 0))
		e.wantFree(h, alone(ben, 0, 3))
		e.unlock(h, ann, 1<<40, 0)
		e.lock(h, alone(ben, math.MaxInt64, 1))
		e.wantHolder(h, alone(ann, 1<<40, 0), alone(ben, math.MaxInt64, 0))
	}},
	{"too-far", func(e *env) {
		// Asks for ranges beyond the offsets that files can have, some of which
		// overflow.
		h := e.mkfile(e.dir, "file", "")
		for _, l := range []*vfs.Lock{
			alone(ann, math.MaxInt64+1, 0), alone(ann, math.MaxUint64, 1), alone(ann, math.MaxInt64, 2),
			alone(ann, math.MaxUint64, math.MaxUint64), alone(ann, 1, math.MaxUint64), alone(ann, 1<<62, 1<<63),
		} {
			e.wantStatus(e.locker().Lock(e.ctx, h, l), vfs.ErrFBig, vfs.ErrInval)
			e.wantStatus(e.locker().Unlock(e.ctx, h, l), vfs.ErrFBig, vfs.ErrInval)
			_, _, err := e.locker().TestLock(e.ctx, h, l)
			e.wantStatus(err, vfs.ErrFBig, vfs.ErrInval)
		}
		e.wantFree(h, alone(ben, 0, 0))
		e.lock(h, alone(ann, 0, math.MaxInt64))
		e.lock(h, alone(ben, math.MaxInt64, 0))
	}},
	{"tells-the-holder", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.wantFree(h, alone(ann, 0, 0))
		e.lock(h, shared(ann, 5, 5))
		e.wantHolder(h, alone(ben, 0, 0), shared(ann, 5, 5))
		e.wantFree(h, shared(ben, 0, 0))
		e.wantFree(h, alone(ben, 0, 5)) // and a question locks nothing
		e.lock(h, alone(ann, 0, 5))
	}},
	{"owners", func(e *env) {
		// Owners that differ, and are equal in part.
		h := e.mkfile(e.dir, "file", "")
		all := []vfs.Owner{locksOf("a", "x"), locksOf("a", "xy"), locksOf("b", "x"), locksOf("", "x"), locksOf("a", ""), {}}
		for i, o := range all {
			e.lock(h, alone(o, uint64(i), 1))
			for _, another := range all {
				if another != o {
					e.wantHolder(h, shared(another, uint64(i), 1), alone(o, uint64(i), 1))
				}
			}
		}
	}},
	{"release", func(e *env) {
		x, y := e.mkfile(e.dir, "x", ""), e.mkfile(e.dir, "y", "")
		e.lock(x, alone(ann, 0, 1))
		e.lock(x, alone(locksOf("host-a", "2"), 1, 1))
		e.lock(x, alone(ben, 2, 1))
		e.lock(y, shared(ann, 0, 0))
		e.lock(y, shared(ben, 0, 0))
		e.ok(e.locker().ReleaseLocks(e.ctx, func(o *vfs.Owner) bool { return o.Client == "host-a" }))
		e.lock(x, alone(ben, 0, 2))
		e.lock(y, alone(ben, 0, 0))
		e.wantHolder(x, alone(ann, 0, 0), alone(ben, 0, 3))
		e.locked(y, alone(ann, 0, 0))
	}},
	{"files", func(e *env) {
		// One owner locks several files, by several names.
		x, y := e.mkfile(e.dir, "x", ""), e.mkfile(e.dir, "y", "")
		e.lock(x, alone(ann, 0, 0))
		e.lock(y, alone(ben, 0, 0))
		e.locked(x, alone(ben, 0, 0))
		e.locked(y, alone(ann, 0, 0))
		_, _, err := e.fs.Link(e.ctx, x, e.dir, "link")
		if s, _ := vfs.StatusOf(err); s == vfs.ErrMLink {
			e.Skip("files have one name here")
		}
		e.ok(err)
		e.locked(e.mustLookup(e.dir, "link"), alone(ben, 0, 0))
	}},
	{"survives-rename", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.lock(h, alone(ann, 0, 0))
		e.rename(e.dir, "file", e.mkdir(e.dir, "dir"), "moved")
		e.locked(h, alone(ben, 0, 0))
		e.unlock(h, ann, 0, 0)
		e.lock(h, alone(ben, 0, 0))
	}},
	{"survives-removal", func(e *env) {
		// Frees a lock on a file that has no name any more, and checks that the next
		// file is not hindered by it.
		h := e.mkfile(e.dir, "file", "")
		e.lock(h, alone(ann, 0, 0))
		e.remove(e.dir, "file", false)
		e.lock(e.mkfile(e.dir, "file", ""), alone(ben, 0, 0))
		if err := e.locker().Unlock(e.ctx, h, shared(ann, 0, 0)); err != nil {
			e.wantStatus(err, vfs.ErrStale, vfs.ErrNoEnt)
		}
		e.wantStatus(e.locker().Lock(e.ctx, h, alone(ben, 0, 0)), vfs.ErrStale, vfs.ErrNoEnt)
	}},
	{"no-file", func(e *env) {
		for h, want := range map[vfs.Handle][]vfs.Status{
			e.mkdir(e.dir, "dir"):              {vfs.ErrIsDir, vfs.ErrInval},
			e.symlink(e.dir, "link", "target"): {vfs.ErrInval},
			{}:                                 {vfs.ErrBadHandle, vfs.ErrStale},
		} {
			e.wantStatus(e.locker().Lock(e.ctx, h, shared(ann, 0, 0)), want...)
			e.wantStatus(e.locker().Unlock(e.ctx, h, shared(ann, 0, 0)), want...)
			_, _, err := e.locker().TestLock(e.ctx, h, shared(ann, 0, 0))
			e.wantStatus(err, want...)
		}
	}},
	{"rights", func(e *env) {
		// A file that a caller may not read it cannot lock, and one
		// that it may not write it cannot lock exclusively, unless it owns the file.
		e.locker()
		if !e.config.Callers {
			e.Skip("this file system acts for one caller only")
		}
		h := e.owned(e.public(0o777), "file", fileHow(0o604))
		my, their := asLocker(e, owner), asLocker(e, other)
		e.ok(their.Lock(e.ctx, h, shared(ben, 0, 0)))
		e.wantStatus(their.Lock(e.ctx, h, alone(ben, 0, 0)), vfs.ErrAccess)
		e.wantStatus(my.Lock(e.ctx, h, alone(ann, 0, 0)), vfs.ErrLocked) // whatever the view
		e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0})
		e.wantStatus(their.Lock(e.ctx, h, shared(ben, 0, 1)), vfs.ErrAccess)
		_, _, err := their.TestLock(e.ctx, h, shared(ben, 0, 1))
		e.wantStatus(err, vfs.ErrAccess)
		e.ok(their.Unlock(e.ctx, h, shared(ben, 0, 0))) // a holder may always unlock
		e.ok(my.Lock(e.ctx, h, alone(ann, 0, 0)))
	}},
	{"one-at-a-time", lockContended},
	{"cancelled", func(e *env) {
		h, ctx := e.mkfile(e.dir, "file", ""), e.ended()
		e.lock(h, alone(ann, 0, 1))
		e.cancelled("lock", e.locker().Lock(ctx, h, alone(ben, 5, 0)))
		e.cancelled("unlock", e.locker().Unlock(ctx, h, alone(ann, 0, 0)))
		_, _, err := e.locker().TestLock(ctx, h, alone(ben, 0, 0))
		e.cancelled("testlock", err)
		e.cancelled("release", e.locker().ReleaseLocks(ctx, func(*vfs.Owner) bool { return true }))
		e.wantHolder(h, alone(ben, 0, 0), alone(ann, 0, 1))
		e.wantFree(h, alone(ann, 5, 0))
	}},
	{"model", lockModel},
}

// locker is the power of e.fs, or the end of the test.
func (e *env) locker() vfs.Locker {
	e.Helper()
	l, ok := vfs.As[vfs.Locker](e.fs)
	if !ok {
		e.Skip("this file system has no locks")
	}
	return l
}

func locksOf(client, id string) (o vfs.Owner) {
	o.Client = client
	o.N = uint8(copy(o.ID[:], id))
	return o
}

var (
	ann = locksOf("host-a", "1")
	ben = locksOf("host-b", "1")
)

// alone and shared are locks of n bytes from off.
func alone(o vfs.Owner, off, n uint64) *vfs.Lock {
	return &vfs.Lock{Owner: o, Exclusive: true, Off: off, Len: n}
}

func shared(o vfs.Owner, off, n uint64) *vfs.Lock { return &vfs.Lock{Owner: o, Off: off, Len: n} }

func (e *env) lock(h vfs.Handle, l *vfs.Lock) {
	e.Helper()
	if err := e.locker().Lock(e.ctx, h, l); err != nil {
		e.Fatalf("lock %d+%d: %v", l.Off, l.Len, err)
	}
}

func (e *env) unlock(h vfs.Handle, o vfs.Owner, off, n uint64) {
	e.Helper()
	e.ok(e.locker().Unlock(e.ctx, h, shared(o, off, n)))
}

// locked ends the test unless a lock is refused for that of another owner.
func (e *env) locked(h vfs.Handle, l *vfs.Lock) {
	e.Helper()
	e.wantStatus(e.locker().Lock(e.ctx, h, l), vfs.ErrLocked)
}

// wantFree ends the test unless nothing stands in the way of l.
func (e *env) wantFree(h vfs.Handle, l *vfs.Lock) {
	e.Helper()
	holder, free, err := e.locker().TestLock(e.ctx, h, l)
	e.ok(err)
	if !free {
		e.Fatalf("%+v stands in the way of %+v", holder, l)
	}
}

// wantHolder ends the test unless want stands in the way of l.
func (e *env) wantHolder(h vfs.Handle, l, want *vfs.Lock) {
	e.Helper()
	holder, free, err := e.locker().TestLock(e.ctx, h, l)
	e.ok(err)
	if free || holder != *want {
		e.Fatalf("%+v (free: %t) stands in the way, want %+v", holder, free, want)
	}
}

// asLocker is the power of another caller's view.
func asLocker(e *env, c *vfs.Caller) vfs.Locker {
	e.Helper()
	l, ok := vfs.As[vfs.Locker](e.fs.As(c))
	if !ok {
		e.Fatal("the view of another caller has no locks")
	}
	return l
}

// lockContended has many owners take the same lock. No two may have it at once.
func lockContended(e *env) {
	l := e.locker()
	h := e.mkfile(e.dir, "file", "")
	var holders, won atomic.Int32
	e.together(func(worker int) error {
		o := locksOf("host", fmt.Sprint(worker))
		for range rounds {
			switch err := l.Lock(e.ctx, h, alone(o, 0, 0)); {
			case errors.Is(err, vfs.ErrLocked):
				continue
			case err != nil:
				return err
			}
			if n := holders.Add(1); n != 1 {
				return fmt.Errorf("%d hold what is one's alone", n)
			}
			won.Add(1)
			holders.Add(-1)
			if err := l.Unlock(e.ctx, h, alone(o, 0, 0)); err != nil {
				return err
			}
		}
		return nil
	})
	if won.Load() == 0 {
		e.Error("nobody has ever had the lock")
	}
	e.wantFree(h, alone(ann, 0, 0))
}
