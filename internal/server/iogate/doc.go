// Package iogate limits how many of a server's calls may block a thread at once.
//
// A file has no readiness to wait for: a call that reads what is not in memory, syncs, or
// opens by name, holds a thread until the disk is done. Go starts another thread for
// whatever else is to run, never gives one back, and ends the process at ten thousand. A
// server of files would have as many threads as it ever had callers at once. A goroutine
// that waits for a place holds no thread. So this package admits as many calls as there
// are to be threads, and the others wait.
//
// # Enter and Leave
//
// A [Gate] is one process' way to its disks, and has Options.Threads places. Each export
// has its [Lanes], one for each [Class] of work. Every call that may block is made between
// Enter and Leave, by the goroutine that wants it: handing work to a pool costs more than
// the work, and a thread that has taken on a caller's identity cannot serve another.
// While no call waits and places are plenty, Enter and Leave are a few atomic additions.
//
// Some places are kept for each lane. So slow syncs and cold reads, however many, never
// make a lookup wait, nor does one export's dead disk make another export wait: see
// keptShare for how many. All other places are for any call. When there are none, calls
// get in by turns: lane after lane, in a lane client after client, and each client's in
// the order in which they came. A client with thousands of waiting calls delays others no
// more than one with a single call.
//
// The queue has an end (Options.Queue), and a wait has a limit (Options.Patience). Beyond
// either, Enter returns [ErrFull], and the caller's client has to come back later. A
// server should have stopped reading from its clients by then.
//
// # Kinds
//
// [Lanes.TryRead] asks the kernel for what it can give without blocking, and takes no
// place. For most reads that is everything.
//
// Auto does that first, and then makes calls in the calling goroutine. A read of what is
// not in memory, or a sync, is known by then to wait for the disk: it gives its processor
// back to the scheduler beforehand ([Blocking]). None makes calls in the calling goroutine
// as they come, without a bound.
//
// Go and C have a pool make the data calls ([Lanes.Pread] and those beside it): of
// goroutines, or of POSIX threads. They are there to be compared with, as GoFsBench has
// both (docs/gofsbench.md). C needs cgo and the build tag nfsbox_cthreads; its threads can
// have real-time priority and a processor each. If a kind cannot be had, because of the
// build or the system, Auto takes its place, and [Snapshot] says why.
//
// Threads counts as many as may be blocked at once. C has its own besides those of the Go
// runtime that metadata blocks.
//
// # Locks
//
// Gate.mu is the only lock in Enter and Leave, and nothing is waited for with it held. A
// pool's backend has its own, taken without Gate.mu.
package iogate
