// Package wait waits by the clock, for as long as that is wanted.
package wait

import (
	"context"
	"time"
)

// For waits for d, or until ctx has ended: then the error is ctx's.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
