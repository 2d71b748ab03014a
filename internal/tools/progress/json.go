package progress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/base/fault"
)

// jsonInterval is the time between two progress events.
const jsonInterval = time.Second

// jsonLines is the renderer of JSON.
type jsonLines struct {
	w     io.Writer
	speed speed
}

// JSON returns a Renderer that writes one JSON object a line to w. Each has "time" (RFC 3339) and
// "type". Type "progress" has the counters, "seconds" and "totals_final", rates of
// the last five seconds, "seconds_left" where that can be told, and the loads of servers. An event has its own
// type, with "kind", "path" and "message", and for a failure "error" with "code", "message" and perhaps "advice"; if a server has stopped answering, or answers again,
// also "server", "since" and "until". "summary" comes last, with the fields of the task's
// summary. A path that is not UTF-8 has "path_base64" beside it, with its bytes.
func JSON(w io.Writer) Renderer { return &jsonLines{w: w} }

func (j *jsonLines) Interval() time.Duration { return jsonInterval }

func (*jsonLines) loads() bool { return true }

// progressLine is an event of type "progress".
type progressLine struct {
	counts *counts
	rest   progressRest
}

// progressRest is what follows the counters.
type progressRest struct {
	Items   uint64   `json:"items_per_second"` // of the last five seconds
	Bytes   uint64   `json:"bytes_per_second"` // likewise
	Left    *float64 `json:"seconds_left,omitempty"`
	Servers []Load   `json:"servers,omitempty"`
	Team    *Team    `json:"team,omitempty"`
}

// MarshalJSON has the counters first.
func (p *progressLine) MarshalJSON() ([]byte, error) {
	b, err := p.counts.MarshalJSON()
	if err != nil {
		return nil, err
	}
	rest, err := json.Marshal(&p.rest)
	if err != nil {
		return nil, err
	}
	b[len(b)-1] = ','
	return append(b, rest[1:]...), nil
}

func (j *jsonLines) Progress(s *Snapshot) error {
	p := &progressLine{counts: (*counts)(s), rest: progressRest{Servers: s.Loads, Team: s.Team}}
	p.rest.Bytes, p.rest.Items = j.speed.rates(s)
	if d, ok := left(s, p.rest.Bytes); ok {
		seconds := d.Round(time.Millisecond).Seconds()
		p.rest.Left = &seconds
	}
	return j.line(s.Time, "progress", p)
}

// eventLine is an event in JSON.
type eventLine struct {
	Kind      string      `json:"kind,omitempty"`
	Path      string      `json:"path,omitempty"`
	Message   string      `json:"message,omitempty"`
	Error     *fault.JSON `json:"error,omitempty"`
	Server    string      `json:"server,omitempty"`
	Since     *time.Time  `json:"since,omitempty"`
	Until     *time.Time  `json:"until,omitempty"`
	PathBytes []byte      `json:"path_base64,omitempty"` // if the path is not UTF-8
}

func (j *jsonLines) Event(now time.Time, e *Event) error {
	x := eventLine{Kind: e.Kind, Path: e.Path, Message: e.Message, Server: e.Server}
	if e.Err != nil {
		x.Error = &fault.JSON{Code: fault.Code(e.Err), Message: fault.Text(e.Err), Advice: e.Advice}
	}
	if e.Server != "" {
		x.Since, x.Until = inUTC(e.Since), inUTC(e.Until)
	}
	if !utf8.ValidString(e.Path) {
		x.PathBytes = []byte(e.Path)
	}
	return j.line(now, e.Type, &x)
}

// inUTC is t for a field that is left out if t is zero.
func inUTC(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (j *jsonLines) Summary(s *Snapshot, v any) error {
	if v == nil {
		v = (*counts)(s)
	}
	return j.line(s.Time, "summary", v)
}

// counts marshals to a Snapshot's counters.
type counts Snapshot

// MarshalJSON has the counters in their order.
func (c *counts) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, n := range c.Counts[:MoreErrors] { // which is for Items alone
		b = append(b, `"`+counterNames[i]+`":`...)
		b = append(strconv.AppendUint(b, n, 10), ',')
	}
	b = append(b, `"seconds":`...)
	b = strconv.AppendFloat(b, c.Elapsed.Seconds(), 'f', 3, 64)
	b = append(b, `,"totals_final":`...)
	return append(strconv.AppendBool(b, c.Closed), '}'), nil
}

// line writes one call for each line, so that lines of other writers do not mix in.
func (j *jsonLines) line(now time.Time, kind string, v any) error {
	b, err := AppendObject(nil, now, kind, v)
	if err != nil {
		return err
	}
	_, err = j.w.Write(b)
	return err
}

// AppendObject appends the line that every event of every command is: an object that begins with
// "time", which is now (RFC 3339), and "type", which is kind, a plain word, and goes on with the fields of v, which
// marshals to an object. What is not printable is escaped.
func AppendObject(line []byte, now time.Time, kind string, v any) ([]byte, error) {
	fields, err := json.Marshal(v)
	if err != nil {
		return line, fmt.Errorf("%s: %w", kind, err)
	}
	if len(fields) < 2 || fields[0] != '{' {
		return line, fmt.Errorf("%s: %T does not marshal to an object", kind, v)
	}
	line = appendTime(line, now)
	line = append(line, `,"type":"`...)
	line = append(append(line, kind...), '"')
	if len(fields) > len("{}") {
		line = append(line, ',')
	}
	return append(append(line, fault.CleanJSON(fields[1:])...), '\n'), nil
}

// timeHead is what stands before the time of a line.
const timeHead = `{"time":"`

func appendTime(line []byte, now time.Time) []byte {
	line = now.UTC().AppendFormat(append(line, timeHead...), time.RFC3339Nano)
	return append(line, '"')
}

// AppendAnew appends lines that AppendObject has made, with now as their time. A writer whose lines wait for others says so
// when they were written, so that times do not go backwards.
func AppendAnew(to, lines []byte, now time.Time) []byte {
	for line := range bytes.Lines(lines) {
		if old, ok := bytes.CutPrefix(line, []byte(timeHead)); ok {
			_, line, _ = bytes.Cut(old, []byte{'"'})
			to = appendTime(to, now)
		}
		to = append(to, line...)
	}
	return to
}
