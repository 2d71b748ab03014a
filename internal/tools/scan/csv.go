package scan

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// WriteCSV writes all tables as one, with a row for each of theirs: table, label, path, count, bytes, time. Paths are as
// a terminal may show them. A cell that a spreadsheet would take for a formula begins with an
// apostrophe, as OWASP advises.
func (r *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	lines := [][]string{{"table", "label", "path", "count", "bytes", "time"}}
	for i := range r.Tables {
		t := &r.Tables[i]
		for j := range t.Rows {
			x := &t.Rows[j]
			lines = append(lines, []string{
				t.Name, cell(x.Label), cell(progress.Clean(x.Path)), number(x, t.Count, x.Count), number(x, t.Bytes, x.Bytes), moment(x.Time),
			})
		}
	}
	return c.WriteAll(lines)
}

// cell is a text that no spreadsheet takes for a formula.
func cell(text string) string {
	if text != "" {
		switch text[0] {
		case '=', '+', '-', '@', '\t', '\r':
			return "'" + text
		}
	}
	return text
}

// number is a number of a row whose table has such; what is it for people.
func number(x *Row, what string, n uint64) string {
	if what == "" || x.Example() {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
