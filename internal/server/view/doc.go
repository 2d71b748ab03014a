// Package view is the live view of a running server: one page of charts, the JSON
// from which the page and `nfsbox top` are drawn, and an answer for those who ask
// whether the server is well.
//
// # One side computes
//
// The rooms of a server keep counters that only grow; a reader wants rates and
// the latency of the last seconds. These are computed here, once for each
// interval, from two snapshots of the counters, and nobody else computes any.
// There are three reasons. A quantile of an interval is that of the difference of
// two histograms, each a thousand counters a procedure, which would otherwise
// travel to every reader. The page and the terminal cannot disagree on what they
// are merely told. And ten readers cost what one does: the server is asked for its
// counters at a fixed pace, by one goroutine, watched or not, so that a reader
// that comes late sees the minutes before as well.
//
// A counter that has gone backwards began again (an export was taken out of
// service and put back): what it counts now is then all that came since. A server
// that began again says so by the time of its start, upon which a reader
// forgets what it has seen before.
//
// # What travels
//
// GET /view.json is a [Frame]: the figures of the last interval, and the points of
// the charts. A reader that has some already names the last one it has, as in
// ?after=17, and gets those behind it. Readers ask again and again, and hold no
// connection meanwhile: there is nobody to keep count of.
//
// # Names are hostile
//
// Names of exports, clients and jobs may come from a peer. They travel as JSON,
// cut to a bounded length, and the page hands them to the browser as text, never
// as markup; its Content-Security-Policy forbids everything that is not a file of
// this package. No other site may frame it. Code that shows a [Frame] elsewhere has
// to clean names for that place.
//
// The package knows no server: the code that has the counters fills in a [Snapshot].
package view
