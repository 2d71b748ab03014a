package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
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
	id     [16]byte
	slots  chan struct{} // holds one element for each file that is worked at
	budget *transfer.Budget
}

// New makes a worker.
func New(o Options) (*Worker, error) {
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	w := &Worker{o: o, slots: make(chan struct{}, min(o.Parallel, MaxParallel)), budget: transfer.NewBudget(maxChunks)}
	if _, err := io.ReadFull(o.Random, w.id[:]); err != nil {
		return nil, fmt.Errorf("identity of the worker: %w", err)
	}
	return w, nil
}

// key tells runs apart.
type key struct{ name, run string }

// Run takes part in the jobs of the broker that work where the worker may, until soft ends: then it
// begins with no more files, reports those under way, and returns nil. When hard ends it leaves these,
// too, and removes their temporaries. An error says that the broker cannot be used.
func (w *Worker) Run(hard, soft context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	var mu sync.Mutex
	joined := make(map[key]bool) // runs that it takes part in, or has refused
	busy := 0
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
		there := make(map[key]bool)
		mu.Lock()
		for _, j := range jobs {
			k := key{j.Name, j.Run}
			there[k] = true
			if joined[k] || busy >= maxRuns {
				continue
			}
			joined[k] = true
			busy++
			all.Go(func() {
				refused := w.takePart(hard, soft, j)
				mu.Lock()
				defer mu.Unlock()
				busy--
				if !refused {
					delete(joined, k) // the broker may have lost it, and get it again
				}
			})
		}
		for k := range joined {
			if err == nil && !there[k] {
				delete(joined, k)
			}
		}
		mu.Unlock()
		if pause(soft, lookEvery) != nil {
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
	case errors.Is(err, errOver), errors.Is(err, queue.ErrLost):
		log.Info("over", "why", err)
	case err != nil:
		log.Warn("left", "why", err)
	}
	return refused
}
