// Package reqlog is the log of requests: some of a server's calls, picked by
// chance, a line each, in a file that is kept from growing without end.
//
// # The data path comes first
//
// A server asks [Log.Wants] for every call. The answer takes a random number of
// the calling thread's own and a comparison: no lock, no counter that processors
// would have to share, no allocation, no clock. One that is wanted is given to
// [Log.Put], which copies it into a bounded queue and never waits: what does not
// fit is counted and left out. One goroutine takes from the queue, writes, and may
// wait for the disk as long as it has to.
//
// What was left out is told by the next line that is written ("left_out"), by the
// last one at the end, and by [Log.Stats].
//
// # By chance
//
// Each call is picked with the same probability, whichever client made it. Every hundredth
// call would show a client with a regular pattern always the same step of it, and
// a choice by what the call holds (its XID, say) would let clients choose.
//
// # Files
//
// [File] is a file that is put aside when it is large enough or a day old; of those
// put aside, as many are kept as is asked, for as long as is asked. It is of use
// for any log. Under systemd the journal does all that better, and none is needed.
package reqlog
