package iogate

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Kind says how work reaches the disk.
type Kind uint8

// The kinds.
const (
	Auto  Kind = iota // without blocking where the kernel can, else as None behind the gate
	None              // in the calling goroutine, without any bound
	Go                // a pool of goroutines
	C                 // POSIX threads through cgo; needs the build tag nfsbox_cthreads
	URing             // io_uring
)

var kindNames = [...]string{Auto: "auto", None: "none", Go: "go", C: "c", URing: "uring"}

func (k Kind) String() string { return kindNames[k] }

// ParseKind is the kind called s.
func ParseKind(s string) (Kind, error) {
	for k, name := range kindNames {
		if s == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("iogate: %q is not one of auto, none, go, c and uring", s)
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

// ErrFull is returned by Enter when the queue is full, or when the wait has
// lasted longer than Options.Patience.
var ErrFull = errors.New("iogate: too much waits for the disk already")

// Options configure a gate; zero values are good ones.
type Options struct {
	Kind     Kind
	Threads  int  // I/O threads, of all exports and classes together
	Priority int  // of them, for kind C: with real-time priority, where the process may
	Affinity bool // for kind C: thread i on processor i modulo their number
	Queue    int  // who may wait, in all
}

// Gate is one process' door to its disks.
type Gate struct{ o Options }

// New makes a gate.
func New(o Options) (*Gate, error) { return &Gate{o: o}, nil }

// Close ends the gate's threads. Nothing may be in progress.
func (g *Gate) Close() error { return nil }

// Export returns the lanes of one export.
func (g *Gate) Export(name string) *Lanes { return &Lanes{g: g} }

// Lanes are the way of one export's work through the gate. A nil *Lanes lets
// everything pass, as Kind None does.
type Lanes struct{ g *Gate }

// Enter waits for a place in the lane of class c; Leave gives it back. client
// is whom the place is for: who has many waiting does not hold up who has few.
// The error is ErrFull, or that of ctx.
func (l *Lanes) Enter(ctx context.Context, c Class, client string) error { return ctx.Err() }

// Leave gives back the place that Enter gave.
func (l *Lanes) Leave(c Class) {}

// TryRead reads what is in memory without a place in any lane, and without
// blocking. ok is false if that cannot be done, and Enter and Pread are the way.
func (l *Lanes) TryRead(fd int, p []byte, off int64) (n int, ok bool) { return 0, false }

// Pread, Pwrite, Fsync and Fdatasync are the system calls, made by whom the kind
// says, for a caller who has a place. Theirs are the errors of the system calls.
// The calling thread's identity does not go along: work that needs it is done by
// the caller itself, between Enter and Leave.
func (l *Lanes) Pread(fd int, p []byte, off int64) (int, error) { return unix.Pread(fd, p, off) }

// Pwrite is described at Pread.
func (l *Lanes) Pwrite(fd int, p []byte, off int64) (int, error) { return unix.Pwrite(fd, p, off) }

// Fsync is described at Pread.
func (l *Lanes) Fsync(fd int) error { return unix.Fsync(fd) }

// Fdatasync is described at Pread.
func (l *Lanes) Fdatasync(fd int) error { return unix.Fdatasync(fd) }
