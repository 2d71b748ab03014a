package bench

import (
	"context"
	"sync"
)

// batch is a caller that makes n calls at once and waits for all of them.
type batch struct {
	caller
	n int
}

// inBatches makes c a caller of n calls at once.
func inBatches(c caller, n int) caller {
	if n == 1 {
		return c
	}
	return &batch{c, n}
}

func (b *batch) op(ctx context.Context) (moved, error) {
	errs := make([]error, b.n)
	var calls sync.WaitGroup
	for i := range errs {
		calls.Go(func() { _, errs[i] = b.caller.op(ctx) })
	}
	calls.Wait()
	var failed batchError
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	m := moved{calls: b.n - len(failed)}
	if len(failed) == 0 {
		return m, nil
	}
	return m, failed
}
