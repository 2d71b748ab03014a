package jobs

import (
	"sync"
	"time"
)

// SaveEvery is the time between two replacements of job.json while a job runs. At most so much of
// what it had counted is missing in it when the job is killed.
const SaveEvery = 5 * time.Second

// Attend keeps job.json as a run goes on: every SaveEvery it takes over what counts returns, and is
// replaced. Until end has returned, only Attend touches d.Job. told gets the error of a file
// that cannot be replaced, once; the next attempt follows. A stable file is synced each time.
func (d *Dir) Attend(counts func() map[string]uint64, stable bool, told func(error)) (end func()) {
	stop := make(chan struct{})
	var run sync.WaitGroup
	run.Go(func() {
		tick := time.NewTicker(SaveEvery)
		defer tick.Stop()
		failed := false
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			d.Job.Counts = counts()
			if err := d.save(stable); err != nil && !failed {
				failed = true
				told(err)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		run.Wait()
	})
}
