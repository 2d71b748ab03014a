package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/nfsbox/nfsbox/internal/tools/bench"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

type benchCompareCmd struct {
	A string `arg:"" place:"" name:"A" help:"The URL of one target."`
	B string `arg:"" place:"" name:"B" help:"The URL of the other. Ratios are B to A."`
	benchCommon
	Verb   string `required:"" placeholder:"VERB" help:"What to measure: any verb of bench but clean."`
	Rounds int    `default:"7" placeholder:"N" help:"How often each target is measured (default: 7)."`

	ServerPIDB     *int   `name:"server-pid-b" placeholder:"PID" help:"The process of B's server, if it is not that of --server-pid."`
	ServerMetricsB string `name:"server-metrics-b" placeholder:"URL" help:"The metrics of B's server, if they are not those of --server-metrics."`

	batchFlags
	tagFlag
	filesFlags
	storeFlags
	Random   bool      `help:"read: at random places."`
	Stable   bool      `help:"write: FILE_SYNC, instead of UNSTABLE and COMMIT."`
	NoCommit bool      `help:"write: leave COMMIT out."`
	Names    bool      `help:"list: names alone, by READDIR."`
	Through  bool      `help:"read, write: with our client's read-ahead and write-behind."`
	FileSize *byteSize `placeholder:"BYTES" help:"read, write: bytes of each file that is made."`
}

func (*benchCompareCmd) Help() string {
	return `Measures two targets with the same verb and flags, in turns: A B, B A, A B, and so on, so that what
changes with time changes both. It prints each figure of both (the median of all rounds) and the ratio
of B to A: of the two runs of a round, the median, the least and the greatest. A ratio whose least and
greatest lie on both sides of 1 says nothing.

What differs between the targets stands in their URLs: of NFS any argument, such as localio=require or
nconnect=4; of the file API encoding=json and http2=true. The files that verbs need are made before,
in directories of its own, nfsbox-bench-compare-a-... and -b-... (--tag NAME: nfsbox-bench-NAME-a-...), and
all are removed in the end; before each round of upload the directory is emptied. Flags that the verb has
no use for are refused.

With --json each run has a line of "type":"round": round, side ("a" or "b"), and the fields of a summary;
the last line, of "type":"summary", has verb, concurrency, size, rounds, complete, a and b (url, ops, errors,
faults, failed_rounds, counts_match) and figures: name, better ("more" or "less"), a, b, and ratio with median, min and max.

  nfsbox bench compare --verb getattr -c 64 nfs://old/export nfs://new/export
  nfsbox bench compare --verb upload -c 500 -n 20000 nfs://h/e http://h:9999/e
  nfsbox bench compare --verb echo http://h:99/ 'http://h:99/?encoding=json'`
}

func (c *benchCompareCmd) side(e *env, url string) (bench.Options, error) {
	o, err := c.options(e, c.Verb, url)
	if err != nil {
		return o, err
	}
	o.Random, o.Stable, o.NoCommit, o.Names, o.Through = c.Random, c.Stable, c.NoCommit, c.Names, c.Through
	if c.FileSize != nil {
		o.FileSize = int64(*c.FileSize)
	}
	o.Tag = c.Tag
	c.storeFlags.set(&o)
	return o, errors.Join(c.batchFlags.set(&o), c.filesFlags.set(&o, true))
}

func (c *benchCompareCmd) Run(e *env) error {
	a, errA := c.side(e, c.A)
	b, errB := c.side(e, c.B)
	if err := errors.Join(errA, errB); err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	switch {
	case c.Rounds < 1:
		return &exitError{status: exitUsage, err: fmt.Errorf("--rounds %d: at least one is needed", c.Rounds)}
	case c.ServerPIDB != nil:
		b.ServerPID = *c.ServerPIDB
	}
	if c.ServerMetricsB != "" {
		b.ServerMetrics = c.ServerMetricsB
	}
	show := c.shower(e, c.Verb)
	opts := watched(e, show.onSilence())
	a.Dial, b.Dial = append(a.Dial, opts...), append(b.Dial, opts...)
	done, err := bench.Compare(e.ctx, bench.CompareOptions{A: a, B: b, Rounds: c.Rounds, Each: show.round})
	show.clear()
	if done == nil {
		return benchError(err)
	}
	if show.err == nil {
		show.err = show.comparison(done)
	}
	if c.HTML != "" {
		err = errors.Join(err, writePage(c.HTML, done.WriteHTML))
	}
	if show.err != nil {
		err = errors.Join(err, fmt.Errorf("output: %w", show.err))
	}
	return errors.Join(benchError(err), done.Failures())
}

func benchError(err error) error {
	switch {
	case errors.Is(err, bench.ErrUsage):
		return &exitError{status: exitUsage, err: err}
	case errors.Is(err, bench.ErrUnreachable):
		return &exitError{status: exitUnreachable, err: err}
	}
	return err
}

// writePage writes a page. It draws all of it before it creates the file.
func writePage(name string, draw func(io.Writer) error) error {
	var page bytes.Buffer
	err := draw(&page)
	if err == nil {
		err = os.WriteFile(name, page.Bytes(), 0o666)
	}
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}

func (s *benchShow) round(r *bench.Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
	case s.json && !s.quiet:
		s.err = s.event("round", r)
	case s.line:
		s.draw(fmt.Sprintf("%s: round %d, %s: %s/s, p99 %s, %s errors", s.verb, r.Round,
			strings.ToUpper(r.Side), progress.Count(uint64(r.OpsPerSecond)), progress.Micros(r.Latency.P99), progress.Count(r.Errors)))
	}
}

func (s *benchShow) comparison(c *bench.Comparison) error {
	switch {
	case s.json:
		return s.event("summary", c)
	case s.csv:
		return s.compareTable(c)
	}
	if _, err := s.out.WriteString(compareText(c)); err != nil {
		return err
	}
	return s.out.Flush()
}

func (s *benchShow) compareTable(c *bench.Comparison) error {
	float := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	lines := [][]string{{"verb", "figure", "better", "a", "b", "ratio_median", "ratio_min", "ratio_max", "rounds", "a_url", "b_url", "a_errors", "b_errors"}}
	for _, f := range c.Figures {
		lines = append(lines, []string{
			c.Verb, f.Name, f.Better, float(f.A), float(f.B), float(f.Ratio.Median), float(f.Ratio.Min), float(f.Ratio.Max),
			strconv.Itoa(c.Rounds), c.A.URL, c.B.URL, strconv.FormatUint(c.A.Errors, 10), strconv.FormatUint(c.B.Errors, 10),
		})
	}
	if err := csv.NewWriter(s.out).WriteAll(lines); err != nil {
		return err
	}
	return s.out.Flush()
}

func compareText(c *bench.Comparison) string {
	var b strings.Builder
	cut := ""
	if !c.Complete {
		cut = ", cut short"
	}
	fmt.Fprintf(&b, "compare     %s, %s at once, %d rounds%s\n", c.Verb, progress.Count(uint64(c.Concurrency)), c.Rounds, cut)
	fmt.Fprintf(&b, "A           %s: %s operations, %s failed\n", progress.Clean(c.A.URL), progress.Count(c.A.Ops), progress.Count(c.A.Errors))
	fmt.Fprintf(&b, "B           %s: %s operations, %s failed\n", progress.Clean(c.B.URL), progress.Count(c.B.Ops), progress.Count(c.B.Errors))
	for _, line := range append(c.A.Warnings("A", c.Rounds), c.B.Warnings("B", c.Rounds)...) {
		fmt.Fprintln(&b, line)
	}
	// A strings.Builder returns no errors.
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "figure\tA\tB\tB/A\tleast\tgreatest\tbetter\t")
	for _, f := range c.Figures {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%.3f\t%.3f\t%.3f\t%s\t\n", f.Name, progress.Number(f.A), progress.Number(f.B), f.Ratio.Median, f.Ratio.Min, f.Ratio.Max, f.Better)
	}
	_ = w.Flush()
	return b.String()
}
