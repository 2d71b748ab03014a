package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/base/wait"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
)

const (
	// DefaultParallel is how many files a worker works at, at once, if Options do not say.
	DefaultParallel = 64
	// MaxParallel is the most files at once.
	MaxParallel = 1024

	// maxChunks bounds the chunks in flight, of up to transfer.MaxChunk bytes each.
	maxChunks = 64
	// maxRuns is how many jobs a worker takes part in at once. Further ones wait until one has ended.
	maxRuns = 16
	// lookEvery is how often the broker is asked for jobs.
	lookEvery = time.Second
)

// Options say how to work.
type Options struct {
	Broker   queue.Broker
	Allow    []Allowed // what may be touched
	Open     Open      // opens an allowed place
	Name     string    // for people: WHO bytes of it are told
	Parallel int       // files at once; 0: DefaultParallel
	MaxLoad  int       // calls of each class under way; 0: as many as suit the server
	MaxRate  uint64    // bytes a second of each job; 0: no bound
	Pool     *bufpool.Pool
	Random   io.Reader // for identities and the names of temporaries; concurrent use
	Log      *slog.Logger
}

// Worker takes part in jobs.
type Worker struct {
	o      Options
	slots  chan struct{} // holds one element for each file that is worked at
	budget *transfer.Budget
}

// New makes a worker.
func New(o Options) *Worker {
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	return &Worker{o: o, slots: make(chan struct{}, min(o.Parallel, MaxParallel)), budget: transfer.NewBudget(maxChunks)}
}

// key tells runs apart.
type key struct{ name, run string }

// described is a run as the broker has described it, which may not be as its coordinator has.
type described struct {
	key
	spec [sha256.Size]byte
}

// Run takes part in the jobs of the broker that work where the worker may, until soft ends: then it
// begins with no more files, reports those under way, and returns nil. When hard ends it leaves these,
// too, and removes their temporaries. An error says that the broker cannot be used.
func (w *Worker) Run(hard, soft context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	var mu sync.Mutex
	joined := make(map[key]bool) // runs that it takes part in
	refused := make(map[described]bool)
	for {
		jobs, err := w.o.Broker.Jobs(soft)
		switch {
		case soft.Err() != nil:
			return nil
		case errors.Is(err, queue.ErrBroker):
			return err
		case err != nil:
			w.o.Log.Warn("look for jobs", "error", err)
		}
		there := make(map[described]bool)
		mu.Lock()
		for _, j := range jobs {
			d := described{key{j.Name, j.Run}, sha256.Sum256(j.Spec)}
			there[d] = true
			if joined[d.key] || refused[d] || len(joined) >= maxRuns {
				continue
			}
			joined[d.key] = true
			all.Go(func() {
				no := w.takePart(hard, soft, j)
				mu.Lock()
				defer mu.Unlock()
				delete(joined, d.key) // it may come again
				if no {
					refused[d] = true
				}
			})
		}
		for d := range refused {
			if err == nil && !there[d] {
				delete(refused, d)
			}
		}
		mu.Unlock()
		if wait.For(soft, lookEvery) != nil {
			return nil
		}
	}
}

// takePart takes part in a run, and says how that ended. It reports whether the run was refused.
func (w *Worker) takePart(hard, soft context.Context, j queue.Job) (refused bool) {
	log := w.o.Log.With("job", j.Name)
	err := w.join(hard, soft, j)
	_, refused = errors.AsType[*refusedError](err)
	switch {
	case refused:
		log.Warn("refused", "why", err)
	case soft.Err() != nil:
		log.Info("left, as the worker ends")
	case errors.Is(err, queue.ErrNobody):
		log.Debug("without a coordinator", "why", err) // it may come back; it was killed
	case errors.Is(err, errEnded), errors.Is(err, errOver), errors.Is(err, queue.ErrLost):
		log.Info("over", "why", err)
	case err != nil:
		log.Warn("left", "why", err)
	}
	return refused
}
