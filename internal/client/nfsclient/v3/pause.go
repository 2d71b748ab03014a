package v3

import (
	"context"
	"encoding/binary"
	"math"
	"time"
)

// wait is the waiting of a call that is answered with NFS3ERR_JUKEBOX: for a file on tape, or for an
// overloaded server.
type wait struct {
	most  time.Duration // how long it may last; 0: the client's patience
	tries int           // with that answer
	until time.Time     // when it ends; set at the first of them
}

// over counts one more try with that answer, and reports whether the call's time is over. For a hard
// call it never is, unless most is set.
func (w *wait) over(f *FS) bool {
	now := time.Now()
	if w.tries++; w.tries == 1 {
		switch {
		case w.most != 0:
		case f.opt.Hard:
			w.most = math.MaxInt64
		default:
			w.most = f.RPC.Patience()
		}
		w.until = now.Add(w.most)
	}
	return !now.Before(w.until)
}

// pause waits before the next try: between half of and all of busyMin, doubled with each try up to
// busyMax. The last pause ends when the time is over, before one more try.
func (w *wait) pause(ctx context.Context, f *FS) error {
	d := busyMin
	for i := 1; i < w.tries && d < busyMax; i++ {
		d *= 2
	}
	d = min(d, busyMax)
	var r [4]byte
	f.opt.Rand(r[:])
	d -= time.Duration(uint64(d/2) * uint64(binary.BigEndian.Uint32(r[:])) >> 32)
	timer := time.NewTimer(min(d, time.Until(w.until)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
