package main

import (
	_ "embed" // for the page
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

//go:embed report.html
var reportHTML string

const (
	// maxReportCauses bounds the causes that a page tells apart. What comes with a further one is counted
	// with others.
	maxReportCauses = 50
	// maxReportShown is how many items a page names of each cause. Further ones are counted.
	maxReportShown = 20
)

// reportFlags have a page written of a run.
type reportFlags struct {
	Report string `type:"path" placeholder:"FILE" help:"Write a page for a browser to FILE in the end: the verdict, counts, and failures and differences by cause."`
}

// runReport collects what a page says. It is a renderer that gets failures and differences.
type runReport struct {
	file   *wholeFile
	began  time.Time
	causes map[string]*reportCause
}

// reportCause is what items have in common.
type reportCause struct {
	What  string
	N     uint64
	Shown []reportItem
}

// More is how many items are not shown.
func (c *reportCause) More() uint64 { return c.N - uint64(len(c.Shown)) }

// reportItem is an item that has failed, or differs.
type reportItem struct{ Path, Message string }

// begin makes the page's file; it is nil without one.
func (f *reportFlags) begin(e *env) (*runReport, error) {
	file, err := newWhole(e, "report", f.Report)
	if file == nil {
		return nil, err
	}
	return &runReport{file: file, began: time.Now(), causes: make(map[string]*reportCause)}, nil
}

// Interval implements progress.Renderer.
func (*runReport) Interval() time.Duration { return time.Hour }

// Progress implements progress.Renderer.
func (*runReport) Progress(*progress.Snapshot) error { return nil }

// Summary implements progress.Renderer: write does it.
func (*runReport) Summary(*progress.Snapshot, any) error { return nil }

// Event counts a failure, or a difference.
func (r *runReport) Event(_ time.Time, e *progress.Event) error {
	what := "different: " + e.Kind
	if e.Type == "error" {
		if what = "failed: " + fault.Code(e.Err); e.Kind != "" {
			what = "failed: " + e.Kind
		}
	}
	c := r.causes[what]
	if c == nil && len(r.causes) >= maxReportCauses {
		what = "others"
		c = r.causes[what]
	}
	if c == nil {
		c = &reportCause{What: progress.Clean(what)}
		r.causes[what] = c
	}
	if c.N++; len(c.Shown) < maxReportShown {
		c.Shown = append(c.Shown, reportItem{progress.Clean(e.Path), progress.Clean(e.Message)})
	}
	return nil
}

// reportPage is what the template shows.
type reportPage struct {
	Verb, Verdict, When, Error, Command string
	Good                                bool
	Status                              int
	Places, Words                       []string
	Causes                              []*reportCause
	Counts                              []reportCount
}

// reportCount is a number, and what it counts.
type reportCount struct {
	Name string
	N    uint64
}

// ran is a run that a page is about.
type ran struct {
	verb   string
	places []string
	counts map[string]uint64
	print  func(io.Writer)
	err    error
}

// write writes the page. A nil runReport writes nothing.
func (r *runReport) write(e *env, about ran) error {
	if r == nil {
		return nil
	}
	t, err := template.New("page").Funcs(template.FuncMap{"count": progress.Count}).Parse(reportHTML)
	if err != nil {
		return err
	}
	status := exitOK
	for _, one := range joined(about.err) {
		if one != nil {
			status = max(status, statusFor(one))
		}
	}
	if status != exitOK && interrupted(e) {
		status = exitInterrupted
	}
	p := &reportPage{
		Verb: about.verb, Verdict: reportVerdict(about.verb, status), Good: status == exitOK, Status: status, Command: commandLine(e.name, e.args),
		When: fmt.Sprintf("%s, in %s", r.began.Format("2006-01-02 15:04 MST"), time.Since(r.began).Round(time.Millisecond)),
	}
	if exit, ok := errors.AsType[*exitError](about.err); about.err != nil && (!ok || exit.err != nil) {
		p.Error = oneLine(about.err)
	}
	for _, at := range about.places {
		p.Places = append(p.Places, progress.Clean(at))
	}
	var words strings.Builder
	about.print(&words)
	for line := range strings.Lines(words.String()) {
		p.Words = append(p.Words, progress.Clean(strings.TrimSpace(line)))
	}
	p.Causes = slices.SortedFunc(maps.Values(r.causes), func(a, b *reportCause) int { return strings.Compare(a.What, b.What) })
	for _, name := range slices.Sorted(maps.Keys(about.counts)) {
		if n := about.counts[name]; n > 0 && name != "totals_final" {
			p.Counts = append(p.Counts, reportCount{strings.ReplaceAll(name, "_", " "), n})
		}
	}
	return r.file.write(func(w io.Writer) error { return t.Execute(w, p) })
}

// drop removes the file of a page that was not written.
func (r *runReport) drop() error {
	if r == nil {
		return nil
	}
	return r.file.drop()
}

// reportVerdict is an exit status, in large print.
func reportVerdict(verb string, status int) string {
	switch {
	case status == exitInterrupted:
		return "Interrupted"
	case status == exitUnreachable:
		return "Something cannot be reached"
	case status == exitDiffers:
		return "Different"
	case status == exitUsage:
		return "Refused"
	case status != exitOK:
		return "Incomplete"
	case verb == "verify":
		return "The same"
	}
	return "Complete"
}
