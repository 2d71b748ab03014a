package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// show has the flags for the output of a long task; cp, verify and demo have them.
type show struct {
	JSON       bool   `help:"Print events as lines of JSON on stdout, the last of type summary."`
	Progress   string `enum:"auto,bar,lines,none" default:"auto" placeholder:"auto|bar|lines|none" help:"Show the progress as a line that is rewritten (bar), as a line every ten seconds (lines), or not at all; auto is bar on a terminal, and else lines."`
	NoProgress bool   `help:"The same as --progress=none."`
	Quiet      bool   `short:"q" help:"Print failures and differences alone."`
	Verbose    bool   `short:"v" help:"Name each item when it is done."`
	ErrorsTo   string `type:"path" placeholder:"FILE" help:"Write every failure and difference to FILE, as lines of JSON; in text three of each cause are shown, and the others counted."`

	retry *failedFile // of --failed-to; nil: none
	saw   *causes     // is told of failures; nil: nobody asks
	items bool        // no bytes are moved: the progress is of items
	named bool        // what would be done is the result, and goes to stdout
}

// tracker starts showing a task. The caller ends it with Finish.
func (s *show) tracker(e *env) (*progress.Tracker, error) { return s.trackerTo(e, nil) }

// trackerTo is tracker, and has a page get what fails and differs, if it is not nil.
func (s *show) trackerTo(e *env, page *runReport) (*progress.Tracker, error) {
	none := s.NoProgress || s.Quiet || s.Progress == "none"
	r := progress.Line(e.stderr)
	if !none && (s.Progress == "bar" || e.tty && s.Progress != "lines") {
		r = progress.Bar(e.stderr, e.width)
	}
	if s.items {
		r = progress.OfItems(r)
	}
	if s.named {
		r = progress.ResultsTo(r, e.stdout)
	}
	if s.Quiet {
		r = failures{r}
	}
	r = progress.Grouped(r, hasAll(s.ErrorsTo))
	if s.JSON {
		r = progress.JSON(e.stdout)
	}
	if none {
		r = quiet{r}
	}
	if s.ErrorsTo != "" {
		f, err := os.Create(s.ErrorsTo)
		if err != nil {
			return nil, &exitError{status: exitUsage, err: fmt.Errorf("--errors-to: %w", err)}
		}
		r = progress.Both(r, errorFile{progress.JSON(f), f})
	}
	if s.retry != nil {
		r = progress.Both(r, failedEvents{s.retry})
	}
	if s.saw != nil {
		r = progress.Both(r, s.saw)
	}
	if page != nil {
		r = progress.Both(r, page)
	}
	return progress.New(r, time.Now), nil
}

// errorFile is a renderer into a file, which the end of the task closes.
type errorFile struct {
	progress.Renderer
	file *os.File
}

// Summary is the last line. A file that cannot be written is told with the end of the task.
func (f errorFile) Summary(s *progress.Snapshot, v any) error {
	return errors.Join(f.Renderer.Summary(s, v), f.file.Close())
}

// text says whether people read the output, and shall read all of it.
func (s *show) text() bool { return !s.JSON && !s.Quiet }

// hasAll says where all failures are: in the file of --errors-to, if it was given.
func hasAll(file string) string {
	if file == "" {
		return "--errors-to FILE has all"
	}
	return quoteArg(file) + " has all"
}

// whole reports that a source, or the command, has failed as a whole; the job reports single
// items. In text the command prints the error at its end, so this is for JSON, and --errors-to.
func (s *show) whole(t *progress.Tracker, path string, err error) {
	for _, one := range joined(err) {
		if full, ok := errors.AsType[*job.FullError](one); ok {
			path = full.Path
		}
		if !told(one) {
			t.Report(progress.Event{Type: "error", Path: path, Message: fault.Text(one), Err: one, Advice: advice(one, statusFor(one)), Whole: true})
		}
	}
}

// quiet suppresses the progress.
type quiet struct{ progress.Renderer }

func (quiet) Progress(*progress.Snapshot) error { return nil }

// failures suppresses all but what has failed, or differs, and silent servers.
type failures struct{ progress.Renderer }

func (failures) Progress(*progress.Snapshot) error { return nil }

func (f failures) Event(now time.Time, e *progress.Event) error {
	if e.Type == "note" || e.Type == "done" || e.Type == "deleted" || e.Type == "would" {
		return nil
	}
	return f.Renderer.Event(now, e)
}

func (failures) Summary(*progress.Snapshot, any) error { return nil }

// randReader is the command's source of randomness as a reader.
type randReader func([]byte)

func (r randReader) Read(p []byte) (int, error) {
	r(p)
	return len(p), nil
}

var _ io.Reader = randReader(nil)
