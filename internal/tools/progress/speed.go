package progress

import "time"

const (
	// rateSpan is how far back a rate looks.
	rateSpan = 5 * time.Second
	// rateSamples bounds the samples for a rate: one for each rewrite of a terminal within rateSpan,
	// and an older one. At the bound the oldest is dropped.
	rateSamples = int(rateSpan/terminalInterval) + 1
)

// sample is how much was done at one time.
type sample struct {
	at           time.Duration
	bytes, items uint64
}

// speed finds how fast a task is from what was done at several times.
type speed struct{ past []sample }

// rates are the bytes and items a second over the last rateSpan, or since the start if that is shorter.
func (v *speed) rates(s *Snapshot) (bytes, items uint64) {
	now := sample{s.Elapsed, s.Counts[Bytes], s.Items()}
	for len(v.past) > 1 && (now.at-v.past[1].at >= rateSpan || len(v.past) >= rateSamples) {
		v.past = append(v.past[:0], v.past[1:]...)
	}
	var from sample
	if len(v.past) > 0 {
		from = v.past[0]
	}
	v.past = append(v.past, now)
	took := (now.at - from.at).Seconds()
	if took <= 0 {
		return 0, 0
	}
	per := func(now, from uint64) uint64 { return uint64(float64(now-min(from, now)) / took) }
	return per(now.bytes, from.bytes), per(now.items, from.items)
}
