package main

import (
	"io"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// show is how a long task shows itself; cp, verify and demo have these flags.
type show struct {
	JSON       bool `help:"Print events as lines of JSON on stdout, the last of type summary."`
	NoProgress bool `help:"Report failures and the end, and nothing in between."`
}

// tracker starts the showing of a task. The caller ends it with Finish.
func (s *show) tracker(e *env) *progress.Tracker {
	r := progress.Line(e.stderr, e.tty && !s.NoProgress)
	if s.JSON {
		r = progress.JSON(e.stdout)
	}
	if s.NoProgress {
		r = quiet{r}
	}
	return progress.New(r, time.Now)
}

// whole reports that a source, or the command, has failed as a whole: an item that fails
// is reported by the job. People read it from stderr; a program has only the events.
func (s *show) whole(t *progress.Tracker, path string, err error) {
	if s.JSON {
		t.Report(progress.Event{Type: "error", Path: path, Message: words(err)})
	}
}

// quiet leaves the progress out.
type quiet struct{ progress.Renderer }

func (quiet) Progress(*progress.Snapshot) error { return nil }

// randReader is the command's randomness as a reader.
type randReader func([]byte)

func (r randReader) Read(p []byte) (int, error) {
	r(p)
	return len(p), nil
}

var _ io.Reader = randReader(nil)
