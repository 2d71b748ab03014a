package scan

import (
	_ "embed" // for the page
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

//go:embed page.html
var pageHTML string

// About says what a report is about.
type About struct {
	Places   []string
	Began    time.Time
	Took     time.Duration
	Failures uint64 // items that could not be looked at
}

// page is what the template shows.
type page struct {
	Places   []string
	When     string
	Failures string // "" if the counts are complete
	Figures  []figure
	Charts   []Table
	Lists    []sheet
}

// figure is a number in large print.
type figure struct{ Value, What string }

// sheet is a table without a chart.
type sheet struct {
	Table
	Times bool
	Most  uint64
}

// WriteHTML writes a page of the report: one file, without a script, that asks for nothing. What it shows of
// names is escaped, and cannot steer anything.
func (r *Report) WriteHTML(w io.Writer, about *About) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"count": progress.Count, "size": progress.Size, "clean": progress.Clean, "date": date, "share": share, "most": most,
	}).Parse(pageHTML)
	if err != nil {
		return err
	}
	p := &page{
		When: fmt.Sprintf("%s, in %s", about.Began.Format("2006-01-02 15:04 MST"), about.Took.Round(time.Millisecond)),
		Figures: []figure{
			{progress.Count(r.Entries), "names"}, {progress.Count(r.Files), "files"}, {progress.Count(r.Dirs), "directories"},
			{progress.Size(r.Bytes), "in files"}, {progress.Size(r.Used), "on disk"}, {progress.Count(r.Symlinks), "symbolic links"},
			{progress.Count(r.Hardlinks), "further names of files"}, {progress.Count(r.Sparse), "sparse files, by " + progress.Size(r.SparseBy)},
		},
	}
	for _, at := range about.Places {
		p.Places = append(p.Places, progress.Clean(at))
	}
	if !r.Complete {
		p.Failures = fmt.Sprintf("%s items could not be looked at. All numbers are at least what is shown.", progress.Count(about.Failures))
	}
	for _, table := range r.Tables {
		if table.Chart {
			p.Charts = append(p.Charts, table)
			continue
		}
		s := sheet{Table: table, Most: most(table.Rows, table.Bytes != "")}
		for _, x := range table.Rows {
			s.Times = s.Times || !x.Time.IsZero()
		}
		p.Lists = append(p.Lists, s)
	}
	return t.Execute(w, p)
}

// date is the day of a time; the page has no room for more.
func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// most is the largest number, or the most bytes, of rows.
func most(rows []Row, bytes bool) (n uint64) {
	for _, x := range rows {
		if bytes {
			n = max(n, x.Bytes)
		} else {
			n = max(n, x.Count)
		}
	}
	return n
}

// share is how long the bar of n is where that of most takes 100.
func share(n, most uint64) string {
	if n == 0 || most == 0 {
		return "0"
	}
	return fmt.Sprintf("%.2f", max(100*float64(n)/float64(most), 0.4))
}
