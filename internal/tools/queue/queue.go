// Package queue deals the batches of a job out to workers on many machines.
//
// A coordinator walks the trees, keeps the job's record and so knows the truth. A worker takes
// a batch of files, works at it, and asks the coordinator about it on the way. The queue
// between them is a convenience: a broker may lose all that it holds. So a coordinator keeps
// each item until its worker has reported it, and deals it out again if nobody works at it.
//
// An item is leased to one worker at a time. A lease that nobody extends ends after
// [LeaseTime], and another worker gets the item. An item that was leased [MaxLeases] times and
// not settled is not leased again.
//
// While the broker cannot be reached, methods wait: until it is back, or their ctx ends. They
// return [ErrBroker] only where waiting is of no use.
//
// What comes out of a queue is hostile input: whoever may write to the broker may have put it
// there. Package queue bounds its length, and its users judge the rest.
package queue

import (
	"context"
	"errors"
	"time"
)

const (
	// MaxItem is the longest item, in bytes. A longer one is refused with ErrTooLong, on
	// either side. A nats-server takes 1 MiB.
	MaxItem = 512 << 10

	// MaxMessage is the longest question or answer, in bytes. A longer one is ErrTooLong.
	MaxMessage = 512 << 10

	// MaxSpec is the longest description of a job, in bytes.
	MaxSpec = 16 << 10

	// LeaseTime is for how long a worker has an item that it does not extend.
	LeaseTime = 10 * time.Second

	// MaxLeases is how often an item is leased. After that it is left to the coordinator,
	// which calls its files failed.
	MaxLeases = 5

	// MaxDealt is how many items a queue holds at once, also those that are leased no more.
	// Deal waits for room.
	MaxDealt = 4096

	// AskTime is how long a question waits for its answer. Then it is ErrNobody.
	AskTime = 30 * time.Second

	// MaxQuestions is how many questions of workers are answered at once. More wait.
	MaxQuestions = 64

	// MaxJobs is how many jobs of a broker are looked at. Further ones are left out.
	MaxJobs = 256
)

var (
	// ErrLost says that the broker has no such queue, or has it no more: its files are gone, or
	// the job has ended. A coordinator opens it anew and deals out what is not done.
	ErrLost = errors.New("the broker does not have the job's queue")
	// ErrNobody says that no coordinator answers questions about the job.
	ErrNobody = errors.New("no coordinator answers")
	// ErrBroker says that the broker cannot be reached or refuses its user.
	ErrBroker = errors.New("the broker cannot be used")
	// ErrTooLong says that an item, a message or a spec is longer than its bound.
	ErrTooLong = errors.New("too long for the queue")
	// ErrForged says that what the broker handed out is not what a Dealer puts into a queue.
	ErrForged = errors.New("the broker handed out what is no item of the job")
	// ErrExpired says that a lease has ended: another worker may have its item.
	ErrExpired = errors.New("the lease has ended")
)

// Job is what a broker says of a job whose batches are dealt out.
type Job struct {
	Name string // of the job, as its user named it: letters, digits, "-", "_" and ".", 1 to 64
	Run  string // of this run of it, 32 hexadecimal digits: no other run has it
	Spec []byte // what workers must know, for them to judge; MaxSpec bytes at most
}

// Item is a batch of a run.
type Item struct {
	ID   uint64 // of the batch, within its run; the same when it is dealt out again
	Body []byte // MaxItem bytes at most
}

// Lease is an item that a worker has for a time.
type Lease struct {
	Item
	Attempt int // from 1 to MaxLeases; it counts on only as long as the broker keeps its files

	// Token is the broker's own.
	Token any
}

// Dealer is a coordinator's end of one run's queue. Its methods may be called concurrently.
type Dealer interface {
	// Deal adds an item. It returns when the broker has it, or an error: ErrLost where the whole
	// queue is gone. The same item may be dealt again, and is then leased again: what is left
	// of the earlier one goes, and its leases mean nothing any more.
	Deal(ctx context.Context, it Item) error

	// Announce puts the job's description into the queue once more, in place of what is there by
	// now: strangers may have put another one there. ErrLost says that the whole queue is gone.
	Announce(ctx context.Context) error

	// Answer has reply answer the questions of workers, up to MaxQuestions at once, until ctx
	// ends or the connection is lost for good. A question has MaxMessage bytes at most, and is
	// valid until reply returns; the ctx of reply ends with Answer, which waits for it. It outlives outages of the broker, and the queue. Several
	// Answers of a run share its questions.
	Answer(ctx context.Context, reply func(ctx context.Context, question []byte) (answer []byte)) error
}

// Taker is a worker's end of one run's queue. Its methods may be called concurrently.
type Taker interface {
	// Take waits for an item, and leases it. ErrLost says that the queue is gone: when it has been
	// opened anew, Take goes on. It does so after ErrTooLong and ErrForged as well: what was wrong is gone
	// from the queue.
	// A Take whose ctx ends may have leased an item: that comes again when the lease has ended.
	Take(ctx context.Context) (*Lease, error)

	// Extend leases the item for another LeaseTime from now on. ErrExpired says that it is too
	// late for that.
	Extend(ctx context.Context, l *Lease) error

	// Settle gives the lease back: the item is done, or (done is false) someone else may have it.
	// An item is done also where the lease has ended, until it is dealt again. An end of the
	// lease without that is no error.
	Settle(ctx context.Context, l *Lease, done bool) error

	// Ask puts a question to the run's coordinator, and waits for its answer: AskTime at most.
	// ErrNobody says that there is no coordinator now. A question whose answer an outage may
	// have lost is put again, so a coordinator may have to answer it twice.
	Ask(ctx context.Context, question []byte) (answer []byte, err error)
}

// Broker has the queues of many jobs. Its methods may be called concurrently.
type Broker interface {
	// Open makes the queue of a run, or finds it. It removes those of earlier runs of the same Name.
	Open(ctx context.Context, j Job) (Dealer, error)

	// Remove removes a run's queue, with what is in it. Takers get ErrLost.
	Remove(ctx context.Context, j Job) error

	// Jobs lists the runs that have a queue, up to MaxJobs.
	Jobs(ctx context.Context) ([]Job, error)

	// Join takes part in a run. ErrLost says that it has ended.
	Join(ctx context.Context, j Job) (Taker, error)

	// Close ends the connection. All that waits returns an error.
	Close() error
}
