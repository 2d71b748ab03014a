package bench

import (
	"math"
	"slices"
)

// Figure is one figure of both targets.
type Figure struct {
	Name   string  `json:"name"`   // as in Result, those of latency with their unit: "p99_us"
	Better string  `json:"better"` // "more" or "less"
	A      float64 `json:"a"`      // the median of the rounds
	B      float64 `json:"b"`
	Ratio  Spread  `json:"ratio"` // B to A, of the two runs of each round
}

// Spread is what values are like.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// figure is something that both sides have.
type figure struct {
	name   string
	better string
	of     func(*Result) float64 // 0: it has none
}

// figures are what is compared.
var figures = [...]figure{
	{"ops_per_second", "more", func(r *Result) float64 { return r.OpsPerSecond }},
	{"bytes_per_second", "more", func(r *Result) float64 { return r.BytesPerSecond }},
	{"entries_per_second", "more", func(r *Result) float64 { return r.EntriesPerSecond }},
	{"mean_us", "less", func(r *Result) float64 { return r.Latency.Mean }},
	{"p50_us", "less", func(r *Result) float64 { return r.Latency.P50 }},
	{"p90_us", "less", func(r *Result) float64 { return r.Latency.P90 }},
	{"p99_us", "less", func(r *Result) float64 { return r.Latency.P99 }},
	{"p999_us", "less", func(r *Result) float64 { return r.Latency.P999 }},
	{"max_us", "less", func(r *Result) float64 { return r.Latency.Max }},
	{"client_us_per_op", "less", func(r *Result) float64 { return r.CPU.ClientPerOp }},
	{"server_us_per_op", "less", func(r *Result) float64 { return value(r.CPU.ServerPerOp) }},
	{"server_threads", "less", func(r *Result) float64 { return float64(value(r.ServerThreads)) }},
	{"allocs_per_op", "less", func(r *Result) float64 { return r.AllocsPerOp }},
}

// value is what p points to, or zero.
func value[T any](p *T) (x T) {
	if p != nil {
		x = *p
	}
	return x
}

// compare compares a figure, round by round. A figure that is missing in a round
// is none.
func (f *figure) compare(a, b []*Result) (x Figure, ok bool) {
	var as, bs, ratios []float64
	for i := range a {
		va, vb := f.of(a[i]), f.of(b[i])
		if !(va > 0) || !(vb > 0) || math.IsInf(va, 0) || math.IsInf(vb, 0) {
			return x, false
		}
		as, bs, ratios = append(as, va), append(bs, vb), append(ratios, vb/va)
	}
	return Figure{Name: f.name, Better: f.better, A: spread(as).Median, B: spread(bs).Median, Ratio: spread(ratios)}, true
}

// spread sorts xs, which has at least one, and says what they are like.
func spread(xs []float64) Spread {
	slices.Sort(xs)
	n := len(xs)
	return Spread{Median: (xs[(n-1)/2] + xs[n/2]) / 2, Min: xs[0], Max: xs[n-1]}
}
