package iogate

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrFull is returned by Enter when the queue is full, or when the wait has
	// lasted longer than Options.Patience.
	ErrFull = errors.New("iogate: too much waits for the disk already")

	// ErrClosed is returned by Enter when the gate is closed, or closing.
	ErrClosed = errors.New("iogate: the gate is closed")
)

// Options configure a gate; zero values are good ones.
type Options struct {
	Kind     Kind
	Threads  int           // I/O threads, of all exports and classes together; DefaultThreads if 0
	Priority int           // of them, for kind C: with real-time priority, where the process may
	Affinity bool          // for kind C: thread i on processor i modulo their number
	Queue    int           // how many may wait, in all; DefaultQueue if 0
	Patience time.Duration // how long one may wait; DefaultPatience if 0
}

func (o *Options) fill() error {
	o.Threads = cmp.Or(o.Threads, DefaultThreads)
	o.Queue = cmp.Or(o.Queue, DefaultQueue)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	switch {
	case int(o.Kind) >= len(kindNames):
		return fmt.Errorf("iogate: no kind has the number %d", o.Kind)
	case o.Threads < MinThreads || o.Threads > MaxThreads:
		return fmt.Errorf("iogate: %d threads: between %d and %d are possible", o.Threads, MinThreads, MaxThreads)
	case o.Priority < 0 || o.Priority > o.Threads:
		return fmt.Errorf("iogate: %d of %d threads with priority", o.Priority, o.Threads)
	case o.Queue < 0 || o.Patience < 0:
		return fmt.Errorf("iogate: a queue of %d and a patience of %v: neither may be negative", o.Queue, o.Patience)
	}
	return nil
}
