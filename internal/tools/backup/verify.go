package backup

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// proof is what was read back from the store.
type proof struct {
	*snapshot.Verifier
	objects, size, different atomic.Uint64
}

// readBack has all read back that the snapshot relies on: what the store has already before the writer takes it, and the rest at the end.
func (r *run) readBack() {
	p := new(proof)
	p.Verifier = snapshot.NewVerifier(r.o.Store, snapshot.VerifyOptions{
		Parallel: cap(r.slots),
		Before: func(ctx context.Context, n int) (int, error) {
			n = r.o.Throttle.Part(n)
			return n, r.o.Throttle.Take(ctx, n)
		},
		Done: func(n int64) {
			p.objects.Add(1)
			p.size.Add(uint64(n))
			r.o.Progress.Add(progress.Verified, 1)
		},
		Hurt: func(path string, err error) {
			p.different.Add(1)
			r.o.Progress.Add(progress.Differences, 1)
			r.o.Progress.Report(progress.Event{Type: "difference", Kind: "content", Path: path, Message: fault.Text(err)})
		},
	})
	r.proof = p
	r.w.ReadBack(p.Verifier)
}

// proved takes an object as the earlier snapshot has it, if its bytes are in the store as they were stored. Else it is read, and what is
// damaged is replaced.
func (r *run) proved(ctx context.Context, d *delta.Dir, h vfs.Handle, e *snapshot.Entry, v *verdict) error {
	err := r.w.Whole(ctx, v.old)
	if err == nil {
		return r.reuse(ctx, d, h, e, v)
	}
	if !errors.Is(err, snapshot.ErrDamaged) {
		return err
	}
	r.was.tell(v.from, d.Path(e.Name), err)
	if e.Attr.Type != vfs.TypeReg {
		return r.other(ctx, d, h, e)
	}
	r.damaged(e, v)
	return r.file(ctx, d, h, e, v)
}

// verify reads back what the snapshot needs and was not read back yet, and reports what lacks something.
func (r *run) verify(ctx context.Context, ref snapshot.Ref, sum *Summary) error {
	s, err := snapshot.Open(ctx, r.o.Store, ref)
	if err == nil {
		err = r.proof.Verify(ctx, s)
	}
	sum.Verified, sum.VerifiedBytes, sum.Differences = r.proof.objects.Load(), r.proof.size.Load(), r.proof.different.Load()
	if err != nil {
		return fmt.Errorf("read %s back: %w", ref.Text(), err)
	}
	return nil
}
