// Package hands does to single files what a job has decided: a job's own hands, or those of workers
// on many machines.
//
// # Who decides
//
// A [Coordinator] is where the job runs. The job walks, keeps its record, makes directories, links and
// nodes, and decides what is copied, compared or removed; none of that knows of workers. Only the work
// at a regular file goes through its [Hands]. So a job with workers copies, skips, counts and reports
// what a job without them does.
//
// # Batches
//
// Files of one directory that are waited for at once become a batch: 256 at most, or as many as have
// come when for 3 ms none does (50 ms, while workers have 512 files or more). It goes to workers through a package queue's broker. A worker claims a batch before it
// works at it, reports files as they are done, and settles the batch when the coordinator has taken
// over the last report. So a worker that is killed costs the files that it had in its hands, and had not
// reported, a second copy. A broker that loses everything costs none: what is not claimed is dealt again.
//
// A batch that a worker has claimed is its own as long as it is heard of: nobody begins it anew meanwhile, not even this
// worker. After that it is whose claim comes next. If [queue.MaxLeases] workers have begun with it, and none has finished any
// file, its files have failed. While no worker at all is heard of, the broker is away, and no batch is taken from its worker.
//
// The next worker of a batch first removes the temporaries of the one before. That one, if it lives, begins with no file unless
// it has heard lately that the batch is its own, so none of its temporaries comes later. So what is late replaces nothing
// that is done.
//
// What a worker cannot do (it does not find the directory, or the server does not answer it) it declines.
// That is done here: a job that would end well without workers does so with them.
//
// # The end
//
// When a run is closed its queue goes, and whatever a worker asks, it hears that the run is over. Those that have files
// in their hands which nobody waits for remove the temporaries and take leave, and [Coordinator.Close] waits for that.
//
// # Trust
//
// Whoever may write to the broker may put anything there. A message names no object by its handle (package wire): a
// worker finds each file by names, below a place that its own user has allowed. A batch is claimed with its
// digest, so that one that the coordinator has not dealt is dropped. The job's description has no such seal: workers refuse one
// that somebody has put in its place, as that of another job, and the coordinator puts its own back. A report counts only for the attempt
// that its worker has claimed, and if it can be true; a report is believed beyond that, as a worker's word is what the job has.
package hands
