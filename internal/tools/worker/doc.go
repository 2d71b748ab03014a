// Package worker is the far half of package hands: it takes part in the jobs of a broker, and does the work at
// single files for their coordinators.
//
// # What it touches
//
// A worker takes part in a job if all that the job names lies below places that the worker's user has allowed
// ([Allow]): on the same server, and as the same user. It mounts these places itself, by what its user has
// written, and finds directories and files from there by LOOKUPs, one name at a time: no "..", no
// symbolic link, no handle that came by the broker. So a job, a batch or a coordinator that somebody has
// forged makes it touch no other place.
//
// # Its end
//
// When it is to end it begins with no more files, waits for those under way, reports them, and gives its
// batches back. When it is killed, its leases end: other workers get its batches, and remove the temporaries that it
// has left, which they know by their marks: job, batch and attempt. While a coordinator does not answer, no file
// is begun. If there is none, the run is left after [queue.LeaseTime], or after lostPatience if the broker does not have
// the queue either. If the broker is away, a question waits for [queue.AskTime] first, and it takes about a minute. What a
// worker leaves behind after that has been done, the job removes when it has done a directory.
package worker
