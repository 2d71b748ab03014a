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

// exitError is an error with its exit status. Without err nothing is printed: the items have been
// listed.
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

// report prints err, unless its items have been listed, and returns the exit status. A command
// that was interrupted is incomplete, and not unreachable, whatever it was waiting for.
func report(e *env, err error) int {
	status := statusOf(e, err)
	if status == exitUnreachable && interrupted(e) {
		return exitIncomplete
	}
	return status
}

// statusOf prints err, unless its items have been listed, and returns its status; of several
// errors the highest.
func statusOf(e *env, err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(context.Cause(e.ctx), errPipe) {
		return exitPipe // there is no reader for a message
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

// joined are the errors in err; err alone if errors.Join has not made it.
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

// complain prints err as a line, or each of several joined errors as a line. Their texts may hold
// names that a server chose.
func complain(e *env, err error) {
	for _, one := range joined(err) {
		// There is nowhere to report an error of stderr.
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: %s\n", progress.Clean(strings.ReplaceAll(words(one), "\n", "; "))) // newlines of an inner errors.Join
	}
}

// words is the text of err for people. If an interruption caused it, that comes first, in words
// of our own.
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

func interrupted(e *env) bool {
	return e.ctx.Err() != nil && !errors.Is(context.Cause(e.ctx), errPipe)
}
