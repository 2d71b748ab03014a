package top

import (
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// column is a column of a table: its heading and its cells.
type column struct {
	head  string
	cells []string
	left  bool // aligned to the left; numbers are aligned to the right
	spare bool // left out where the screen is narrow, the last one first
}

// table is a heading and rows.
type table struct{ columns []column }

func (t *table) add(cells ...string) {
	for i := range t.columns {
		t.columns[i].cells = append(t.columns[i].cells, cells[i])
	}
}

func (t *table) rows() int { return len(t.columns[0].cells) }

const gap = 2 // between columns

func (t *table) lines(width, n int) []string {
	columns := append([]column(nil), t.columns...)
	widths := fit(&columns, width, n)
	out := make([]string, 0, n+1)
	for row := -1; row < n; row++ {
		var b strings.Builder
		for i := range columns {
			c := &columns[i]
			cell := c.head
			if row >= 0 {
				cell = c.cells[row]
			}
			cell = cut(cell, widths[i])
			pad := strings.Repeat(" ", widths[i]-progress.Columns(cell))
			if i > 0 {
				b.WriteString(strings.Repeat(" ", gap))
			}
			if c.left {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		out = append(out, strings.TrimRight(cut(b.String(), width), " "))
	}
	return out
}

// fit finds each column's width. If all are too wide together, spare ones are left out, and then
// the first is cut.
func fit(columns *[]column, width, n int) []int {
	for {
		total, spare := -gap, -1
		widths := make([]int, len(*columns))
		for i := range *columns {
			c := &(*columns)[i]
			widths[i] = progress.Columns(c.head)
			for _, cell := range c.cells[:n] {
				widths[i] = max(widths[i], progress.Columns(cell))
			}
			total += widths[i] + gap
			if c.spare {
				spare = i
			}
		}
		if total <= width {
			return widths
		}
		if spare < 0 {
			widths[0] = max(widths[0]-(total-width), 1)
			return widths
		}
		*columns = append((*columns)[:spare:spare], (*columns)[spare+1:]...)
	}
}
