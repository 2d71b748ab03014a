package progress

import (
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// terminalInterval is how often the line on a terminal is rewritten.
	terminalInterval = 200 * time.Millisecond
	// logInterval is the time between two lines in a log.
	logInterval = 10 * time.Second
	// columns is the width to which the line on a terminal is cut. It fits any terminal:
	// a line that wraps cannot be rewritten.
	columns = 79
	// rateSpan is how far back the rate looks.
	rateSpan = 5 * time.Second
	// rateSamples bounds the samples for the rate: one for each rewrite within rateSpan,
	// and an older one. At the bound the oldest is dropped.
	rateSamples = int(rateSpan/terminalInterval) + 1
)

// sample is how many bytes were done at one time.
type sample struct {
	at    time.Duration
	bytes uint64
}

// line is the renderer of Line.
type line struct {
	w        io.Writer
	terminal bool
	drawn    bool // the cursor is on a line that is to be rewritten
	past     []sample
}

// Line returns a Renderer for people: on a terminal it rewrites one line in place, otherwise it
// writes a line every ten seconds. Events get lines of their own.
func Line(w io.Writer, isTerminal bool) Renderer { return &line{w: w, terminal: isTerminal} }

// Interval is 200 ms on a terminal, else 10 s.
func (l *line) Interval() time.Duration {
	if l.terminal {
		return terminalInterval
	}
	return logInterval
}

func (l *line) clear() string {
	if !l.drawn {
		return ""
	}
	l.drawn = false
	return "\r\x1b[K"
}

func (l *line) Progress(s *Snapshot) error {
	text := l.text(s)
	if !l.terminal {
		_, err := io.WriteString(l.w, text+"\n")
		return err
	}
	out := l.clear() + cut(text, columns)
	l.drawn = true
	_, err := io.WriteString(l.w, out)
	return err
}

// Event writes e above the line.
func (l *line) Event(_ time.Time, e *Event) error {
	var b strings.Builder
	b.WriteString(l.clear())
	b.WriteString(e.Type)
	for _, part := range [...]string{e.Kind, e.Path, e.Message} {
		if part != "" {
			b.WriteString(": ")
			b.WriteString(Clean(part))
		}
	}
	b.WriteByte('\n')
	_, err := io.WriteString(l.w, b.String())
	return err
}

// Summary writes the line for the last time, with the rate over the whole time. The command
// prints the task's summary itself. If all counters are zero, it only erases the line.
func (l *line) Summary(s *Snapshot, _ any) error {
	if s.Counts == [numCounters]uint64{} {
		_, err := io.WriteString(l.w, l.clear())
		return err
	}
	l.past = nil
	_, err := io.WriteString(l.w, l.clear()+l.text(s)+"\n")
	return err
}

// text shows s: "12 of ≥ 34 items, 5.0 MiB of ≥ 1.2 GiB, 3.4 MiB/s, 1 error, 0:07".
func (l *line) text(s *Snapshot) string {
	atLeast := "≥ "
	if s.Closed {
		atLeast = ""
	}
	parts := []string{
		Count(s.Items()) + " of " + atLeast + Count(max(s.Counts[FoundItems], s.Items())) + " items",
		Size(s.Counts[Bytes]) + " of " + atLeast + Size(max(s.Counts[FoundBytes], s.Counts[Bytes])),
		Size(l.rate(s)) + "/s",
	}
	for _, c := range [...]struct {
		n         uint64
		one, many string
	}{
		{s.Counts[Differences], "difference", "differences"},
		{s.Counts[Errors], "error", "errors"},
	} {
		switch c.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+c.one)
		default:
			parts = append(parts, Count(c.n)+" "+c.many)
		}
	}
	return strings.Join(append(parts, clock(s.Elapsed)), ", ")
}

// rate is the bytes per second over the last rateSpan, or since the start if that is shorter.
func (l *line) rate(s *Snapshot) uint64 {
	now := sample{s.Elapsed, s.Counts[Bytes]}
	for len(l.past) > 1 && (now.at-l.past[1].at >= rateSpan || len(l.past) >= rateSamples) {
		l.past = append(l.past[:0], l.past[1:]...)
	}
	var from sample
	if len(l.past) > 0 {
		from = l.past[0]
	}
	l.past = append(l.past, now)
	if now.at <= from.at || now.bytes < from.bytes {
		return 0
	}
	return uint64(float64(now.bytes-from.bytes) / (now.at - from.at).Seconds())
}

// cut returns at most n characters of s.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}
