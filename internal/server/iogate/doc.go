// Package iogate bounds how many threads the disk may hold.
//
// A file has no readiness to wait for: a call that reads one that is not in memory,
// syncs one, or opens one by name, holds a thread until the disk is done. Go
// starts another thread for whatever else is to run, never gives one back, and
// ends the process at ten thousand. A server of files would thus have as many
// threads as it ever had callers at once. A goroutine that waits for its turn
// holds no thread, so this package lets in as many as there are to be threads,
// and the others wait.
//
// # Enter and Leave
//
// A [Gate] is the process' door to its disks, and has Options.Threads places.
// Each export has its [Lanes], one for each [Class] of work. Every call that may
// block is made between Enter and Leave, by the goroutine that wants it: to hand
// work to a pool costs more than the work, and a thread that has taken on its
// caller's identity can do nothing for others. While nobody waits and places are
// plenty, Enter and Leave are a few atomic additions.
//
// Some places are kept for each lane, so that slow syncs and cold reads, however
// many, never keep a lookup waiting, nor one export's dead disk another export:
// see keptShare for how many. All others are for any call. Once there are
// none, everybody waits, and gets in by turns: lane after lane, in a lane client
// after client, and each client's in the order in which they came. A client that has
// thousands waiting thus delays others as little as one that has one.
//
// The queue has an end (Options.Queue), and so has patience (Options.Patience).
// Beyond either, Enter returns [ErrFull], and the caller's caller has to come
// back later. A server should have stopped to read from its clients by then.
//
// # Kinds
//
// What is in memory can be read without all that: [Lanes.TryRead] asks the kernel
// for what it can give without blocking, which for most reads is everything.
//
// Auto does that first, and then makes calls in the calling goroutine. What is
// known by then to wait for the disk, a read of what is not in memory or a sync,
// gives its processor back to the scheduler at once ([Blocking]). None makes calls
// in the calling goroutine as they come, and has no bound. Go, C and URing have data
// calls ([Lanes.Pread] and those beside it) made by goroutines, by POSIX threads and
// by the kernel: they are there to be compared, and for disks and kernels that
// differ from those they were measured on. C needs cgo and the build tag
// nfsbox_cthreads; its threads can have real-time priority and a processor each,
// which may keep latency low on a machine that does other work. URing tries
// without blocking first, too, since the way through the ring is dear for what is
// in memory. A kind that is not to be had, because of the build, the kernel or a
// container that forbids it, is replaced by Auto, and [Snapshot] says so.
//
// Threads count as many as can be blocked at once. C has its own besides those
// of the Go runtime that metadata blocks, and URing's kernel keeps workers, as
// many at most, of which those without work end after some seconds.
//
// # Neighbours
//
// Package localfs passes everything through its export's lanes; package daemon
// makes the gate from the configuration and exports its Snapshot. This package
// knows neither.
//
// # Locks
//
// Gate.mu is the only one on the way of Enter and Leave, and nothing is waited
// for with it held. A pool's backend has its own, taken without Gate.mu.
package iogate
