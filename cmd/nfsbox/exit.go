package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// The exit statuses of every command: those of a job, which other commands share.
const (
	exitOK          = job.ExitDone
	exitUsage       = job.ExitRefused     // usage or configuration
	exitIncomplete  = job.ExitIncomplete  // some items failed; they have been listed
	exitDiffers     = job.ExitDifferent   // verification found differences
	exitUnreachable = job.ExitUnreachable // a source or destination cannot be reached
)

// exitError is an error with the exit status it leads to. Without an err there
// is nothing left to say: the items have been listed.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// report prints err, unless its items have been listed, and returns the exit
// status. What was interrupted is incomplete, whatever it was waiting for: whether that
// could have been reached nobody knows.
func report(e *env, err error) int {
	status := statusOf(e, err)
	if status == exitUnreachable && interrupted(e) {
		return exitIncomplete
	}
	return status
}

// statusOf prints err, unless its items have been listed, and returns the status that it
// leads to: of several errors, the highest.
func statusOf(e *env, err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(context.Cause(e.ctx), errPipe) {
		return exitPipe // there is nobody to tell
	}
	status := exitOK
	for _, one := range joined(err) {
		var exit *exitError
		switch {
		case !errors.As(one, &exit):
			complain(e, one)
		case exit.err != nil:
			complain(e, exit.err)
		}
		status = max(status, statusFor(one))
	}
	return status
}

// statusFor is the status that one error leads to.
func statusFor(err error) int {
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.status
	case errors.Is(err, place.ErrUsage):
		return exitUsage
	case errors.Is(err, place.ErrUnreachable):
		return exitUnreachable
	}
	return exitIncomplete
}

// joined are the errors that err joins: err alone if it is none of errors.Join.
func joined(err error) (each []error) {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(all.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	for _, one := range all.Unwrap() {
		each = append(each, joined(one)...)
	}
	return each
}

// complain prints err as a line, or, if it is several errors joined, each as
// its own. Their texts may hold names that a server chose.
func complain(e *env, err error) {
	for _, one := range joined(err) {
		// A message that cannot be written has nowhere else to go.
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: %s\n", progress.Clean(strings.ReplaceAll(words(one), "\n", "; "))) // of errors.Join, further down
	}
}

// words are what err says to people: that an interruption has cut something off comes
// first, and not in the words of package context.
func words(err error) string {
	text := err.Error()
	if !errors.Is(err, context.Canceled) {
		return text
	}
	const said = "interrupted"
	cut := context.Canceled.Error()
	if text == cut {
		return said
	}
	text = strings.ReplaceAll(text, ": "+cut, "")
	return said + ": " + strings.ReplaceAll(text, cut, said)
}

// interrupted reports whether the command was to end before it had.
func interrupted(e *env) bool {
	return e.ctx.Err() != nil && !errors.Is(context.Cause(e.ctx), errPipe)
}
