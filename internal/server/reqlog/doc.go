// Package reqlog is the log of requests: a random sample of a server's calls, a line
// each, in a file of bounded size.
//
// # The data path comes first
//
// A server asks [Log.Wants] for every call. The answer takes a random number of the
// calling thread and a comparison: no lock, no shared counter, no allocation, no clock.
// A call that is wanted goes to [Log.Put], which copies it into a bounded queue and never
// waits. If the queue is full, the call is left out and counted. One goroutine takes from
// the queue and writes; only it waits for the disk.
//
// How many calls were left out is told by the next line that is written ("left_out"), by
// the last line at the end, and by [Log.Stats].
//
// # By chance
//
// Each call is picked with the same probability, whichever client made it. Taking every
// hundredth call would show only one step of a client with a regular pattern. Taking a
// call by its content, such as its XID, would let clients choose.
//
// # Files
//
// [File] is a file that is rotated at a given size, or after a day. Old files are kept up
// to a given number and age. It can be used for any log. Under systemd the journal does
// this better.
package reqlog
