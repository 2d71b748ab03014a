package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// alikeFlags are those of commands that go through trees and report each failure through an output.
type alikeFlags struct {
	ErrorsTo string `type:"path" placeholder:"FILE" help:"Write every failure to FILE, as lines of JSON; in text three of each cause are shown, and the others counted."`
}

// group makes o show three failures of each cause and count the others, and write all to the file of the flag.
// The file is created here, before anything is done.
func (f *alikeFlags) group(o *output) error {
	o.tells = progress.Grouped(&teller{w: o.stderr}, hasAll(f.ErrorsTo))
	if f.ErrorsTo == "" {
		return nil
	}
	file, err := os.Create(f.ErrorsTo)
	if err != nil {
		return refused(fmt.Errorf("--errors-to: %w", err))
	}
	o.file = errorFile{progress.JSON(file), file}
	return nil
}

// teller shows failures to people, each as a line, with the advice on it below.
type teller struct{ w io.Writer }

func (*teller) Interval() time.Duration           { return time.Hour }
func (*teller) Progress(*progress.Snapshot) error { return nil }

func (t *teller) Event(_ time.Time, e *progress.Event) error {
	_, err := io.WriteString(t.w, complaintOf(e.Message, e.Advice))
	return err
}

func (*teller) Summary(*progress.Snapshot, any) error { return nil }

// close says how many failures were not shown, and ends the file of them with a summary.
func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &progress.Snapshot{Time: time.Now()}
	if o.tells != nil {
		_ = o.tells.Summary(s, nil) // there is nowhere to report an error of stderr
	}
	if o.file == nil {
		return nil
	}
	if err := errors.Join(o.fileErr, o.file.Summary(s, listSummary{o.entries, o.errors})); err != nil {
		return fmt.Errorf("--errors-to: %w", err)
	}
	return nil
}
