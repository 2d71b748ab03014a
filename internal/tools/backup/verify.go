package backup

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
)

// verify reads back all that the snapshot needs, and reports what lacks something.
func (r *run) verify(ctx context.Context, ref snapshot.Ref, sum *Summary) error {
	s, err := snapshot.Open(ctx, r.o.Store, ref)
	if err != nil {
		return fmt.Errorf("read %s back: %w", ref.Text(), err)
	}
	var objects, size, different atomic.Uint64
	err = s.Verify(ctx, snapshot.VerifyOptions{
		Parallel: cap(r.slots),
		Before: func(ctx context.Context, n int) (int, error) {
			n = r.o.Throttle.Part(n)
			return n, r.o.Throttle.Take(ctx, n)
		},
		Done: func(n int64) {
			objects.Add(1)
			size.Add(uint64(n))
			r.o.Progress.Add(progress.Verified, 1)
		},
		Hurt: func(path string, err error) {
			different.Add(1)
			r.o.Progress.Add(progress.Differences, 1)
			r.o.Progress.Report(progress.Event{Type: "difference", Kind: "content", Path: path, Message: fault.Text(err)})
		},
	})
	sum.Verified, sum.VerifiedBytes, sum.Differences = objects.Load(), size.Load(), different.Load()
	if err != nil {
		return fmt.Errorf("read %s back: %w", ref.Text(), err)
	}
	return nil
}
