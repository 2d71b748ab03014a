// Package metric has counters and histograms of latency for every call: recording takes a few
// atomic additions, no lock and no allocation. Snapshots of histograms can be subtracted, merged and asked for
// quantiles.
//
// # What a histogram promises
//
// A value falls into a bucket whose width is a sixteenth of the largest power of two below it.
// So a quantile is off by at most 1/16 of itself, and by half of that on average; values below
// 16 are exact. This is the log-linear layout of HdrHistogram. Count, sum and maximum are
// exact. Values above the last bucket, which ends at about 39 hours in nanoseconds, are counted
// in it.
//
// A [Snapshot] is taken bucket by bucket during recording: it may miss values that are recorded
// meanwhile, but counts no value that was not recorded. Export formats are up to other
// packages.
package metric
