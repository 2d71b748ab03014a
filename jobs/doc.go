// Package jobs copies, synchronises, verifies and counts trees from a Go program. It does so between servers and
// directories of this host, in any combination, by the code of nfsbox cp, sync, verify and scan.
//
//	sum, err := jobs.Copy(ctx, "nfs://filer/export/home", "/backup/home", jobs.CopyOptions{})
//
// Directories in which servers show snapshots are left out, and counted, unless [Options.Snapshots] is set.
//
// # Places
//
// A place is an nfs:// URL, host:/export/path, or a path of this host. The source is what has that name: a symbolic
// link is a link, unless a slash follows it. The destination becomes the copy. If it is a directory
// and the source is one, what is in the source goes into it, and it keeps its own mode, owner and times.
// That is simpler than cp(1), whose copy goes into a directory that is there, under its own name. So a
// second call means the same as the first.
//
// STORE::NAME[@ID][/PATH] is a place in a snapshot that nfsbox backup has made, which is read only. While Copy, Sync or Verify
// reads it, a prune of another host keeps it: they wait for one that is under way, for 11 minutes at most, and have a lease in the store.
// Where there can be none they go on, and events of type Note and of kind "lease" say so: an object that is removed meanwhile is an error then.
//
// # What a copy promises
//
// A file appears under its name when it is complete and safe on the disk; until then it has a temporary name
// beside it. What fails does not stop the rest. What vanished, what could not be preserved and what has
// failed is counted in the summary, and told as an [Event]. No name and no link in either tree leads a
// copy out of the destination.
//
// # Errors
//
// nil says that all is there. An error that Is [ErrIncomplete] says that items have failed, or are different
// ([ErrDifferent]), and that all others were done. The summary says how many they are, events say which. Any
// other error says that the job has ended early. It Is [ErrUnreachable], [ErrSilent], [ErrFull], [ErrGone] or
// another one of this package where that is the reason, or the context's. What was copied until then is
// whole and stays. The summary counts in every case.
//
// # Going on
//
// With a [CopyOptions.Record], a directory for this job alone, every finished file is entered in it. The same
// call, made again, passes over files that are recorded, unchanged and still there, however
// the first one ended, kill -9 included. One run has the record at a time; another one gets ErrRecord.
//
// # Progress
//
// A job sends to a channel ([Options.Events]) what has failed, what differs and what else there is to know. A
// few times a second it sends its counters. It closes the channel when it ends. Counters are left out when the channel is
// full; all else waits for the receiver. A program that does not want to know gives no channel. Nothing is logged.
// To end a job, cancel its context: it removes what is unfinished, and returns.
//
// # Load
//
// Each server gets as many calls at once as its client finds to be best, or as many as
// [nfsbox.WithMaxLoad] says. A [Rate] bounds the bytes a second, of one job or of several together, and may
// be changed while they run.
//
// # What it brings
//
// Unlike the packages of the client and the server, this one brings more than the standard library and
// golang.org/x/sys: github.com/zeebo/blake3 for checksums, and what that needs.
package jobs
