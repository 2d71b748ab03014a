package bench

import (
	_ "embed" // for the page
	"fmt"
	"html/template"
	"io"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

//go:embed page.html
var pageHTML string

// sheet is a page of figures. It has no script and asks for nothing.
type sheet struct {
	Title    string
	Lines    []string
	Warnings []string
	Chart    *chart // nil: none
	Header   []string
	Rows     [][]string
}

// write writes the page. Lines and warnings may hold what a server has said.
func (s *sheet) write(w io.Writer) error {
	for _, lines := range [...][]string{s.Lines, s.Warnings} {
		for i := range lines {
			lines[i] = progress.Clean(lines[i])
		}
	}
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return err
	}
	return t.Execute(w, s)
}

// WriteHTML writes a page of the result. samples are those of its run, in order.
func (res *Result) WriteHTML(w io.Writer, samples []Sample) error {
	s := &sheet{
		Title: "nfsbox bench " + res.Verb,
		Lines: []string{
			redacted(res.URL),
			fmt.Sprintf("%s at once, %s operations in %.3f s, %s failed", progress.Count(uint64(res.Concurrency)),
				progress.Count(res.Ops), res.Seconds, progress.Count(res.Errors)),
		},
		Header: []string{"figure", "value"},
		Rows:   res.rows(),
	}
	if !res.Complete {
		s.Warnings = append(s.Warnings, "The run was cut short.")
	}
	if res.CountsMatch != nil && !*res.CountsMatch {
		s.Warnings = append(s.Warnings, "The server has counted something else: others use it, or these figures are wrong.")
	}
	s.Warnings = append(s.Warnings, complaints(res.Faults)...)
	what, perSecond := "a point for each second", each(samples, func(x *Sample) float64 { return x.OpsPerSecond })
	if len(perSecond) < 2 {
		what, perSecond = "the mean of the run", []float64{res.OpsPerSecond, res.OpsPerSecond}
	}
	s.Chart = newChart(what, perSecond, nil)
	return s.write(w)
}

// complaints are faults as lines.
func complaints(faults []Fault) (lines []string) {
	for _, f := range faults {
		lines = append(lines, fmt.Sprintf("%s times %s: %s", progress.Count(f.Count), f.Kind, f.Example))
	}
	return lines
}

// rows are the figures that all runs have, and then those of some.
func (res *Result) rows() [][]string {
	l := &res.Latency
	rows := [][]string{
		{"operations/s", progress.Number(res.OpsPerSecond)},
		{"bytes/s", progress.Size(uint64(res.BytesPerSecond))},
		{"mean", progress.Micros(l.Mean)}, {"50 %", progress.Micros(l.P50)}, {"90 %", progress.Micros(l.P90)},
		{"99 %", progress.Micros(l.P99)}, {"99.9 %", progress.Micros(l.P999)}, {"longest", progress.Micros(l.Max)},
		{"client's processor time per operation", progress.Micros(res.CPU.ClientPerOp)},
		{"client's allocations per operation", progress.Number(res.AllocsPerOp)},
		{"calls", progress.Count(res.RPCs)},
	}
	if res.CPU.ServerPerOp != nil {
		rows = append(rows, []string{"server's processor time per operation", progress.Micros(*res.CPU.ServerPerOp)})
	}
	if res.ServerThreads != nil {
		rows = append(rows, []string{"server's threads, at most", progress.Count(uint64(*res.ServerThreads))})
	}
	if res.ServerOps != nil {
		rows = append(rows, []string{"calls that the server has counted", progress.Count(*res.ServerOps)})
	}
	return rows
}

// WriteHTML writes a page of the comparison.
func (c *Comparison) WriteHTML(w io.Writer) error {
	s := &sheet{
		Title: "nfsbox bench compare: " + c.Verb,
		Lines: []string{
			"A: " + c.A.URL, "B: " + c.B.URL,
			fmt.Sprintf("%d rounds in turns, %s at once. A ratio is B to A of one round: the median, and the least and the greatest of all rounds.",
				c.Rounds, progress.Count(uint64(c.Concurrency))),
		},
		Header: []string{"figure", "A", "B", "B/A", "least", "greatest", "better"},
	}
	if !c.Complete {
		s.Warnings = append(s.Warnings, "The comparison was cut short.")
	}
	for _, side := range [...]struct {
		name string
		*Side
	}{{"A", &c.A}, {"B", &c.B}} {
		s.Warnings = append(s.Warnings, side.Warnings(side.name, c.Rounds)...)
		s.Warnings = append(s.Warnings, complaints(side.Faults)...)
	}
	for _, f := range c.Figures {
		s.Rows = append(s.Rows, []string{
			f.Name, progress.Number(f.A), progress.Number(f.B), progress.Number(f.Ratio.Median), progress.Number(f.Ratio.Min), progress.Number(f.Ratio.Max), f.Better,
		})
	}
	a, b := sorted(c.Runs)
	rate := func(r **Result) float64 { return (*r).OpsPerSecond }
	s.Chart = newChart("A is blue, B is orange, a point for each round", each(a, rate), each(b, rate))
	return s.write(w)
}
