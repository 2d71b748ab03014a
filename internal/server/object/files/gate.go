package files

import "context"

// lookers is how many calls may look up and open objects of one directory at a time, in this
// process. At the bound a call waits.
const lookers = 64

// gate keeps changes away from calls that have looked a name up, and have not opened yet what it stands for. The
// client of NFS keeps what it has open when it replaces or removes a name, but it has to know. Of
// other hosts it does not know.
type gate struct {
	places chan struct{} // a looker has one, a changer all
	change chan struct{} // has one place: the call that has it may collect the others
}

func newGate() gate {
	return gate{places: make(chan struct{}, lookers), change: make(chan struct{}, 1)}
}

// look calls do while no change is made.
func (g gate) look(ctx context.Context, do func() error) error {
	if err := enter(ctx, g.places); err != nil {
		return err
	}
	defer func() { <-g.places }()
	return do()
}

// alone calls do while nobody looks, and no other change is made.
func (g gate) alone(ctx context.Context, do func() error) error {
	if err := enter(ctx, g.change); err != nil {
		return err
	}
	defer func() { <-g.change }()
	for n := range lookers {
		if err := enter(ctx, g.places); err != nil {
			g.leave(n)
			return err
		}
	}
	defer g.leave(lookers)
	return do()
}

func (g gate) leave(n int) {
	for range n {
		<-g.places
	}
}

func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
