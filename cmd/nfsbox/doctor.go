package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

type doctorCmd struct {
	URL   string `arg:"" place:"" name:"URL" help:"nfs://host[:port]/export/path"`
	Read  bool   `help:"Read the beginning of a file as well."`
	Write bool   `help:"Make a small file as well: write, commit, read back, remove."`
	JSON  bool   `help:"Print one line of JSON for each step, then a summary."`
	localFlags
}

func (*doctorCmd) Help() string {
	return `Goes the way to what URL names step by step: the host's name, the portmapper, the connection, MOUNT,
NFS, limits, rights, the name itself, a listing, and local I/O, which leaves the network out where the server is
an nfsbox on this host. Each step is shown with how long it took, what was found and, if it has failed or is
odd, what to do about it. A step takes 15 seconds at most.

Nothing is changed without --write. With it a file whose name begins with ".nfsbox-doctor-" is made, and
removed again: in the directory that URL names, or in the one that holds what it names. The file's times
tell how far the clocks of server and client are apart.

With --json each step is a line with "type":"step", step (its name), result ("ok", "failed" or "skipped"),
seconds, and, where there is something to say, detail, error (code and message) and advice. The last line has
"type":"summary", ok, failed and skipped (numbers of steps), reached (whether what URL names is there) and
seconds.

  nfsbox doctor nfs://filer/export/home
  nfsbox doctor --read --write nfs://filer/export/scratch`
}

// doctorEvent is a step in JSON.
type doctorEvent struct {
	Step    string      `json:"step"`
	Kind    string      `json:"kind,omitempty"` // of "mount": "service", and "directory"
	Result  string      `json:"result"`         // "ok", "failed", "skipped"
	Seconds float64     `json:"seconds"`
	Detail  string      `json:"detail,omitempty"`
	Error   *fault.JSON `json:"error,omitempty"`
	Advice  string      `json:"advice,omitempty"`
}

// doctorSummary is the last event.
type doctorSummary struct {
	OK      int     `json:"ok"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
	Reached bool    `json:"reached"` // the server answered a look-up of what the URL names
	Seconds float64 `json:"seconds"`
}

func (c *doctorCmd) Run(e *env) error {
	if !place.IsURL(c.URL) {
		return &exitError{status: exitUsage, err: fmt.Errorf("%q is no URL; write nfs://host/export/path", c.URL)}
	}
	if _, err := nfsbox.ParseURL(c.URL); err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	opts, err := c.localFlags.options()
	if err != nil {
		return err
	}
	d := &doctor{out: newOutput(e, c.JSON), size: e.size}
	start := time.Now()
	err = nfsbox.Diagnose(e.ctx, c.URL, nfsbox.DiagnoseOptions{Read: c.Read, Write: c.Write}, d.step, append(opts, watched(e, d.out.onSilence())...)...)
	d.sum.Seconds = time.Since(start).Seconds()
	return d.end(err)
}

// doctor shows a diagnosis.
type doctor struct {
	out  *output
	size func() (width, height int) // of the terminal; nil: there is none
	sum  doctorSummary
	err  error // the first error of the output

	mounts bool // MOUNT's service has had its step
}

// step shows one step immediately.
func (d *doctor) step(s nfsbox.Step) {
	x := doctorEvent{Step: s.Name, Result: "ok", Seconds: s.Took.Seconds(), Detail: s.Detail, Advice: s.Advice}
	switch {
	case s.Err != nil:
		x.Result, x.Error = "failed", &fault.JSON{Code: fault.Code(s.Err), Message: fault.Text(s.Err)}
		d.sum.Failed++
	case s.Skipped:
		x.Result = "skipped"
		d.sum.Skipped++
	default:
		d.sum.OK++
	}
	// The server has answered this step, whatever the answer was.
	if s.Name == "mount" {
		if x.Kind = "service"; d.mounts {
			x.Kind = "directory"
		}
		d.mounts = true
	}
	d.sum.Reached = d.sum.Reached || s.Name == "lookup" && s.Err == nil
	if d.err == nil {
		d.err = d.show(&x)
	}
}

func (d *doctor) show(x *doctorEvent) error {
	if d.out.json {
		if err := d.out.event("step", x); err != nil {
			return err
		}
		return d.out.flush()
	}
	width := 0
	if d.size != nil {
		width, _ = d.size()
	}
	if err := d.out.text(stepText(x, width)); err != nil {
		return err
	}
	return d.out.flush()
}

// Columns of the table: the step, the result, how long it took, and what there is to say.
const (
	stepColumn   = 9
	resultColumn = 8
	tookColumn   = 10
	saidColumn   = stepColumn + 1 + resultColumn + 1 + tookColumn + 2

	// minSaid is how many columns what there is to say takes at least; on a narrower terminal it
	// stands below the rest.
	minSaid = 40
)

// stepText is a row of the table, with further lines below it, on a terminal of so many columns; 0
// is any. Texts of the server are cleaned.
func stepText(x *doctorEvent, width int) string {
	result, took := x.Result, ""
	switch x.Result {
	case "failed":
		result, took = "FAILED", progress.Micros(x.Seconds*1e6)
	case "ok":
		took = progress.Micros(x.Seconds * 1e6)
	}
	head, said := fmt.Sprintf("%-*s %-*s %*s", stepColumn, x.Step, resultColumn, result, tookColumn, took), saidColumn
	narrow := width > 0 && width < saidColumn+minSaid
	if narrow {
		head, said = progress.Fold(strings.TrimSpace(x.Step+" "+result+" "+took), width, 2), 2
	}
	room := max(width-said, min(width, 1))
	lines := cleanLines(x.Detail, "", room)
	if x.Error != nil {
		lines = append(lines, cleanLines(x.Error.Message, "", room)...)
	}
	lines = append(lines, cleanLines(x.Advice, "-> ", room)...)
	if !narrow && len(lines) > 0 {
		head, lines = head+"  "+lines[0], lines[1:]
	}
	text := strings.TrimRight(head, " ") + "\n"
	for _, line := range lines {
		text += strings.Repeat(" ", said) + line + "\n"
	}
	return text
}

// cleanLines are the lines of a text, each behind a prefix and broken at width; 0 is any.
func cleanLines(text, prefix string, width int) (lines []string) {
	for line := range strings.Lines(text) {
		line = prefix + progress.Clean(strings.TrimRight(line, "\n"))
		lines = append(lines, strings.Split(progress.Fold(line, width, len(prefix)), "\n")...)
	}
	return lines
}

// end shows the summary and returns the exit status. err is Diagnose's: failed steps have been
// shown already.
func (d *doctor) end(err error) error {
	if d.out.json && d.err == nil {
		if d.err = d.out.event("summary", d.sum); d.err == nil {
			d.err = d.out.flush()
		}
	}
	if d.err != nil {
		return errors.Join(err, d.err)
	}
	switch {
	case d.sum.Failed == 0 && d.sum.OK == 0 && d.sum.Skipped == 0 && err != nil:
		return &exitError{status: exitUsage, err: err} // no step was made
	case d.sum.Failed == 0:
		return err
	case !d.sum.Reached:
		return &exitError{status: exitUnreachable}
	}
	return &exitError{status: exitIncomplete}
}
