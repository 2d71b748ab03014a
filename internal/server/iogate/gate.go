package iogate

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Kind says how work reaches the disk.
type Kind uint8

// The kinds.
const (
	Auto  Kind = iota // without blocking where the kernel can, else as None behind the gate
	None              // in the calling goroutine, without any bound
	Go                // a pool of goroutines
	C                 // POSIX threads through cgo; needs the build tag nfsbox_cthreads
	kinds             // how many there are
)

var kindNames = [...]string{Auto: "auto", None: "none", Go: "go", C: "c"}

// String implements fmt.Stringer.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// ParseKind is the kind called s. Its error says which there are, and what to use
// instead of one that there was.
func ParseKind(s string) (Kind, error) {
	if s == "uring" {
		return 0, errors.New(`there is no kind "uring" any more: use auto, which does as well`)
	}
	for k, name := range kindNames {
		if s == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("%q is not one of %s", s, strings.Join(kindNames[:], ", "))
}

// Class is a lane: work of one class does not wait for that of another.
type Class uint8

// The classes.
const (
	Meta Class = iota
	Read
	Write
	Sync
	Classes // how many there are
)

var classNames = [...]string{Meta: "meta", Read: "read", Write: "write", Sync: "sync"}

// String implements fmt.Stringer.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("Class(%d)", uint8(c))
}

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

// Gate is one process' way to its disks.
type Gate struct {
	o      Options
	kind   Kind   // in force
	reason string // why it is not Options.Kind
	pool   *pool  // makes the data calls; nil: the caller does
	nowait nowait

	// What the fast path looks at. It is open while no call waits and fewer than fast
	// are inside: a call that enters then takes no place that is kept for others.
	inside  atomic.Int64
	fast    atomic.Int64
	waiting atomic.Int64 // in the queue, and 1 more while Close waits

	mu      sync.Mutex
	exports map[string]*Lanes // guarded by mu, as all below
	cells   []*cell
	turn    []*lane // lanes in which calls wait, next in turn first
	queued  int
	spare   []*waiter
	closing chan struct{} // closed with the last one inside, once Close is called
}

// New makes a gate. A kind that is not to be had here is replaced by Auto, and
// Snapshot says why; an error means that the options make no sense.
func New(o Options) (*Gate, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	g := &Gate{o: o, exports: make(map[string]*Lanes)}
	g.kind, g.reason, g.pool = choose(&g.o)
	g.nowait.init(g.kind)
	g.keep()
	return g, nil
}

// Kind is the kind in force.
func (g *Gate) Kind() Kind { return g.kind }

// Close refuses calls from now on, those that wait included, with ErrClosed. It waits for
// those inside to leave, and ends the gate's threads.
func (g *Gate) Close() error {
	g.mu.Lock()
	if g.closing != nil {
		g.mu.Unlock()
		return ErrClosed
	}
	g.closing = make(chan struct{})
	g.fast.Store(0)
	g.waiting.Add(1) // so that each call that leaves looks in
	g.dismiss()
	g.mu.Unlock()
	<-g.closing
	if g.pool == nil {
		return nil
	}
	return g.pool.b.close()
}

// Export returns the lanes of the export called name: the same ones each time, until each
// caller has closed them. So a reload of the configuration keeps counts, and calls that
// are under way.
func (g *Gate) Export(name string) *Lanes {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.exports[name]
	if l == nil {
		l = &Lanes{g: g, name: name}
		g.exports[name] = l
		g.settleIn(l)
	}
	l.users++
	return l
}
