// Package view is the live view of a running server: one page of charts, the JSON
// from which the page and `nfsbox top` are drawn, and a health check.
//
// # One side computes
//
// The packages of a server keep counters that only grow; a reader wants rates and
// the latency of the last seconds. Only this package computes these, once for each
// interval, from two snapshots of the counters. There are three reasons. A quantile of
// an interval needs the difference of two histograms with a thousand counters for each
// procedure, which every reader would otherwise have to receive. The page and the
// terminal cannot disagree. And ten readers cost what one does: one goroutine asks the
// server for its counters at a fixed pace, even without readers. So a late reader gets
// the minutes before, too.
//
// A counter that has gone backwards has been reset, as when an export was removed and
// added again: its value is then all that came since. A server that was restarted has
// another start time; a reader then forgets what it has.
//
// # Who does most
//
// Calls and bytes of clients are totals, which the server counts for each connection anyway.
// As which user a client calls, on which files, and how long its calls take is told by a
// sample ([View.Share], [View.Count]): a thousand calls in an interval, or all if there are
// fewer. So a call costs no more than a random number and an atomic load, whatever the load,
// and no lock is shared by all calls. What the sample finds is kept in two summaries of bounded
// size ("space-saving"), in which a new name displaces the one that has done least of late.
//
// # What travels
//
// GET /view.json is a [Frame]: the figures of the last interval, and the points of
// the charts. A reader that has points names the last one, as in ?after=17, and gets
// only later ones. Readers poll, and hold no connection meanwhile, so the server keeps
// no list of them.
//
// # Names are hostile
//
// Names of exports, clients and jobs may come from a peer. They are sent as JSON, cut
// to a bounded length, and the page gives them to the browser as text, never as markup.
// Its Content-Security-Policy forbids everything that is not a file of this package, and
// framing by other sites. Code that shows a [Frame] elsewhere has to clean names for that
// place.
//
// The package knows no server: the code that has the counters fills in a [Snapshot].
package view
