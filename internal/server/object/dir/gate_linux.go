package dir

import (
	"context"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// places is the Gate of a store that is given none.
type places chan struct{}

func (p places) Enter(ctx context.Context, _ Class) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p places) Leave(Class) { <-p }

// gated runs f with a place at the gate.
func (s *Store) gated(ctx context.Context, c Class, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.o.Gate.Enter(ctx, c); err != nil {
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		return fmt.Errorf("%w: %w", object.ErrBusy, err)
	}
	defer s.o.Gate.Leave(c)
	return f()
}
