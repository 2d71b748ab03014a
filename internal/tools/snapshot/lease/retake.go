package lease

import (
	"context"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Patience is for how long [Retake] goes on asking. Then the last error is returned.
const Patience = time.Hour

// Retake takes a lease in the place of one that was lost: as [Take], but where that fails, as the store cannot be reached or
// somebody else has it, it is tried again each minute.
func Retake(ctx context.Context, store object.Store, o Options) (*Lease, error) {
	for begun := o.Now(); ; {
		l, err := Take(ctx, store, o)
		if err == nil || ctx.Err() != nil || o.Now().Sub(begun) >= Patience {
			return l, err
		}
		pause := time.NewTimer(refresh)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, context.Cause(ctx)
		}
	}
}
