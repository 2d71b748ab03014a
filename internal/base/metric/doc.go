// Package metric counts without slowing down what it counts: histograms whose
// recording is a few atomic additions, with no lock and no allocation, and
// snapshots of them that can be subtracted, merged and asked for quantiles.
//
// # What a histogram promises
//
// A value lands in a bucket whose width is a sixteenth of the largest power of
// two below it, so that a quantile is off by at most 1/16 of itself, and by
// half of that on average; values below 16 are exact. This is the log-linear
// layout of HdrHistogram. Count, sum and maximum are exact. Values above the
// last bucket, which ends at about 39 hours in nanoseconds, are counted there.
//
// A [Snapshot] is taken bucket by bucket while others record: it may miss what
// is recorded meanwhile, and what it has counted is right. Nothing here knows
// who will read it; exporters stand above.
package metric
