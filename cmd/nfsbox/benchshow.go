package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/bench"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/silence"
)

// measure runs a verb and prints the result. set, if not nil, fills in the verb's own options.
func (f *benchFlags) measure(e *env, verb string, set func(*bench.Options) error) error {
	o, err := f.options(e, verb, f.URL)
	if err == nil && set != nil {
		err = set(&o)
	}
	if err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	show := f.shower(e, verb)
	o.Each = show.each
	o.Dial = append(o.Dial, watched(e, show.onSilence())...)
	res, err := bench.Run(e.ctx, o)
	show.clear()
	if res == nil {
		return benchError(err)
	}
	if show.err == nil {
		show.err = errors.Join(show.result(res), show.stays(res))
	}
	if f.HTML != "" {
		err = errors.Join(err, writePage(f.HTML, func(w io.Writer) error { return res.WriteHTML(w, show.samples) }))
	}
	if show.err != nil {
		err = errors.Join(err, fmt.Errorf("output: %w", show.err))
	}
	return errors.Join(benchError(err), res.Failures())
}

// maxSamples bounds the seconds that a page shows. Later ones are in its figures, but
// not in its curve.
const maxSamples = int(bench.MaxDuration / time.Second)

// benchShow shows a measurement.
type benchShow struct {
	mu     sync.Mutex // during the measurement: messages about silent servers come from other goroutines
	out    *bufio.Writer
	stderr io.Writer
	verb   string
	fold   func(text string, indent int) string // to the width of the terminal that out is
	width  func() int                           // of the terminal that stderr is
	line   bool                                 // the terminal has a line that is rewritten
	drawn  bool
	quiet  bool
	json   bool
	csv    bool
	err    error // the first error of the output

	chart   bool // keep the samples for a page
	samples []bench.Sample
}

func (f *benchCommon) shower(e *env, verb string) *benchShow {
	return &benchShow{
		out: bufio.NewWriter(e.stdout), stderr: e.stderr, verb: verb, fold: e.fold, width: e.width,
		line: e.tty && !f.NoProgress, quiet: f.NoProgress, json: f.JSON, csv: f.CSV, chart: f.HTML != "",
	}
}

func (s *benchShow) each(x bench.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chart && len(s.samples) < maxSamples {
		s.samples = append(s.samples, x)
	}
	switch {
	case s.err != nil:
	case s.json && !s.quiet:
		s.err = s.event("progress", x)
	case s.line:
		s.draw(sampleText(s.verb, &x))
	}
}

// sampleText is what the line on a terminal shows of a second; the most important first, since a
// narrow terminal cuts its end off.
func sampleText(verb string, x *bench.Sample) string {
	text := fmt.Sprintf("%s: %s/s", verb, progress.Count(uint64(x.OpsPerSecond)))
	if x.Errors != 0 {
		text += fmt.Sprintf(", %s errors", progress.Count(x.Errors))
	}
	if x.Bytes != 0 {
		text += fmt.Sprintf(", %s/s", progress.Size(uint64(x.BytesPerSecond)))
	}
	if x.Entries != 0 {
		text += fmt.Sprintf(", %s entries/s", progress.Count(uint64(x.EntriesPerSecond)))
	}
	return text + fmt.Sprintf(", p99 %s, %.0f s, %s operations", progress.Micros(x.Latency.P99), x.Seconds, progress.Count(x.Ops))
}

// draw rewrites the line. Its last column stays free: a line that wraps cannot be rewritten.
func (s *benchShow) draw(text string) {
	s.drawn = true
	_, s.err = io.WriteString(s.stderr, progress.Erase+progress.Cut(text, max(s.width()-1, 1)))
}

func (s *benchShow) clear() {
	if s.drawn && s.err == nil {
		s.drawn = false
		_, s.err = io.WriteString(s.stderr, progress.Erase)
	}
}

func (s *benchShow) onSilence() silence.Watch {
	return silence.Tell(func(e *silence.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.clear()
		switch {
		case s.err != nil:
		case s.json:
			s.err = s.event(e.Type, e)
		default:
			_, s.err = io.WriteString(s.stderr, e.Line())
		}
	})
}

func (s *benchShow) event(kind string, v any) error {
	line, err := progress.AppendObject(nil, time.Now(), kind, v)
	if err != nil {
		return err
	}
	if _, err := s.out.Write(line); err != nil {
		return err
	}
	return s.out.Flush()
}

func (s *benchShow) result(res *bench.Result) error {
	s.clear()
	switch {
	case s.json:
		return s.event("summary", res)
	case s.csv:
		return s.table(res)
	}
	if _, err := s.out.WriteString(s.fold(benchText(res), rowText)); err != nil {
		return err
	}
	return s.out.Flush()
}

// stays says which files upload has left, and how to remove them.
func (s *benchShow) stays(res *bench.Result) error {
	if res.Verb != "upload" || res.Ops == 0 || s.quiet {
		return nil
	}
	_, err := fmt.Fprintf(s.stderr,
		"nfsbox: the files stay in %s; nfsbox bench delete with the same flags, or nfsbox bench clean, removes them\n", res.Dataset.Directory)
	return err
}

func (s *benchShow) table(r *bench.Result) error {
	float := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	count := func(x uint64) string { return strconv.FormatUint(x, 10) }
	server, threads := "", ""
	if r.CPU.ServerPerOp != nil {
		server = float(*r.CPU.ServerPerOp)
	}
	if r.ServerThreads != nil {
		threads = strconv.Itoa(*r.ServerThreads)
	}
	var header, line []string
	for _, c := range [...]struct{ name, value string }{
		{"verb", r.Verb}, {"url", r.URL}, {"concurrency", strconv.Itoa(r.Concurrency)}, {"size", strconv.Itoa(r.Size)},
		{"ops", count(r.Ops)}, {"errors", count(r.Errors)}, {"seconds", float(r.Seconds)}, {"ops_per_second", float(r.OpsPerSecond)},
		{"bytes_per_second", float(r.BytesPerSecond)}, {"entries_per_second", float(r.EntriesPerSecond)},
		{"mean_us", float(r.Latency.Mean)}, {"p50_us", float(r.Latency.P50)}, {"p90_us", float(r.Latency.P90)},
		{"p99_us", float(r.Latency.P99)}, {"p999_us", float(r.Latency.P999)}, {"max_us", float(r.Latency.Max)},
		{"client_cpu_us_per_op", float(r.CPU.ClientPerOp)}, {"server_cpu_us_per_op", server},
		{"allocs_per_op", float(r.AllocsPerOp)}, {"rpcs", count(r.RPCs)}, {"retransmits", count(r.Retransmits)},
		{"server_threads", threads},
	} {
		header, line = append(header, c.name), append(line, c.value)
	}
	w := csv.NewWriter(s.out)
	if err := w.WriteAll([][]string{header, line}); err != nil {
		return err
	}
	return s.out.Flush()
}

// rowText is the column in which the texts of a result begin.
const rowText = 12

func benchText(r *bench.Result) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-*s "+format+"\n", append([]any{rowText - 1, name}, args...)...)
	}
	size := ""
	if r.Size != 0 {
		size = " of " + progress.Size(uint64(r.Size))
	}
	if r.Batch != 0 {
		size = " in batches of " + progress.Count(uint64(r.Batch))
	}
	row("bench", "%s%s, %s at once, %s", r.Verb, size, progress.Count(uint64(r.Concurrency)), progress.Clean(r.URL))
	row("operations", "%s in %.3f s, after %s for warm-up; %s failed", progress.Count(r.Ops), r.Seconds, progress.Count(r.WarmUpOps), progress.Count(r.Errors))
	row("rate", "%s/s", progress.Count(uint64(r.OpsPerSecond)))
	if r.Bytes != 0 {
		row("data", "%s, %s/s", progress.Size(r.Bytes), progress.Size(uint64(r.BytesPerSecond)))
	}
	if r.Entries != 0 {
		row("entries", "%s, %s/s", progress.Count(r.Entries), progress.Count(uint64(r.EntriesPerSecond)))
	}
	l := &r.Latency
	row("latency", "mean %s, 50%% %s, 90%% %s, 99%% %s, 99.9%% %s, longest %s",
		progress.Micros(l.Mean), progress.Micros(l.P50), progress.Micros(l.P90), progress.Micros(l.P99), progress.Micros(l.P999), progress.Micros(l.Max))
	row("client", "%s of processor time, %.1f allocations and %s an operation",
		progress.Micros(r.CPU.ClientPerOp), r.AllocsPerOp, progress.Size(uint64(r.AllocBytesPerOp)))
	for _, line := range serverLines(r) {
		row("server", "%s", line)
	}
	commits := ""
	if r.Commits != 0 {
		commits = fmt.Sprintf(" (%s COMMIT)", progress.Count(r.Commits))
	}
	if r.Dataset != nil {
		row("files", "%s", datasetLine(r))
	}
	if r.Connections == 0 && r.BytesOut == 0 {
		row("calls", "%s", progress.Count(r.RPCs))
		return b.String()
	}
	row("RPCs", "%s%s, %s sent again, %s timed out, %s reconnects; %s sent, %s received",
		progress.Count(r.RPCs), commits, progress.Count(r.Retransmits), progress.Count(r.Timeouts), progress.Count(r.Reconnects),
		progress.Size(r.BytesOut), progress.Size(r.BytesIn))
	return b.String()
}

func serverLines(r *bench.Result) (lines []string) {
	if r.CPU.ServerPerOp != nil {
		line := progress.Micros(*r.CPU.ServerPerOp) + " of processor time an operation"
		if r.ServerThreads != nil {
			line += fmt.Sprintf(", %s threads at most", progress.Count(uint64(*r.ServerThreads)))
		}
		lines = append(lines, line)
	}
	if r.ServerOps == nil {
		return lines
	}
	line := progress.Count(*r.ServerOps) + " calls counted there"
	switch {
	case r.CountsMatch == nil:
	case *r.CountsMatch:
		line += ", the same as here"
	default:
		line += ", NOT the same as here: others use it, or these figures are wrong"
	}
	return append(lines, line)
}

func datasetLine(r *bench.Result) string {
	line := fmt.Sprintf("%s in %s, seed %d", progress.Count(r.Dataset.Files), r.Dataset.Directory, r.Dataset.Seed)
	if r.Verb != "upload" {
		return line
	}
	if r.Dataset.Sync {
		line += "; each on the disk when its operation ended"
	} else {
		line += "; not synced"
	}
	if !r.Dataset.Atomic {
		line += "; written in place"
	}
	return line
}
