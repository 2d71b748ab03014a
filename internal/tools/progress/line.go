package progress

import (
	"io"
	"strings"
	"time"
)

const (
	// terminalInterval is how often the line on a terminal is rewritten.
	terminalInterval = 200 * time.Millisecond
	// logInterval is the time between two lines in a log.
	logInterval = 10 * time.Second
)

// Erase takes a line of progress off a terminal.
const Erase = "\r\x1b[K"

// line is the renderer of Line and Bar.
type line struct {
	w     io.Writer
	width func() int // of the terminal, in columns; nil: it is none
	drawn bool       // the cursor is on a line that is to be rewritten
	speed speed
	items bool // they are met, and not copied

	results io.Writer // of what was done, or would be; nil: w
}

// Line returns a Renderer for people who read a log: it writes a line every ten seconds. Events get
// lines of their own.
func Line(w io.Writer) Renderer { return &line{w: w} }

// Bar returns a Renderer for a terminal: it rewrites one line in place, which fits the width, in
// columns, that width returns at that time. Events get lines of their own, above it.
func Bar(w io.Writer, width func() int) Renderer { return &line{w: w, width: width} }

// OfItems makes a Line or a Bar, or returns r as it is: for what is met and not copied. The line says how many items there
// are by now, and how many a second.
func OfItems(r Renderer) Renderer {
	if l, ok := r.(*line); ok {
		l.items = true
	}
	return r
}

// ResultsTo has a Line or a Bar write to w what was done, or would be, where that is what the task is for, or
// returns r as it is.
func ResultsTo(r Renderer, w io.Writer) Renderer {
	if l, ok := r.(*line); ok {
		l.results = w
	}
	return r
}

func (*line) loads() bool { return true }

func (l *line) names() bool { return l.width != nil }

// Interval is 200 ms on a terminal, else 10 s.
func (l *line) Interval() time.Duration {
	if l.width != nil {
		return terminalInterval
	}
	return logInterval
}

func (l *line) clear() string {
	if !l.drawn {
		return ""
	}
	l.drawn = false
	return Erase
}

func (l *line) Progress(s *Snapshot) error {
	if l.width == nil {
		_, err := io.WriteString(l.w, joinParts(l.parts(s))+"\n")
		return err
	}
	// The last column stays free: some terminals wrap a line that fills it, and a line that
	// wraps cannot be rewritten.
	out := l.clear() + fit(l.parts(s), s.Name, max(l.width()-1, 1))
	l.drawn = true
	_, err := io.WriteString(l.w, out)
	return err
}

// Event writes e above the line.
func (l *line) Event(_ time.Time, e *Event) error {
	erase, text := l.clear(), eventText(e)
	if l.results == nil || e.Type != "done" && e.Type != "would" {
		_, err := io.WriteString(l.w, erase+text)
		return err
	}
	if erase != "" {
		if _, err := io.WriteString(l.w, erase); err != nil {
			return err
		}
	}
	_, err := io.WriteString(l.results, strings.TrimPrefix(text, "done: "))
	return err
}

func eventText(e *Event) string {
	var b strings.Builder
	b.WriteString(e.Type)
	for _, part := range [...]string{e.Kind, e.Path, e.Message} {
		if part != "" {
			b.WriteString(": ")
			b.WriteString(Clean(part))
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// Summary writes the line for the last time, with the rate over the whole time. The command
// prints the task's summary itself. If all counters are zero, it only erases the line.
func (l *line) Summary(s *Snapshot, _ any) error {
	if s.Counts == [numCounters]uint64{} {
		_, err := io.WriteString(l.w, l.clear())
		return err
	}
	l.speed = speed{}
	_, err := io.WriteString(l.w, l.clear()+l.text(s)+"\n")
	return err
}

// text shows s whole, and no estimate: "12 of ≥ 34 items, 5.0 MiB of ≥ 1.2 GiB, 3.4 MiB/s, 1 error, 0:07".
func (l *line) text(s *Snapshot) string {
	var all []string
	for _, p := range l.parts(s) {
		if !p.estimate {
			all = append(all, p.text)
		}
	}
	return strings.Join(all, ", ")
}
