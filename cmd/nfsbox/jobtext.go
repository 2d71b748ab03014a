package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/jobs"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// jobEvent is a record, in JSON.
type jobEvent struct {
	Name    string            `json:"name"`
	Named   bool              `json:"named"`
	State   jobs.State        `json:"state"`
	Killed  bool              `json:"killed"`
	By      string            `json:"by,omitempty"`
	Command string            `json:"command,omitempty"`
	Source  jobs.Text         `json:"source,omitempty"`
	Dest    jobs.Text         `json:"dest,omitempty"`
	Target  jobs.Target       `json:"target,omitempty"`
	Args    []jobs.Text       `json:"args"`
	Dir     jobs.Text         `json:"dir,omitempty"`
	Error   string            `json:"error,omitempty"`
	Runs    uint64            `json:"runs"`
	Begun   *time.Time        `json:"begun,omitempty"`
	Ended   *time.Time        `json:"ended,omitempty"`
	At      *time.Time        `json:"at,omitempty"`
	Counts  map[string]uint64 `json:"counts"`
	Limits  *jobs.Limits      `json:"limits,omitempty"`
	Files   uint64            `json:"files_recorded"`
	Record  jobs.Text         `json:"record"`
}

func newJobEvent(r *jobs.Record) *jobEvent {
	j := &r.Job
	e := &jobEvent{
		Name: r.Name, Named: r.Named, State: cmp.Or(r.State, notBegunYet), Killed: r.Killed, By: r.By, Command: j.Command, Source: j.Source, Dest: j.Dest,
		Target: j.Target, Args: j.Args, Dir: j.Dir, Error: j.Error, Runs: j.Runs, Begun: instant(j.Begun), Ended: instant(j.Ended),
		At: instant(r.At), Counts: j.Counts, Limits: j.Limits, Files: r.Files, Record: jobs.Text(r.Dir),
	}
	if e.Args == nil {
		e.Args = []jobs.Text{}
	}
	if e.Counts == nil {
		e.Counts = map[string]uint64{}
	}
	return e
}

// instant is t for a field that is left out if t is zero.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// notBegunYet is how a job stands whose first run was refused.
const notBegunYet jobs.State = "not begun"

// standing says how a job stands.
func standing(r *jobs.Record) string { return string(cmp.Or(r.State, notBegunYet)) }

// printJobs prints a line for each record.
func printJobs(out *output, list []jobs.Record) error {
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	// Errors of a strings.Builder do not exist.
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tSTATE\tCOMMAND\tITEMS\tBYTES\tLAST AT WORK\tPLACES")
	for i := range list {
		r := &list[i]
		items, bytes := far(r.Job.Counts)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s -> %s\n", r.Name, standing(r), dash(progress.Clean(r.Job.Command)), items, bytes,
			lastAt(r.At), placeText(r.Job.Source), placeText(r.Job.Dest))
	}
	_ = w.Flush()
	for line := range strings.Lines(b.String()) {
		if err := out.text(line); err != nil {
			return err
		}
	}
	return nil
}

func placeText(t jobs.Text) string {
	if t == "" {
		return "?"
	}
	return quoteArg(string(t))
}

func lastAt(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// far says how many items, and bytes, are done of how many.
func far(n map[string]uint64) (items, bytes string) {
	if len(n) == 0 {
		return "-", "-"
	}
	done := uint64(0)
	for _, name := range [...]string{"files", "dirs", "symlinks", "hardlinks", "nodes", "skipped", "errors", "vanished"} {
		done += n[name]
	}
	of, final := "of ≥ ", n["totals_final"] == 1
	if final {
		of = "of "
	}
	found := n["found_items"]
	moved, size := n["bytes"]+n["skipped_bytes"], n["found_bytes"]+n["skipped_bytes"]
	if _, told := n["found_items"]; !told || final && done >= found {
		return progress.Count(done), progress.Size(moved)
	}
	return progress.Count(min(done, found)) + " " + of + progress.Count(found), progress.Size(min(moved, size)) + " " + of + progress.Size(size)
}

// showJob is all that is known of a record, in words.
func showJob(e *env, r *jobs.Record) string {
	var b strings.Builder
	row := func(head, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-12s%s\n", head, text)
		}
	}
	j, args := &r.Job, argsOf(&r.Job)
	row("job", r.Name+nameless(r))
	row("state", standingText(r))
	row("error", progress.Clean(j.Error))
	if len(args) > 0 {
		row("command", commandLine(e.program(), args))
	}
	if j.Dir != "" {
		row("started in", quoteArg(string(j.Dir)))
	}
	row("from", placeText(j.Source))
	row("to", placeText(j.Dest)+map[jobs.Target]string{jobs.Inside: ", a directory, and the copy is in it", jobs.Itself: ", which is the copy"}[j.Target])
	if j.Runs > 0 {
		row("runs", progress.Count(j.Runs))
		row("begun", lastAt(j.Begun))
	}
	if !j.Ended.IsZero() {
		row("ended", lastAt(j.Ended))
	}
	row("at work", lastAt(r.At))
	items, bytes := far(j.Counts)
	row("items", items)
	row("bytes", bytes)
	row("counts", countsText(j.Counts))
	row("recorded", text(counted{r.Files, "file|files"}))
	for _, name := range [...]string{"max-rate", "bwlimit", "max-load", "parallel"} {
		row(name, progress.Clean(flagIn(args, name)))
	}
	if j.Limits != nil {
		row("changed to", limitsText(j.Limits))
	}
	row("failures", progress.Clean(flagIn(args, "errors-to")))
	row("record", quoteArg(r.Dir))
	row("next", next(e, r))
	return b.String()
}

func nameless(r *jobs.Record) string {
	if r.Named {
		return ""
	}
	return ", a copy without a name"
}

// standingText says how a job stands, and since when.
func standingText(r *jobs.Record) string {
	switch {
	case r.State == jobs.Running && r.By != "":
		return "running: " + progress.Clean(r.By)
	case r.Killed && !r.At.IsZero():
		return fmt.Sprintf("interrupted: it was killed, or its host was, and was last at work at %s", lastAt(r.At))
	}
	return standing(r)
}

// countsText lists what was counted, but for zeros.
func countsText(n map[string]uint64) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if n[name] > 0 && name != "totals_final" {
			all = append(all, progress.Clean(name)+" "+progress.Count(n[name]))
		}
	}
	return strings.Join(all, ", ")
}

// flagIn is the value of a flag among arguments, as it was typed; "" if it is not there.
func flagIn(args []string, name string) string {
	for i, a := range args {
		if value, is := strings.CutPrefix(a, "--"+name+"="); is {
			return value
		}
		if a == "--"+name && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// next says what to do about a job.
func next(e *env, r *jobs.Record) string {
	does := func(verb string) string { return commandLine(e.name, []string{"job", verb, r.Name}) }
	if r.State == jobs.Running {
		return does("cancel") + " ends it"
	}
	refuses := resumable(r)
	switch {
	case len(r.Job.Args) > 0 && refuses != nil:
		return does("resume") + " is refused: " + oneLine(refuses)
	case r.State == jobs.Complete && r.Named:
		return does("resume") + " copies what has changed since; " + does("forget") + " removes the record"
	case len(r.Job.Args) == 0:
		return does("forget") + " removes the record, which does not have its command"
	case r.State == jobs.Failed:
		return does("resume") + " tries again what has failed"
	}
	return does("resume") + " goes on"
}
