// Package bench measures an NFS server, or nfsbox's file API: so many callers at
// once, so many operations, how long each took, and what it cost on either side.
//
// # What is counted
//
// A run has three parts. In the first everything that is needed is made: the
// connection, and files for verbs that need some. In the second, the warm-up,
// callers work as they will, and nothing is counted. The third is measured, from
// the start of the first operation to the end of the last, and its figures are
// those of the [Result]; Result.WarmUpOps says how many operations the server has
// seen besides. An operation is one procedure call of the size that was asked
// for, unless the server takes less at once, and then it is as many as that
// needs: Result.RPCs has the number. The verbs from upload on are about whole
// files; docs/bench.md has what each of their operations is.
//
// An operation that fails is counted by what went wrong, is not among
// Result.Ops, and does not stop the run. A server that answers nothing any more
// does ([maxFailures], [silence]): that is known when the patience of the client has
// ended, which the URL sets (timeo and retrans; with hard it never ends). A time-out
// counts as one, whatever errno the client gives it.
//
// # What is measured
//
// Verbs use the file system below write-behind and read-ahead, so that the wire
// and the server are measured; with [Options.Through] what an application would
// have is. What reads and writes by local I/O is measured with
// [Options.LocalIO] alone, or through all wrappers. Latencies are those of an
// operation as its caller sees it, with the wait in the client and in the socket:
// with more callers than the server can serve at once, they are mostly that wait.
//
// The harness takes one clock reading and a few atomic additions an operation,
// together some 50 ns of processor time, and no allocation (BenchmarkHarness).
// Client and server on one host share its processors: then the time of the
// server's process ([Options.ServerPID]) says more than the rate. A server of ours
// is asked for its own counts ([Options.ServerMetrics]), and what is reported has
// to agree with them.
//
// # What is left behind
//
// Nothing, but for the datasets of upload, which other verbs work on: delete
// removes one that it knows the flags of, clean all that there are. All
// files have names that begin with [Prefix]; the other verbs' have a random number
// behind it, are created anew or not at all, and removed in the end, also after an error
// and after the context has ended. What has another handle by then is left
// alone.
//
// # Layout
//
// A verb is a function that prepares its [work], and a line in verbs: calls.go has null
// and getattr, files.go those that want what upload has stored. What the verbs about files
// need of a protocol is a [target]: target_nfs.go and target_api.go. run.go and part.go make the operations, server.go and metrics.go
// look at the server, compare.go takes turns with two targets, figure.go says
// what came of them, and page.go and chart.go draw.
package bench
