package ls

import (
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// gap is how many spaces stand between two columns.
const gap = 2

// maxColumns bounds the columns; a wider terminal stays empty on its right.
const maxColumns = 64

// Columns lays names out in as many columns as a terminal of the given width holds, downwards
// as ls does, with an end of line behind each row.
func (s *Style) Columns(entries []Entry, width int) string {
	if len(entries) == 0 {
		return ""
	}
	widths := make([]int, len(entries))
	for i := range entries {
		widths[i] = progress.Columns(progress.Clean(entries[i].Name))
	}
	rows, columns := fit(widths, width)
	var b strings.Builder
	for row := range rows {
		for at, column := row, 0; at < len(entries); at, column = at+rows, column+1 {
			b.WriteString(s.Name(&entries[at]))
			if at+rows < len(entries) {
				b.WriteString(strings.Repeat(" ", columns[column]-widths[at]+gap))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// fit finds the fewest rows whose columns fit into width, and how wide each column is.
func fit(widths []int, width int) (rows int, columns []int) {
	for n := min(maxColumns, len(widths), max(1, width/(1+gap)+1)); n > 1; n-- {
		rows = (len(widths) + n - 1) / n
		columns = columnWidths(widths, rows)
		sum := (len(columns) - 1) * gap
		for _, w := range columns {
			sum += w
		}
		if sum <= width {
			return rows, columns
		}
	}
	return len(widths), columnWidths(widths, len(widths))
}

func columnWidths(widths []int, rows int) (columns []int) {
	for i, w := range widths {
		if i%rows == 0 {
			columns = append(columns, 0)
		}
		columns[len(columns)-1] = max(columns[len(columns)-1], w)
	}
	return columns
}
