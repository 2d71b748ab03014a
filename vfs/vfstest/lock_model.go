package vfstest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

// Sizes of the model: owners, bytes, steps.
const (
	lockModelOwners = 3
	lockModelBytes  = 16
	lockModelSteps  = 1500
)

// lockModel compares random locks with an array that says of each byte which owner
// holds it how.
func lockModel(e *env) {
	l := e.locker()
	h := e.mkfile(e.dir, "file", "")
	rnd := rand.New(rand.NewPCG(modelSeed, 0))
	var held [lockModelOwners][lockModelBytes]uint8 // 1: shared, 2: alone
	for step := range lockModelSteps {
		me := rnd.IntN(lockModelOwners)
		off := rnd.IntN(lockModelBytes)
		n := 1 + rnd.IntN(lockModelBytes-off)
		kind := uint8(rnd.IntN(3))
		lock := &vfs.Lock{Owner: locksOf("model", fmt.Sprint(me)), Exclusive: kind == 2, Off: uint64(off), Len: uint64(n)}
		if kind == 0 {
			e.ok(l.Unlock(e.ctx, h, lock))
			fill(held[me][off:off+n], 0)
			continue
		}
		clash := false
		for who := range held {
			clash = clash || who != me && slices.ContainsFunc(held[who][off:off+n], func(k uint8) bool { return k+kind > 2 && k > 0 })
		}
		holder, free, err := l.TestLock(e.ctx, h, lock)
		e.ok(err)
		if free == clash {
			e.Fatalf("step %d: free: %t, want %t; it is %v", step, free, !clash, held)
		}
		if !free {
			e.holds(held, &holder)
		}
		switch err := l.Lock(e.ctx, h, lock); {
		case clash:
			e.wantStatus(err, vfs.ErrLocked)
		case err != nil:
			e.Fatalf("step %d: %v", step, err)
		default:
			fill(held[me][off:off+n], kind)
		}
	}
}

func fill(p []uint8, v uint8) {
	for i := range p {
		p[i] = v
	}
}

// holds ends the test unless the model has that lock, no wider and no narrower.
func (e *env) holds(held [lockModelOwners][lockModelBytes]uint8, l *vfs.Lock) {
	e.Helper()
	for who := range held {
		if l.Owner != locksOf("model", fmt.Sprint(who)) {
			continue
		}
		kind := uint8(1)
		if l.Exclusive {
			kind = 2
		}
		row, from, to := held[who], int(l.Off), int(l.Off+l.Len)
		if l.Len == 0 || to > len(row) || (from > 0 && row[from-1] == kind) || (to < len(row) && row[to] == kind) ||
			slices.ContainsFunc(row[from:to], func(k uint8) bool { return k != kind }) {
			e.Fatalf("%+v is said to be held, it is %v", l, row)
		}
		return
	}
	e.Fatalf("a lock of nobody's: %+v", l)
}
