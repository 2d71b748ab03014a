package v3

import (
	"context"
	"encoding/binary"
	"time"
)

// pause waits before a call that was answered with NFS3ERR_JUKEBOX is made for
// the next time: for between half of and all of busyMin, doubled with each try
// up to busyMax.
func (f *FS) pause(ctx context.Context, try int) error {
	d := busyMin
	for i := 1; i < try && d < busyMax; i++ {
		d *= 2
	}
	d = min(d, busyMax)
	var r [4]byte
	f.opt.Rand(r[:])
	d -= time.Duration(uint64(d/2) * uint64(binary.BigEndian.Uint32(r[:])) >> 32)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
