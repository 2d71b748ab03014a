package localio

import "context"

// gate bounds the threads that wait for disks.
type gate struct {
	places chan struct{}
	syncs  chan struct{} // a call that syncs takes one of these first
}

func newGate() gate {
	return gate{make(chan struct{}, maxBlocked), make(chan struct{}, maxSyncs)}
}

// enter waits for a place, which leave returns.
func (g *gate) enter(ctx context.Context) error { return take(ctx, g.places) }

func (g *gate) leave() { <-g.places }

// enterSync waits for a place for a sync or a close, which leaveSync returns. A call that waits
// here holds no other place.
func (g *gate) enterSync() {
	g.syncs <- struct{}{}
	g.places <- struct{}{}
}

func (g *gate) leaveSync() {
	<-g.places
	<-g.syncs
}

func take(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
