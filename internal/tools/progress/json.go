package progress

import (
	"encoding/base64"
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
type jsonLines struct{ w io.Writer }

// JSON returns a Renderer that writes one JSON object a line to w. Each has "time" (RFC 3339) and
// "type". Type "progress" has the counters, "seconds" and "totals_final". An event has its own
// type, with "kind", "path" and "message", and for a failure "error" with "code" and "message"; if a server has stopped answering, or answers again,
// also "server", "since" and "until". "summary" comes last, with the fields of the task's
// summary. A path that is not UTF-8 has "path_base64" beside it, with its bytes.
func JSON(w io.Writer) Renderer { return &jsonLines{w: w} }

func (j *jsonLines) Interval() time.Duration { return jsonInterval }

func (j *jsonLines) Progress(s *Snapshot) error {
	b := head(s.Time, "progress")
	b = appendCounts(b, s)
	return j.line(append(b, '}'))
}

func (j *jsonLines) Event(now time.Time, e *Event) error {
	b := head(now, e.Type)
	for _, f := range [...]struct{ name, value string }{{"kind", e.Kind}, {"path", e.Path}, {"message", e.Message}} {
		if f.value != "" {
			b = appendJSON(append(b, `,"`+f.name+`":`...), f.value)
		}
	}
	if e.Err != nil {
		b = appendJSON(append(b, `,"error":{"code":`...), fault.Code(e.Err))
		b = append(appendJSON(append(b, `,"message":`...), fault.Text(e.Err)), '}')
	}
	if e.Server != "" {
		b = appendJSON(append(b, `,"server":`...), e.Server)
		b = appendTime(b, "since", e.Since)
		b = appendTime(b, "until", e.Until)
	}
	if !utf8.ValidString(e.Path) {
		b = append(b, `,"path_base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, []byte(e.Path))
		b = append(b, '"')
	}
	return j.line(append(b, '}'))
}

func (j *jsonLines) Summary(s *Snapshot, v any) error {
	b := head(s.Time, "summary")
	if v == nil {
		return j.line(append(appendCounts(b, s), '}'))
	}
	fields, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	if len(fields) < 2 || fields[0] != '{' {
		return fmt.Errorf("summary: %T does not marshal to an object", v)
	}
	if len(fields) > 2 {
		b = append(b, ',')
	}
	return j.line(append(b, fields[1:]...))
}

// head begins an object.
func head(t time.Time, kind string) []byte {
	b := append(make([]byte, 0, 512), `{"time":"`...)
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	return appendJSON(append(b, `","type":`...), kind)
}

// appendTime appends a field with a time, unless the time is zero.
func appendTime(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	b = append(b, `,"`+name+`":"`...)
	return append(t.UTC().AppendFormat(b, time.RFC3339Nano), '"')
}

func appendCounts(b []byte, s *Snapshot) []byte {
	for c, n := range s.Counts[:MoreErrors] { // which is for Items alone
		b = append(b, `,"`+counterNames[c]+`":`...)
		b = strconv.AppendUint(b, n, 10)
	}
	b = append(b, `,"seconds":`...)
	b = strconv.AppendFloat(b, s.Elapsed.Seconds(), 'f', 3, 64)
	b = append(b, `,"totals_final":`...)
	return strconv.AppendBool(b, s.Closed)
}

// line writes b and the end of line in one call, so that lines of other writers do not mix in.
func (j *jsonLines) line(b []byte) error {
	_, err := j.w.Write(append(b, '\n'))
	return err
}
