package jobs

import (
	"sync"
	"time"
)

// SaveEvery is the time between two replacements of job.json while a job runs. At most so much of
// what it had counted is missing in it when the job is killed.
const SaveEvery = 5 * time.Second

// Attending says how a run keeps job.json as it goes on, and obeys.
type Attending struct {
	Counts func() map[string]uint64 // what was counted by now
	Obey   func(Order)              // does what the run is told
	Told   func(error)              // learns of a file that cannot be written, once, and of each order that makes no sense
	Stable bool                     // job.json is synced each time
}

// Attend replaces job.json every SaveEvery, and looks for an Order every half second: also for one that was
// given since the record was locked. Until end has returned, only Attend touches d.Job.
func (d *Dir) Attend(a Attending) (end func()) {
	stop := make(chan struct{})
	o := orders{dir: d.Root}
	var run sync.WaitGroup
	run.Go(func() {
		tick := time.NewTicker(askEvery)
		defer tick.Stop()
		failed := false
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			switch order, ok, err := o.next(); {
			case err != nil:
				a.Told(err)
			case ok:
				a.Obey(order)
			}
			if n%int(SaveEvery/askEvery) != 0 {
				continue
			}
			d.Job.Counts = a.Counts()
			if err := d.save(a.Stable); err != nil && !failed {
				failed = true
				a.Told(err)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		run.Wait()
	})
}
