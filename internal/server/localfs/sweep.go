//go:build linux

package localfs

import (
	"context"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
)

// maxAged is how many dirty descriptors are synced after one look. The others are at the
// next.
const maxAged = 64

// more reports whether there is something to look at.
func (h *host) more() bool {
	return !h.fds.Empty() || h.mapped != nil && h.mapped.SweepDue()
}

// look closes what was idle for long enough, and has synced what would be if it were
// clean. To close a file may wait until its blocks are free: that takes a place, if
// one is to be had before the end.
func (h *host) look(ctx context.Context) {
	v := &FS{host: h, who: h.creds.Of(nil)}
	aged := h.fds.Age(func(closable, rested []*fdcache.Desc) {
		entered := v.enter(ctx, classMeta) == nil
		for _, d := range closable {
			h.fds.ShutIdle(d)
		}
		for _, d := range rested {
			v.reap(d)
			h.fds.Unpin(d)
		}
		if entered {
			v.end(classMeta)
		}
	})
	if m := h.mapped; m != nil && m.SweepDue() && v.enter(ctx, classMeta) == nil {
		m.Sweep()
		v.end(classMeta)
	}
	if aged && !h.cleaning.Swap(true) {
		h.sweeper.Run(func() {
			defer h.cleaning.Store(false)
			v.cleanAged(ctx)
		})
	}
}

// reap forgets d, which is idle, if a local program has removed it: its blocks become free.
func (v *FS) reap(d *fdcache.Desc) {
	var st linux.Stat
	if st.Of(d.FD) == nil && st.Nlink == 0 {
		_ = v.gone(d.H) // ErrStale, of no call
	}
}

// cleanAged syncs what is dirty and was idle for long enough. An error changes the write
// verifier, as that of any sync.
func (v *FS) cleanAged(ctx context.Context) {
	for range maxAged {
		d := v.fds.Dirty.PinAged()
		if d == nil {
			return
		}
		v.counts.cleaned.Add(1)
		err := v.syncDesc(ctx, d, false)
		v.release(d)
		if err != nil {
			return // the gate is full, or the disk has failed: both may be over at the next look
		}
	}
}

// cleanOldest cleans one dirty descriptor, for a call that needs a descriptor and has a
// place, in which it waits for the disk. If the file is being synced already, it waits for
// that sync, which may wait for a place in the lane for syncs. Calls in that lane wait for
// nothing but the disk.
func (h *host) cleanOldest() bool {
	d := h.fds.Dirty.PinOldest()
	if d == nil {
		return false
	}
	defer h.fds.Unpin(d)
	h.counts.cleaned.Add(1)
	return h.flights.join(context.Background(), d.H, false, func(full bool) error {
		h.counts.syncs.Add(1)
		return h.syncNow(d, full)
	}) == nil
}
