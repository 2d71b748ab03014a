//go:build !linux

package iogate

// choose knows no kind but None here: the others are made of what Linux has.
func choose(o *Options) (k Kind, reason string, p *pool) {
	if o.Kind == None {
		return None, "", nil
	}
	return None, "other kinds need Linux", nil
}

// nowait does not read without blocking here.
type nowait struct{}

func (*nowait) init(Kind) {}

func (*nowait) counts() (hits, misses, untried uint64) { return 0, 0, 0 }

// pool is never made here.
type pool struct{ b backend }

type backend interface {
	threads() threads
	close() error
}
